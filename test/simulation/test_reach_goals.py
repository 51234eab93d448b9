"""The goals of the task `reach`: the tool can reach them, and there the arm touches nothing."""

import json

from mher_ros.control.fit import check_fit, FitError
from mher_ros.interface import ORIENTATION
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import axes_of
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.tasks import make
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

BLOCK = {'shape': 'box', 'position': [0.45, 0.1, 0.3], 'size': [0.1, 0.4, 0.2]}
"""In the middle of the workspace of ur5e."""


def reach(tmp_path, scene, **options):
    path = tmp_path / 'blocked.yaml'
    source = load_robot('ur5e').folder / 'ur5e.yaml'
    path.write_text(f'{source.read_text()}\nscene: {json.dumps(scene)}\n')
    return make('reach', ReachOptions(50, 0.05, robot=str(path), **options))


def test_goals_are_never_in_an_obstacle(tmp_path):
    task = reach(tmp_path, {'block': BLOCK})
    middle, half = np.array(BLOCK['position']), np.array(BLOCK['size']) / 2.0
    goals = np.array([task.reset(seed=seed)[0]['desired_goal'] for seed in range(100)])
    assert (np.abs(goals - middle) > half).any(axis=1).all()
    low, high = np.array(task.interface.goal_low), np.array(task.interface.goal_high)
    assert ((low <= goals) & (goals <= high)).all()
    # They are still on all sides of it.
    assert (goals[:, 0] < middle[0] - half[0]).any()
    assert (goals[:, 0] > middle[0] + half[0]).any()


def test_the_same_seed_gives_the_same_goal(tmp_path):
    first, second = (reach(tmp_path, {'block': BLOCK}) for _ in range(2))
    for seed in range(10):
        goals = [task.reset(seed=seed)[0]['desired_goal'] for task in (first, second)]
        np.testing.assert_array_equal(*goals)


def test_a_workspace_without_goals_that_can_be_reached_is_refused_in_a_sentence(tmp_path):
    everywhere = {**BLOCK, 'size': [0.4, 0.4, 0.4], 'position': [0.45, 0.1, 0.35]}
    task = reach(tmp_path, {'block': everywhere})
    with pytest.raises(OptionError, match='goals that the arm can reach.*inside block'):
        task.reset(seed=0)


def poses(robot, **options):
    return make('reach', ReachOptions(50, 0.05, robot=robot, goal='pose', **options))


@pytest.mark.parametrize('robot', ['fetch', 'ur5e', 'panda'])
def test_poses_are_near_the_orientation_at_home_and_turned_about_any_axis(robot):
    task = poses(robot)
    names = tuple(field.name for field in task.interface.goal)
    assert names == ('tool_position_x', 'tool_position_y', 'tool_position_z', *ORIENTATION)
    home = np.array([task.robot.home[name] for name in task.joint_names])
    position, orientation = task.arm.tool_pose(home)
    at_home = np.concatenate((position, axes_of(orientation)))
    goals = np.array([task.reset(seed=seed)[0]['desired_goal'] for seed in range(50)])
    low, high = np.array(task.interface.goal_low), np.array(task.interface.goal_high)
    assert ((low <= goals) & (goals <= high)).all()
    angles = task.interface.angle_error(goals, np.tile(at_home, (50, 1)))
    assert angles.max() <= 0.5 + 1e-6
    assert angles.max() > 0.4
    x, y = goals[:, 3:6], goals[:, 6:]
    np.testing.assert_allclose(np.linalg.norm((x, y), axis=2), 1.0)
    np.testing.assert_allclose((x * y).sum(axis=1), 0.0, atol=1e-12)
    matrices = np.stack((x, y, np.cross(x, y)), axis=2)
    w, *vector = orientation
    turns = (Rotation.from_quat((*vector, w)).inv() * Rotation.from_matrix(matrices)).as_rotvec()
    assert (turns.min(axis=0) < -0.1).all()
    assert (turns.max(axis=0) > 0.1).all()


def test_the_arm_reaches_poses_with_their_orientation():
    task = poses('ur5e')
    interface, goals = task.interface, task._goals
    for seed in range(20):
        goal = task.reset(seed=seed)[0]['desired_goal']
        matrix = np.stack((goal[3:6], goal[6:], np.cross(goal[3:6], goal[6:])), axis=1)
        x, y, z, w = Rotation.from_matrix(matrix).as_quat()
        found = goals._reachability.solve(goal[:3], goals._home, np.array((w, x, y, z)))
        there = task.observe(found.positions, np.zeros(len(found.positions)))['achieved_goal']
        assert interface.position_error(there, goal) < 0.005
        assert interface.angle_error(there, goal) < 0.02
        assert goals._reachability.touching(found.positions) is None


def test_the_pose_that_is_achieved_is_that_of_the_tool():
    task = poses('fetch')
    task.reset(seed=0)
    for _ in range(5):
        observation = task.step(np.full(7, 0.7))[0]
    position, (w, *vector) = task.tool_pose()
    matrix = Rotation.from_quat((*vector, w)).as_matrix()
    expected = np.concatenate((position, matrix[:, 0], matrix[:, 1]))
    np.testing.assert_allclose(observation['achieved_goal'], expected, atol=1e-9)
    assert task.interface.position_size == 3


def test_success_is_judged_by_both_thresholds():
    task = poses('ur5e', turn_threshold=0.1)
    interface = task.interface
    assert (interface.success_threshold, interface.orientation_threshold) == (0.05, 0.1)
    goal = task.reset(seed=0)[0]['desired_goal']
    turned = goal.copy()
    axis = np.cross(goal[3:6], goal[6:])
    turned[3:] = Rotation.from_rotvec(0.15 * axis).apply(goal[3:].reshape(2, 3)).ravel()
    rewards = task.compute_reward(np.stack((goal, turned)), np.stack((goal, goal)), {})
    assert rewards.tolist() == [0.0, -1.0]


def test_poses_need_joint_actions():
    with pytest.raises(OptionError, match='task.goal=pose needs task.action=joint'):
        poses('ur5e', action='tool')


def test_poses_need_six_joints():
    with pytest.raises(OptionError, match='at least 6 joints.*so101 has 5'):
        poses('so101')


def test_a_measured_pose_of_the_tool_goes_with_joint_actions_and_positions():
    for options in ({'goal': 'pose'}, {'action': 'tool'}):
        with pytest.raises(OptionError, match='task.action must be joint and task.goal position'):
            make('reach', ReachOptions(50, 0.05, robot='ur5e', tool_pose='topic', **options))


def test_policies_for_poses_are_refused_on_an_arm_in_a_sentence():
    with pytest.raises(FitError, match='expected goals without an orientation.*got 0.2 rad'):
        check_fit(poses('ur5e').interface)


def test_obstacles_that_nothing_avoids_are_refused(tmp_path):
    path = tmp_path / 'blind.yaml'
    source = (load_robot('fetch').folder / 'fetch_wall.yaml').read_text()
    path.write_text(f'{source}\ncollision: {{enabled: false}}\n')
    with pytest.raises(OptionError, match='robot blind has obstacles .*collision.enabled true'):
        make('reach', ReachOptions(robot=str(path)))
