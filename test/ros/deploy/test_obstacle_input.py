"""Markers as obstacles: their frames, stamps, lifetimes and sizes."""

import threading
import time
import types

from arm_models import load_arm
from builtin_interfaces.msg import Duration
from mher_ros.control.obstacle_tracker import ObstacleTracker
from mher_ros.robots.scene import CollisionOptions
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.arm_clock import ArmClock
from mher_ros.ros.deploy.frames import NotYetError
from mher_ros.ros.deploy.obstacle_input import MOST, ObstacleInput, PATIENCE
import numpy as np
import pytest
from rclpy.time import Time
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

TURN = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
"""A right angle about z."""


class Frames:
    """Stands in for tf2, which the wheels of ROS lack."""

    base = 'base'

    def __init__(self):
        self.problem = None

    def placement(self, header):
        if header.frame_id in ('', 'base'):
            return np.eye(3), np.zeros(3)
        if self.problem is not None:
            raise self.problem
        return TURN, np.array((1.0, 0.0, 0.0))


class Taker:
    """Takes markers as if they were received."""

    def __init__(self, node):
        self.frames, self.clock = Frames(), ArmClock(node)
        self.slots = load_arm('panda', avoids_collisions=True)[1].obstacle_slots()
        options = CollisionOptions(enabled=True, obstacle_timeout=1.0)
        self.tracker = ObstacleTracker(self.slots, options)
        driver = types.SimpleNamespace(lock=threading.Lock(), clock=self.clock)
        self.input = ObstacleInput(node, driver, self.tracker, self.frames)

    def take(self, *markers, age=0.0):
        sent = time.time_ns() - round(1e9 * age)
        info = {'source_timestamp': sent, 'received_timestamp': time.time_ns()}
        self.input._take(MarkerArray(markers=list(markers)), info)
        return self.input.figures()

    def names(self):
        return sorted(self.tracker.slots)

    def vertices(self, slot=0):
        return self.slots.parts[slot].solid.vertices


@pytest.fixture
def taker(world):
    return Taker(world.peer().node)


def marker(number=0, kind=Marker.CUBE, frame='base', at=(0.5, 0.1, 0.2), **changes):
    found = Marker(ns='a', id=number, type=kind)
    found.header.frame_id = frame
    found.pose.position.x, found.pose.position.y, found.pose.position.z = at
    found.pose.orientation.w = changes.pop('w', 1.0)
    found.scale.x, found.scale.y, found.scale.z = changes.pop('scale', (0.2, 0.4, 0.6))
    for name, value in changes.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize('w', [0.0, 1.0, 5.0])  # RViz takes 0 for no rotation
def test_a_box_in_another_frame_is_transformed(taker, w):
    assert taker.take(marker(frame='hall', w=w))['obstacles'] == 1
    vertices = taker.vertices()
    assert vertices.min(axis=0) == pytest.approx(np.array((1.0 - 0.1 - 0.2, 0.4, -0.1)))
    assert vertices.max(axis=0) == pytest.approx(np.array((1.0 - 0.1 + 0.2, 0.6, 0.5)))
    (shown,) = (one for one in taker.input.markers() if one.action == Marker.ADD)
    assert (shown.header.frame_id, shown.pose.position.x) == ('base', pytest.approx(0.9))


def test_an_ellipsoid_and_an_elliptic_cylinder_are_inside_of_their_obstacles(taker):
    taker.take(marker(0, Marker.SPHERE), marker(1, Marker.CYLINDER))
    ball, cylinder = (taker.slots.parts[slot].solid for slot in (0, 1))
    assert ball.radius == 0.3
    across = np.linalg.norm(cylinder.vertices[:, :2] - (0.5, 0.1), axis=1)
    assert (across >= 0.2).all()
    assert np.ptp(cylinder.vertices[:, 2]) == pytest.approx(0.6)


def test_an_obstacle_waits_for_its_transform(taker):
    taker.frames.problem = NotYetError('not yet', Refusal.FRAME_UNKNOWN)
    told = taker.take(marker(frame='hall'))
    assert (told['obstacles'], told['obstacles_refused']) == (0, 0)
    taker.frames.problem = None
    taker.input._work()
    assert taker.names() == ['a/0']


def test_one_that_waits_in_vain_is_refused_and_one_that_there_was_is_lost(taker):
    taker.take(marker(frame='hall'))
    taker.frames.problem = NotYetError('not yet', Refusal.FRAME_UNKNOWN)
    taker.take(marker(frame='hall'), marker(1, frame='hall'))
    assert taker.tracker.problem(taker.clock.now()) == ''
    time.sleep(PATIENCE)
    taker.input._work()
    told = taker.input.figures()
    assert (told['obstacles_refused'], told['obstacle_answer']) == (2, 'frame_unknown')
    assert taker.names() == ['a/0']
    assert taker.tracker.problem(taker.clock.now()) == 'a/0: not yet'
    taker.frames.problem = GoalError('there is none', Refusal.FRAME_UNKNOWN)
    taker.take(marker(at=(0.6, 0.0, 0.0)))
    assert taker.tracker.problem(taker.clock.now()) == ''


def test_all_are_deleted_and_those_in_the_same_message_stay_what_they_are(taker):
    taker.take(marker(), marker(1))
    everything = marker(action=Marker.DELETEALL)
    taker.take(everything, marker(at=(0.7, 0.1, 0.2)))
    assert taker.names() == ['a/0']
    slot = taker.tracker.slots['a/0']
    assert (taker.slots.speeds[taker.slots.pairs_of(slot)] > 0.0).all()  # it has moved
    taker.take(marker(2), everything)
    assert taker.names() == []
    taker.frames.problem = NotYetError('not yet', Refusal.FRAME_UNKNOWN)
    taker.take(marker(frame='hall'))
    taker.take(marker(action=Marker.DELETE))
    taker.frames.problem = None
    taker.input._work()
    assert taker.names() == []


def test_a_lifetime_ends_an_obstacle(taker):
    taker.take(marker(lifetime=Duration(nanosec=50_000_000)), marker(1))
    assert taker.names() == ['a/0', 'a/1']
    time.sleep(0.06)
    taker.input._work()
    assert taker.names() == ['a/1']


def test_the_age_of_a_place_counts_from_its_stamp_or_from_when_it_was_sent(taker):
    now = taker.clock.now()
    taker.take(marker(), age=0.3)
    stamped = marker(1)
    stamp = Time(nanoseconds=time.time_ns() - 700_000_000)
    stamped.header.stamp = stamp.to_msg()
    taker.take(stamped)
    future = marker(2)
    future.header.stamp = Time(nanoseconds=time.time_ns() + 9_000_000_000).to_msg()
    taker.take(future)
    known = [taker.slots.known_at[taker.slots.pairs_of(slot)][0] - now for slot in range(3)]
    late = taker.clock.now() - now
    assert known[0] == pytest.approx(-0.3, abs=late + 0.01)
    assert known[1] == pytest.approx(-0.7, abs=late + 0.01)
    assert 0.0 <= known[2] <= late


def test_one_that_would_have_to_be_transformed_again_is_refused(taker):
    assert taker.take(marker(frame='hall', frame_locked=True))['obstacle_answer'] == 'unsupported'
    assert taker.take(marker(frame='base', frame_locked=True))['obstacles'] == 1


def test_a_faster_one_is_said(taker):
    taker.take(marker())
    told = taker.take(marker(at=(0.9, 0.1, 0.2)))
    assert (told['obstacle_answer'], told['obstacles_refused']) == ('too_fast', 0)


def test_a_flood_is_cut(taker):
    told = taker.take(*(marker(number, at=(0.0, 0.0, 99.0)) for number in range(MOST + 1)))
    assert told['obstacle_answer'] == 'too_many'
    assert told['obstacles'] == len(taker.slots.is_used)
    assert len(taker.input.markers()) == len(taker.slots.is_used)
