"""Gaps between parts of an arm and obstacles, as they are shown."""

import dataclasses

from arm_models import load_arm, model_text
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import Part
from mher_ros.robots.collision_view import CollisionView, FARTHEST, NEAR
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.robots.solids import obstacle_solid, shape_solid
import numpy as np
import pytest

RADIUS = 0.05


def arm_with(*scene, name='fetch'):
    robot, _ = load_arm(name)
    robot = dataclasses.replace(robot, collision=CollisionOptions(enabled=True), scene=scene)
    return ArmModel(robot, model_text(name))


def home_of(arm):
    return np.array([arm.home.get(name, 0.0) for name in arm.state_names])


def ball_at(place):
    return Obstacle('ball', 'sphere', tuple(map(float, place)), size=(RADIUS, 0.0, 0.0))


def gaps_with(view, positions, name):
    return [gap for gap in view.gaps(positions) if name in {part.name for part in gap.parts}]


def test_a_gap_joins_the_surfaces_of_both_parts():
    arm = arm_with()
    positions = home_of(arm)
    place = arm.tool_position(positions) + (0.2, 0.0, 0.0)
    arm = arm_with(ball_at(place))
    gaps = gaps_with(CollisionView(arm), positions, 'ball')
    assert gaps
    for gap in gaps:
        assert gap.distance < FARTHEST
        assert np.linalg.norm(gap.ends[0] - gap.ends[1]) == pytest.approx(gap.distance, abs=1e-6)
        on_ball = gap.ends[0] if gap.parts[0].name == 'ball' else gap.ends[1]
        assert np.linalg.norm(on_ball - place) == pytest.approx(RADIUS, abs=1e-6)
        assert gap.is_near is (gap.distance <= NEAR)


def test_an_obstacle_at_run_time_is_the_same_as_one_of_the_robot_file():
    positions = home_of(arm_with())
    place = arm_with().tool_position(positions) + (0.12, 0.05, 0.0)
    ball = ball_at(place)
    fixed = gaps_with(CollisionView(arm_with(ball)), positions, 'ball')
    view = CollisionView(arm_with())
    assert not gaps_with(view, positions, 'ball')
    view.take({5: Part('ball', 0, obstacle_solid(ball), is_obstacle=True)})
    loose = gaps_with(view, positions, 'ball')
    assert [gap.distance for gap in loose] == pytest.approx([gap.distance for gap in fixed])
    far = shape_solid('sphere', (RADIUS, 0.0, 0.0)).at((place + 3.0, np.array((1.0, 0, 0, 0))))
    view.take({5: Part('ball', 0, far, is_obstacle=True)})
    assert not gaps_with(view, positions, 'ball')
    view.take({})
    assert not gaps_with(view, positions, 'ball')


@pytest.mark.parametrize('name', ['fetch', 'sawyer'])
def test_parts_that_hold_each_other_back_come_first(name):
    arm = arm_with(name=name)
    view, random = CollisionView(arm), np.random.default_rng(0)
    for _ in range(20):
        positions = random.normal(home_of(arm), 0.5)
        gaps = view.gaps(positions)
        rooms = [gap.room for gap in gaps]
        assert rooms == sorted(rooms)
        assert all(gap.is_held for gap in gaps if gap.room < 0.0)
        assert all(gap.is_near for gap in gaps if gap.room < 0.0)


def test_an_arm_without_collision_avoidance_has_no_parts():
    _, arm = load_arm('fetch')
    view = CollisionView(arm)
    assert not view.parts
    assert not view.gaps(home_of(arm))
    assert view.poses(home_of(arm))[0].shape == (0, 3)
