"""Policies of `reach`: which arms they fit, and how they run there."""

import dataclasses

from arm_models import load_arm
from mher_ros.control.fit import (
    check_fit,
    check_kinematics,
    check_robot,
    FitError,
    trained_arm,
)
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.observation import Observer
from mher_ros.control.safety_monitor import MOST_PATIENCE
from mher_ros.interface import previous_fields
from mher_ros.policy.onnx_policy import load
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.workspace import place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.tasks import make
import numpy as np
from proportional_policy import write_proportional_policy
import pytest

ROBOTS = ('fetch', 'ur5e')


def options(robot, **changes):
    return ReachOptions(
        episode_steps=50, threshold=0.05, robot=robot, control_period=0.04, **changes
    )


@pytest.fixture(scope='module')
def policies(tmp_path_factory):
    """Return a policy with joint actions for each robot."""
    folder = tmp_path_factory.mktemp('policies')
    paths = {robot: folder / f'{robot}.onnx' for robot in ROBOTS}
    return {
        robot: load(write_proportional_policy(path, 'reach', options(robot)))
        for robot, path in paths.items()
    }


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
@pytest.mark.parametrize('robot', ROBOTS)
def test_the_tool_comes_to_its_goal_by_joint_actions(policies, robot, output):
    policy = policies[robot]
    file, _ = load_arm(robot)
    world = DynamicArm(file, output)
    check_robot(policy.interface, file, output)
    check_kinematics(policy.interface, world.arm)
    controller = GoalController(
        policy, policy.interface, world.arm, place_workspace(policy.interface, file), output
    )
    world.settle(controller.path)
    start = world.tool_position()
    for goal in (start + (0.0, 0.1, 0.05), start + (0.03, -0.1, 0.05)):
        controller.take_goal(world.now, goal, 'project')
        end = world.now + 10.0
        while world.now < end and not (controller.reached and controller.path.filter.is_at_rest):
            world.step(controller.path)
        assert np.linalg.norm(world.tool_position() - controller.goal) < 0.01


@pytest.mark.parametrize('robot', ROBOTS)
@pytest.mark.parametrize('action', ['joint', 'tool'])
def test_the_policy_sees_what_it_was_trained_on_to_the_bit(robot, action):
    task = make('reach', options(robot, action=action))
    task.reset(seed=0)
    observer, rng = Observer(task.interface, task.joint_names), np.random.default_rng(0)
    for _ in range(10):
        trained = task.step(rng.uniform(-1, 1, task.action_space.shape).astype(np.float32))[0]
        positions, velocities = task.joint_state()
        tool = task.arm.tool(positions, velocities)
        seen = observer({'measured': (*tool, positions, velocities)})
        np.testing.assert_array_equal(seen, trained['observation'])


@pytest.mark.parametrize('robot', ROBOTS)
def test_with_delays_the_policy_sees_its_last_action_as_in_training(robot):
    task = make('reach', dataclasses.replace(options(robot), randomise=1.0))
    k = len(task.interface.action)
    seen, given = [], []

    def policy(observation, goal):
        seen.append(observation)
        given.append(np.full(k, 0.02 * len(given), np.float32))
        return given[-1]

    file, _ = load_arm(robot)
    world = DynamicArm(file, 'joint_position')
    space = place_workspace(task.interface, file)
    controller = GoalController(policy, task.interface, world.arm, space, 'joint_position')
    world.settle(controller.path)
    goal = world.tool_position() + (0.0, 0.1, 0.08)
    controller.take_goal(world.now, goal, 'project')
    while len(given) < 6:
        world.step(controller.path)
    entries = [entry[-k:] for entry in seen]
    np.testing.assert_array_equal(entries, [np.zeros(k), *given[: len(entries) - 1]])

    trained = [task.reset(seed=0)[0]['observation']]
    trained += [task.step(action)[0]['observation'] for action in given]
    np.testing.assert_array_equal([entry[-k:] for entry in trained[: len(seen)]], entries)
    observer = Observer(task.interface, task.joint_names)
    positions, velocities = task.joint_state()
    tool = task.arm.tool(positions, velocities)
    previous = np.array(given[-1], np.float64)
    again = observer({'measured': (*tool, positions, velocities)}, previous)
    np.testing.assert_array_equal(again, trained[-1])


def test_after_a_straight_motion_near_the_goal_there_is_no_last_action():
    task = make('reach', dataclasses.replace(options('ur5e'), randomise=1.0))
    seen, k = [], len(task.interface.action)

    def policy(observation, goal):
        seen.append(observation[-k:])
        return np.full(k, 0.3, np.float32)

    file, _ = load_arm('ur5e')
    world = DynamicArm(file, 'joint_position')
    space = place_workspace(task.interface, file)
    controller = GoalController(policy, task.interface, world.arm, space, 'joint_position')
    world.settle(controller.path)
    controller.take_goal(world.now, world.tool_position() + (0.01, 0.0, 0.0), 'project')
    for _ in range(50):
        world.step(controller.path)
    assert len(seen) > 5
    assert not np.any(seen)


@pytest.mark.parametrize(
    'change',
    [
        lambda fields: fields[:-1],
        lambda fields: (*fields[:-2], fields[-1], fields[-2]),
        lambda fields: (*fields[:-1], dataclasses.replace(fields[-1], unit='rad')),
        lambda fields: (*fields[:-1], dataclasses.replace(fields[-1], source='measured')),
        lambda fields: fields + previous_fields(fields[-6:], 11),
    ],
)
def test_earlier_actions_that_no_arm_can_show_are_refused(change):
    interface = make('reach', dataclasses.replace(options('ur5e'), randomise=1.0)).interface
    check_fit(interface)
    with pytest.raises(FitError, match='an observation of'):
        check_fit(dataclasses.replace(interface, observation=change(interface.observation)))


def test_another_arm_is_refused(policies):
    interface = policies['ur5e'].interface
    for other in ('fetch', 'panda'):
        with pytest.raises(FitError, match=f'joints of robot {other}.*trained on ur5e'):
            check_robot(interface, load_arm(other)[0], 'joint_position')


def test_an_arm_with_other_kinematics_is_refused(policies):
    robot, _ = load_arm('ur5e')
    interface = policies['ur5e'].interface
    check_kinematics(interface, load_arm('ur5e')[1])
    calibrated = dataclasses.replace(robot.simulated(), tool_offset=(0.0, 0.0, 0.002))
    check_kinematics(interface, ArmModel(calibrated))
    longer = dataclasses.replace(robot.simulated(), tool_offset=(0.0, 0.0, 0.05))
    with pytest.raises(FitError, match='up to 0.050 m away'):
        check_kinematics(interface, ArmModel(longer))


def test_another_scene_is_refused(policies):
    robot, arm = load_arm('ur5e')
    wall = Obstacle('wall', 'box', (0.5, 0.0, 0.1), size=(0.1, 1.0, 0.2))
    with_wall = dataclasses.replace(robot, scene=(wall,))
    interface = policies['ur5e'].interface
    with pytest.raises(FitError, match='no obstacles there, obstacles here'):
        check_robot(interface, with_wall, 'joint_position')
    trained = dataclasses.replace(interface, arm=trained_arm(with_wall, arm))
    check_robot(trained, with_wall, 'joint_position')
    moved = dataclasses.replace(wall, position=(0.5, 0.0, 0.2))
    for scene in ((), (moved,), (wall, dataclasses.replace(moved, name='other'))):
        with pytest.raises(FitError, match='scene'):
            check_robot(trained, dataclasses.replace(robot, scene=scene), 'joint_position')


def test_a_mesh_in_the_scene_may_be_in_another_folder(policies, tmp_path):
    robot, arm = load_arm('ur5e')
    robots = []
    for folder in ('one', 'other'):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / 'shelf.obj'
        path.write_text('v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n')
        shelf = Obstacle('shelf', 'mesh', (1.0, 0.0, 0.0), file=str(path))
        robots.append(dataclasses.replace(robot, scene=(shelf,)))
    trained = dataclasses.replace(policies['ur5e'].interface, arm=trained_arm(robots[0], arm))
    check_robot(trained, robots[1], 'joint_position')
    path.write_text('v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 1\n')
    with pytest.raises(FitError, match='scene'):
        check_robot(trained, robots[1], 'joint_position')


def test_outputs_that_command_the_tool_are_refused(policies):
    interface, (robot, _) = policies['fetch'].interface, load_arm('fetch')
    for output in ('twist', 'pose'):
        with pytest.raises(FitError, match=f'with joint actions.*got {output}'):
            check_robot(interface, robot, output)
    for output in ('joint_trajectory', 'joint_position', 'joint_velocity', 'none'):
        check_robot(interface, robot, output)


def test_joints_are_limited_in_a_dry_run(policies):
    policy = policies['fetch']
    robot, arm = load_arm('fetch')
    space = place_workspace(policy.interface, robot)
    controller = GoalController(policy, policy.interface, arm, space, 'none')
    assert controller.path.filter.joint_positions is None  # until a motion begins
    controller.path.filter.begin(np.array([robot.home[name] for name in arm.state_names]))
    assert controller.path.filter.joint_positions.shape == (7,)


def changed(interface, field_name, **values):
    """Return the interface with one field of the observation changed."""
    fields = (
        dataclasses.replace(field, **values) if field.name == field_name else field
        for field in interface.observation
    )
    return dataclasses.replace(interface, observation=tuple(fields))


def test_what_cannot_be_understood_is_refused(policies):
    interface = policies['fetch'].interface
    elbow = 'position_elbow_flex_joint'
    wrong = {
        'observation of any of': changed(interface, elbow, name='object_position_x'),
        f'{elbow} in rad or m, got deg': changed(interface, elbow, unit='deg'),
        'joint actions with the arm': dataclasses.replace(interface, arm=None),
    }
    for text, changes in wrong.items():
        with pytest.raises(FitError, match=text):
            check_fit(changes)


def test_a_joint_that_the_arm_lacks_is_refused(policies):
    interface = policies['fetch'].interface
    with pytest.raises(FitError, match='position_shoulder_pan_joint'):
        Observer(interface, ('elbow',))


@pytest.fixture(scope='module')
def tool_policy(tmp_path_factory):
    """Return a policy with tool actions that was trained on ur5e, without obstacles."""
    path = tmp_path_factory.mktemp('policy') / 'tool.onnx'
    return load(write_proportional_policy(path, 'reach', options('ur5e', action='tool')))


@pytest.mark.parametrize('robot', ['ur5e', 'panda'])
def test_a_policy_with_tool_actions_runs_on_other_arms(tool_policy, robot):
    interface = tool_policy.interface
    file, arm = load_arm(robot)
    for output in ('joint_position', 'twist'):
        check_robot(interface, file, output)
    check_kinematics(interface, arm)
    world = DynamicArm(file, 'joint_position')
    space = place_workspace(interface, file)
    controller = GoalController(tool_policy, interface, world.arm, space, 'joint_position')
    world.settle(controller.path)
    controller.take_goal(world.now, (space.low + 3.0 * space.high) / 4.0)
    end = world.now + 10.0
    while world.now < end and not (controller.reached and controller.path.filter.is_at_rest):
        world.step(controller.path)
    assert np.linalg.norm(world.tool_position() - controller.goal) < 0.01


def test_the_workspace_of_tool_actions_stays_on_their_arm_and_moves_with_others(tool_policy):
    interface = tool_policy.interface
    moved = dataclasses.replace(load_arm('panda')[0], box=None)
    np.testing.assert_allclose(
        (place_workspace(interface, moved).low + place_workspace(interface, moved).high) / 2.0,
        moved.workspace.origin,
    )
    here = dataclasses.replace(load_arm('ur5e')[0], box=None)
    elsewhere = dataclasses.replace(here.workspace, origin=(1.0, 1.0, 1.0))
    kept = place_workspace(interface, dataclasses.replace(here, workspace=elsewhere))
    np.testing.assert_array_equal(kept.low, interface.goal_low)


def test_tool_actions_among_obstacles_fit_only_their_arm_and_scene(tool_policy):
    robot, arm = load_arm('ur5e')
    wall = Obstacle('wall', 'box', (0.5, 0.0, 0.1), size=(0.1, 1.0, 0.2))
    with_wall = dataclasses.replace(robot, scene=(wall,))
    trained = dataclasses.replace(tool_policy.interface, arm=trained_arm(with_wall, arm))
    check_robot(trained, with_wall, 'joint_position')
    check_kinematics(trained, arm)
    with pytest.raises(FitError, match='obstacles there, no obstacles here'):
        check_robot(trained, robot, 'joint_position')
    with pytest.raises(FitError, match='joints of robot panda'):
        check_robot(trained, load_arm('panda')[0], 'joint_position')
    with pytest.raises(FitError, match='with obstacles.*got twist'):
        check_robot(trained, with_wall, 'twist')
    longer = dataclasses.replace(robot.simulated(), tool_offset=(0.0, 0.0, 0.05))
    with pytest.raises(FitError, match='up to 0.050 m away'):
        check_kinematics(trained, ArmModel(longer))


def test_tool_actions_move_the_set_point_of_the_tool():
    task = make('reach', options('ur5e', action='tool'))
    start, _ = task.reset(seed=0)
    for _ in range(10):
        observation = task.step((0.5, 0.0, 0.0))[0]['observation']
    moved = observation[:3] - start['observation'][:3]
    assert task.interface.action[0].scale == 0.01  # 0.25 m/s for 0.04 s
    assert 0.02 < moved[0] < 0.06  # it accelerates first
    assert np.abs(moved[1:]).max() < 0.005
    np.testing.assert_allclose(observation[3:], (0.125, 0.0, 0.0), atol=0.02)


def test_policies_of_long_episodes_have_the_longest_time_that_the_monitor_allows(policies):
    file, arm = load_arm('ur5e')
    interface = dataclasses.replace(policies['ur5e'].interface, episode_steps=100_000)
    space = place_workspace(interface, file)
    controller = GoalController(policies['ur5e'], interface, arm, space, 'joint_position')
    monitor, zeros = controller.path.monitor, np.zeros(len(arm.state_names))
    monitor.take_state(0.0, 0, zeros, zeros)
    monitor.take_goal(0.0)
    for now in (0.0, MOST_PATIENCE - 1.0, MOST_PATIENCE + 1.0):
        assert monitor.has_goal
        monitor.approach(now, 1.0, 0.05)
    assert monitor.last_drop == 'no_progress'
