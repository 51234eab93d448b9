"""Markers as obstacles: their frames, stamps, lifetimes and sizes."""

import dataclasses
import itertools
import threading
import time
import types

from arm_models import load_arm
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.robots.scene import CollisionOptions
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.arm_clock import ArmClock
from mher_ros.ros.common.avoided_obstacles import AvoidedObstacles
from mher_ros.ros.common.frames import NotYetError
from mher_ros.ros.common.marker_obstacles import MOST_BYTES, read_markers
from mher_ros.ros.common.obstacle_input import MOST, PATIENCE
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
        robot, arm = load_arm('panda', avoids_collisions=True)
        options = CollisionOptions(enabled=True, obstacle_timeout=1.0)
        robot, self.slots = dataclasses.replace(robot, collision=options), arm.obstacle_slots()
        path = types.SimpleNamespace(filter=joint_filter(arm))
        driver = types.SimpleNamespace(lock=threading.Lock(), clock=self.clock, path=path)
        self.obstacles = AvoidedObstacles(node, driver, self.slots, robot, self.frames)
        self.tracker, self.input = driver.obstacles, self.obstacles._input

    def take(self, *markers, age=0.0):
        sent = time.time_ns() - round(1e9 * age)
        self.input.take(read_markers(MarkerArray(markers=list(markers))), sent)
        return self.input.figures()

    def names(self):
        return sorted(self.tracker.slots)

    def vertices(self, slot=0):
        return self.slots.parts[slot].solid.vertices


def joint_filter(arm):
    limiter = MotionLimiter(MotionLimits(), (-2.0, -2.0, -2.0), (2.0, 2.0, 2.0))
    return JointFilter(arm, limiter, 0.01, is_velocity=False)


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
    (shown,) = (one for one in taker.obstacles.markers() if one.action == Marker.ADD)
    assert (shown.header.frame_id, shown.pose.position.x) == ('base', pytest.approx(0.9))


@pytest.mark.parametrize('size', [1e-3, 1e200])
def test_a_quaternion_is_a_rotation_whatever_its_norm(taker, size):
    turned = marker(w=size)
    turned.pose.orientation.z = size  # a right angle about z
    taker.take(turned)
    edges = np.ptp(taker.vertices(), axis=0)
    assert edges == pytest.approx(np.array((0.4, 0.2, 0.6)))


def test_a_quaternion_without_a_finite_norm_is_refused(taker):
    wrong = marker(w=1.7e308)
    wrong.pose.orientation.z = 1.7e308
    assert taker.take(wrong)['obstacle_answer'] == 'bad_message'
    assert taker.tracker.refused.startswith('a/0: ')


def test_one_that_is_deleted_in_a_message_of_its_own_before_each_update_moves(taker):
    for at in (0.5, 0.6):
        taker.take(marker(at=(at, 0.1, 0.2)))
        taker.take(marker(action=Marker.DELETEALL))
        assert taker.names() == []
    taker.take(marker(at=(0.7, 0.1, 0.2)))
    assert (taker.slots.speeds[taker.slots.pairs_of(0)] > 0.0).all()


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


def test_long_names_that_differ_only_at_their_ends_are_different_obstacles(taker):
    one, other = (marker(ns=100 * 'long' + end) for end in 'ab')
    assert taker.take(one, other)['obstacles'] == 2
    assert max(map(len, taker.names())) < 120
    other.action = Marker.DELETE
    assert taker.take(other)['obstacles'] == 1


def test_a_flood_is_cut(taker):
    told = taker.take(*(marker(number, at=(0.0, 0.0, 99.0)) for number in range(MOST + 1)))
    assert told['obstacle_answer'] == 'too_many'
    assert told['obstacles'] == len(taker.slots.is_used)
    assert len(taker.obstacles.markers()) == len(taker.slots.is_used)
    for flood in range(3):
        taker.take(*(marker(number, ns=f'flood{flood}') for number in range(MOST)))
    assert taker.tracker.refused
    for known in (taker.input._known, taker.tracker._refused):
        assert len(known) <= MOST + 1
    taker.take(*(marker(number, action=Marker.DELETE) for number in range(MOST)))
    assert taker.tracker.refused  # it is not known which ones are left
    taker.take(marker(action=Marker.DELETEALL))
    assert taker.tracker.refused == ''


def test_a_message_that_is_too_long_to_read_is_refused_until_all_are_deleted(world):
    peer, other = world.peer(), world.peer()
    taker, sender = Taker(peer.node), other.talk(MarkerArray, 'obstacles')

    def publish_until(markers, done):
        sender.publish(MarkerArray(markers=markers))
        peer.wait_until(done, 'the message', taker.input.figures)

    other.wait_until(lambda: sender.get_subscription_count() >= 1, 'a subscription')
    publish_until([marker()], lambda: taker.names() == ['a/0'])
    publish_until([marker(ns='b', text=MOST_BYTES * 'x')], lambda: taker.tracker.refused)
    assert taker.input.figures()['obstacle_answer'] == 'bad_message'
    assert taker.names() == ['a/0']
    publish_until([marker(action=Marker.DELETEALL)], lambda: not taker.names())
    assert taker.tracker.refused == ''


NO_SOLIDS = [Marker.TEXT_VIEW_FACING, Marker.ARROW, Marker.LINE_LIST, Marker.LINE_STRIP]


@pytest.mark.parametrize('kind', NO_SOLIDS)
def test_what_is_no_solid_is_refused_without_effect_unless_it_replaces_one(taker, kind):
    assert taker.take(marker(kind=kind))['obstacle_answer'] == 'unsupported'
    assert taker.tracker.refused == ''
    taker.take(marker())
    taker.take(marker(kind=kind))
    assert taker.tracker.problem(taker.clock.now())


REFUSED = {
    'bad_size': {'scale': (0.1, -0.1, 0.1)},
    'bad_message': {'at': (0.0, 0.0, float('nan'))},
    'unsupported': {'kind': Marker.MESH_RESOURCE},
    'frame_unknown': {'frame': 'hall'},
}


@pytest.mark.parametrize('code', sorted(REFUSED))
@pytest.mark.parametrize('end', ['delete', 'deleteall', 'usable', 'lifetime'])
def test_a_solid_that_cannot_be_used_is_refused_until_it_is_gone_or_usable(taker, code, end):
    taker.frames.problem = GoalError('there is none', Refusal.FRAME_UNKNOWN)
    wrong = marker(**REFUSED[code])
    if end == 'lifetime':
        wrong.lifetime = Duration(nanosec=50_000_000)
    assert taker.take(wrong)['obstacle_answer'] == code
    assert taker.tracker.refused.startswith('a/0: ')
    if end == 'lifetime':
        time.sleep(0.06)
        taker.input._work()
    else:
        deleted = {'delete': Marker.DELETE, 'deleteall': Marker.DELETEALL, 'usable': Marker.ADD}
        taker.take(marker(action=deleted[end]))
    assert taker.tracker.refused == ''
    assert taker.names() == (['a/0'] if end == 'usable' else [])


def test_too_many_that_wait_for_their_transforms_are_refused(taker):
    taker.frames.problem = NotYetError('not yet', Refusal.FRAME_UNKNOWN)
    for part in range(3):
        taker.take(*(marker(100 * part + number, frame='hall') for number in range(100)))
    assert len(taker.input._waiting) <= MOST
    assert taker.tracker.refused


def test_one_that_waited_does_not_replace_a_later_one(taker):
    taker.frames.problem = NotYetError('not yet', Refusal.FRAME_UNKNOWN)
    taker.take(marker(frame='hall'))
    taker.take(marker(at=(0.7, 0.0, 0.0)))
    taker.frames.problem = None
    taker.input._work()
    assert taker.vertices().mean(axis=0) == pytest.approx((0.7, 0.0, 0.0))


def test_lists_are_several_obstacles_and_are_replaced_as_a_whole(taker):
    places = [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0)]
    points = [Point(x=x, y=y, z=z) for x, y, z in places]
    taker.take(marker(kind=Marker.CUBE_LIST, points=points, scale=(0.1, 0.1, 0.1)))
    assert taker.names() == ['a/0#0', 'a/0#1', 'a/0#2']
    middles = [taker.vertices(taker.tracker.slots[name]).mean(axis=0) for name in taker.names()]
    assert np.array(middles) == pytest.approx(np.array(places) + (0.5, 0.1, 0.2))
    taker.take(marker(kind=Marker.SPHERE_LIST, points=points[:2], scale=(0.1, 0.1, 0.1)))
    assert taker.names() == ['a/0#0', 'a/0#1']
    assert taker.slots.parts[taker.tracker.slots['a/0#0']].solid.radius == 0.05
    taker.take(marker(kind=Marker.SPHERE_LIST, points=points * 10))
    assert taker.tracker.problem(taker.clock.now())
    taker.take(marker())
    assert taker.names() == ['a/0']
    assert taker.tracker.problem(taker.clock.now()) == ''
    taker.take(marker(action=Marker.DELETE))
    assert taker.names() == []


def test_triangles_are_their_convex_hull(taker):
    corners = list(itertools.product((-1.0, 1.0), repeat=3))
    points = [Point(x=x, y=y, z=z) for x, y, z in corners * 2]
    taker.take(marker(kind=Marker.TRIANGLE_LIST, points=points, scale=(0.1, 0.2, 0.3)))
    vertices = taker.vertices()
    assert len(vertices) == 8
    assert vertices.min(axis=0) == pytest.approx(np.array((0.4, -0.1, -0.1)))
    assert vertices.max(axis=0) == pytest.approx(np.array((0.6, 0.3, 0.5)))
    (shown,) = (one for one in taker.obstacles.markers() if one.action == Marker.ADD)
    assert shown.type == Marker.TRIANGLE_LIST
    assert len(shown.points) == 3 * 12
    flat = [Point(x=x, y=y) for x, y in itertools.product((-1.0, 1.0), repeat=2)]
    taker.take(marker(kind=Marker.TRIANGLE_LIST, points=flat[:3], scale=(0.1, 0.2, 0.3)))
    thick = np.ptp(taker.vertices(), axis=0)
    assert thick == pytest.approx((0.2, 0.4, 0.0), abs=1e-3)
    assert thick[2] > 0.0
