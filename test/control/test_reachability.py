"""Which places an arm's tool can come to."""

import dataclasses
import math

from arm_models import load_arm
from command_path_arm import CommandPathArm, interface_of
from foreign_arms import UR10_HOME, write_arm
from mher_ros.control.fit import FitError
from mher_ros.control.reachability import NEAR, Reachability
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot, Span
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.robots.solids import obstacle_solid
from mher_ros.robots.workspace import GoalError, Workspace
import numpy as np
import pytest

UR5_SPAN = 0.95
"""How far the tool of a UR5 can be from its shoulder [m]: upper arm, forearm, wrist."""


def home_of(robot, model):
    return np.array([robot.home.get(joint, 0.0) for joint in model.state_names])


def workspace_of(robot, origin=None, scale=None):
    interface = interface_of(robot.simulation_task or 'fetch_reach')
    return Workspace(
        interface.goal_low,
        interface.goal_high,
        origin or robot.workspace.origin,
        scale or robot.workspace.scale,
        robot.box,
    )


def test_all_goals_of_an_arm_that_comes_along_are_reached_one_after_the_other(any_arm):
    robot, model = any_arm
    space, reachability = workspace_of(robot), Reachability(model)
    positions = home_of(robot, model)
    _, orientation = model.tool_pose(positions)
    for goal in np.random.default_rng(0).uniform(space.low, space.high, (40, 3)):
        attempt = reachability.solve(goal, positions, orientation)
        assert attempt.reached
        positions = attempt.positions
        # What it says is so.
        place, turned = model.tool_pose(positions)
        assert np.linalg.norm(place - goal) == pytest.approx(attempt.error, abs=1e-9)
        assert 2.0 * math.acos(min(1.0, abs(turned @ orientation))) == pytest.approx(
            attempt.turned, abs=1e-6
        )
        count = len(model.joint_names)
        assert (positions[:count] >= model.lower).all()
        assert (positions[:count] <= model.upper).all()


def test_its_workspace_is_reached_to_the_corners(any_arm):
    robot, model = any_arm
    assert Reachability(model).check_workspace(workspace_of(robot)) == ''


def test_a_goal_beyond_the_arm_is_refused_with_the_distance_that_is_left(arm):
    robot, model = arm('ur5e')
    with pytest.raises(GoalError, match=r'reach.*at \(2\.000, 0\.000, 0\.300\) m') as refused:
        Reachability(model).check_goal(np.array((2.0, 0.0, 0.3)), home_of(robot, model), None)
    assert refused.value.code == 'out_of_reach'
    left = float(str(refused.value).partition('error is ')[2].split()[0])
    assert 2.0 - UR5_SPAN - 0.1 < left < 1.5
    assert 'another orientation' not in str(refused.value)


def test_a_goal_that_would_need_the_tool_turned_is_refused_and_that_is_said(arm):
    robot, model = arm('ur5e')
    reachability, home = Reachability(model), home_of(robot, model)
    goal = np.array((0.91, 0.1, 0.3))
    assert reachability.solve_from_anywhere(goal).reached
    assert not reachability.solve(goal, home).reached
    with pytest.raises(GoalError, match='another orientation of the tool it would be reached'):
        reachability.check_goal(goal, home, None)


def test_the_orientation_that_is_held_counts_not_the_one_of_the_moment(arm):
    robot, model = arm('ur5e')
    reachability, home = Reachability(model), home_of(robot, model)
    goal = np.array((0.91, 0.1, 0.3))
    stretched = reachability.solve_from_anywhere(goal).positions
    reachability.check_goal(goal, stretched, None)
    with pytest.raises(GoalError):
        reachability.check_goal(goal, stretched, model.tool_pose(home)[1])


def test_limits_of_joints_count(arm):
    robot, _ = arm('ur5e')
    limits = {'shoulder_pan_joint': Span(-0.2, 0.2)}
    narrow = ArmModel(dataclasses.replace(robot.simulated(), joint_limits=limits))
    model = ArmModel(robot.simulated())
    home = home_of(robot, model)
    place, _ = model.tool_pose(home)
    goal = np.array((place[0] * math.cos(1.0), place[0] * math.sin(1.0) + place[1], place[2]))
    Reachability(model).check_goal(goal, home, None)
    with pytest.raises(GoalError):
        Reachability(narrow).check_goal(goal, home, None)


def test_the_same_question_has_the_same_answer(arm):
    robot, model = arm('panda')
    reachability, home = Reachability(model), home_of(robot, model)
    goal = np.array((0.75, 0.3, 0.2))
    first = reachability.solve(goal, home)
    reachability.solve(np.array((0.4, -0.2, 0.5)), first.positions)
    again = reachability.solve(goal, home)
    np.testing.assert_array_equal(first.positions, again.positions)
    assert first[1:] == again[1:]


@pytest.mark.parametrize('name', ['panda', 'ur5e'])
def test_an_arm_comes_to_rest_where_it_was_foretold(monkeypatch, arm, name):
    robot, model = arm(name)
    wide = dataclasses.replace(
        robot, workspace=dataclasses.replace(robot.workspace, scale=2.0), box=None
    )
    monkeypatch.setattr('command_path_arm.load_arm', lambda *_: (wide, model))
    reachability = Reachability(model)
    space = workspace_of(robot, scale=2.0)
    told = []
    for goal in np.random.default_rng(4).uniform(space.low, space.high, (12, 3)):
        moved = CommandPathArm('joint_position', name, 'fetch_reach')
        told.append(reachability.solve(goal, moved.positions))
        moved.start(goal)
        moved.run(500)
        error = np.linalg.norm(moved.tool - goal)
        assert told[-1].error / 3.0 - 0.002 < error < 3.0 * told[-1].error + 0.002
    assert {attempt.reached for attempt in told} == {True, False}


def test_a_workspace_whose_centre_is_out_of_reach_is_refused(tmp_path):
    robot = load_robot(write_arm(tmp_path, 'ur10', UR10_HOME))
    reachability = Reachability(ArmModel(robot))
    with pytest.raises(FitError, match=r'workspace\.origin.*\(1\.600, 0\.000, 0\.300\)'):
        reachability.check_workspace(workspace_of(robot, (1.6, 0.0, 0.3)))
    missed = reachability.check_workspace(workspace_of(robot, (1.2, 0.0, 0.3)))
    assert '(1.350, 0.150, 0.450) m by 0.' in missed
    assert '(1.050, ' not in missed
    assert reachability.check_workspace(workspace_of(robot, (0.7, 0.0, 0.4))) == ''


def test_a_joint_that_is_not_commanded_may_be_anywhere_at_the_start(tmp_path):
    text = write_arm(tmp_path, 'ur10').read_text().replace('shoulder_pan_joint, ', '')
    (tmp_path / 'rest.yaml').write_text(text)
    model = ArmModel(load_robot(tmp_path / 'rest.yaml'))
    assert model.state_names[-1] == 'shoulder_pan_joint'
    space = Workspace((0.0, 0.0, 0.0), (0.3, 0.3, 0.3), (-0.6, 0.0, 0.4))
    reachability = Reachability(model)
    assert reachability.check_workspace(space) == ''
    # But it stays where it is once that is known.
    home = np.array((-1.5708, 1.5708, -1.5708, -1.5708, 0.0, 0.0))
    place, _ = model.tool_pose(home)
    attempt = reachability.solve(place + (0.0, 0.3, 0.0), home)
    assert attempt.error > NEAR
    assert attempt.positions[-1] == 0.0


def with_scene(name, *obstacles):
    avoids = CollisionOptions(enabled=True)
    robot = dataclasses.replace(load_robot(name).simulated(), scene=obstacles, collision=avoids)
    return robot, ArmModel(robot)


def test_a_goal_inside_an_obstacle_is_refused_with_its_name():
    robot, model = with_scene('panda', Obstacle('crate', 'box', (0.5, 0.1, 0.4), size=(0.2,) * 3))
    reachability, home = Reachability(model), home_of(robot, model)
    with pytest.raises(GoalError, match='crate') as refused:
        reachability.check_goal(np.array((0.45, 0.15, 0.45)), home, None)
    assert refused.value.code == 'inside_obstacle'
    reachability.check_goal(np.array((0.45, -0.15, 0.45)), home, None)


def test_a_goal_at_which_the_arm_touches_an_obstacle_is_refused_with_both_names():
    """The goal is free, 5 mm beside a wall that the hand cannot be in."""
    robot, model = with_scene(
        'panda', Obstacle('wall', 'plane', (0.45, 0.0, 0.0), rpy=(0.0, -math.pi / 2, 0.0))
    )
    reachability, home = Reachability(model), home_of(robot, model)
    with pytest.raises(GoalError, match='wall') as refused:
        reachability.check_goal(np.array((0.445, 0.0, 0.4)), home, None)
    assert refused.value.code == 'in_collision'
    reachability.check_goal(np.array((0.35, 0.0, 0.4)), home, None)


@pytest.mark.parametrize('name', ['fetch', 'panda', 'ur5e'])
def test_without_obstacles_few_goals_are_refused(name):
    robot, model = load_arm(name, avoids_collisions=True)
    space, reachability, refused = workspace_of(robot), Reachability(model), 0
    for goal in np.random.default_rng(1).uniform(space.low, space.high, (30, 3)):
        try:
            reachability.check_goal(goal, home_of(robot, model), None)
        except GoalError:
            refused += 1
    assert refused <= 1


def test_goals_in_and_at_obstacles_that_come_later_are_refused_while_these_are_there():
    robot, arm = load_arm('ur5e', avoids_collisions=True)
    slots, home = arm.obstacle_slots(), home_of(robot, arm)
    reachability, goal = Reachability(arm, slots), arm.tool_position(home)
    reachability.check_goal(goal, home, None)
    for shift, code in ((0.0, 'inside_obstacle'), (0.11, 'in_collision')):
        place = tuple(goal + (0.0, 0.0, shift))
        ball = Obstacle('ball/1', 'sphere', place, size=(0.1, 0.0, 0.0))
        slots.put(5, ball.name, obstacle_solid(ball), 0.0, 0.0)
        with pytest.raises(GoalError, match='ball/1') as refused:
            reachability.check_goal(goal, home, None)
        assert refused.value.code == code
    slots.remove(5)
    reachability.check_goal(goal, home, None)
