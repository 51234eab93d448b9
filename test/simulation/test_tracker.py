"""A measured pose of the tool: a turned camera, a marker beside the tool, and wrong links."""

import dataclasses

from mher_ros.options import OptionError
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.tracker import link_errors, TrackerOptions
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
import pytest

WRONG = TrackerOptions(
    camera_turn=(0.0, 0.0, 90.0),
    camera_offset=(0.1, 0.2, 0.3),
    tool_offset_error=(0.0, 0.1, 0.0),
    link_error=0.03,
)


def options(robot='ur5e', tracker=WRONG, **others):
    return ReachOptions(
        50,
        0.05,
        robot=robot,
        tool_pose='topic',
        control_period=0.04,
        tracker=tracker,
        **others,
    )


def tracked(robot='ur5e', tracker=WRONG):
    return Reach(options(robot, tracker))


def play(task, seed, steps=10):
    rng = np.random.default_rng(seed)
    seen = [task.reset(seed=seed)[0]]
    seen += [task.step(rng.uniform(-1.0, 1.0, len(task.arm.joint_names)))[0] for _ in range(steps)]
    return np.array([one['observation'] for one in seen]), seen[0]['desired_goal']


def test_the_measured_pose_is_that_of_the_marker_in_the_turned_frame_of_the_camera():
    task = tracked(tracker=dataclasses.replace(WRONG, link_error=0.0))
    seen, _ = play(task, 0)
    position, orientation = task.arm.tool_pose(seen[-1, : len(task.joint_names)])
    w, x, y, z = orientation
    across = np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])
    left = position + 0.1 * across - [0.1, 0.2, 0.3]
    centre = (task.workspace.low + task.workspace.high) / 2.0
    # Turned by 90 degrees: what is along y of the base is along x of the camera.
    expected = centre + np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) @ (left - centre)
    np.testing.assert_allclose(seen[-1, -3:], expected, atol=1e-9)


@pytest.mark.parametrize('robot', ['ur5e', 'fetch'])
def test_the_simulated_arm_has_the_links_that_the_nominal_model_does_not_have(robot):
    file = load_robot(robot)
    links = link_errors(file, WRONG)
    np.testing.assert_allclose([np.linalg.norm(at) for at in links.values()], 0.03)
    nominal, plant = simulated_robot(file), simulated_robot(file, displaced=links)
    assert plant.description('arm') == nominal.description('arm')
    task = Reach(ReachOptions(robot=robot))
    chain = [plant.joint_names.index(name) for name in task.joint_names]
    posture = plant.joint_state()[0][chain]
    there, _ = plant.tool_pose()
    np.testing.assert_allclose(there, task.arm.displaced(links).tool_position(posture), atol=1e-8)
    assert np.linalg.norm(there - nominal.tool_pose()[0]) > 0.02


def test_observations_follow_the_true_arm_and_not_the_nominal_one():
    task = tracked(tracker=TrackerOptions(link_error=0.03))
    seen, _ = play(task, 1)
    np.testing.assert_allclose(seen[:, -3:], task.judged_goals(seen), atol=1e-8)
    nominal = task.arm.tool_positions(seen[:, : len(task.joint_names)])
    assert (np.linalg.norm(seen[:, -3:] - nominal, axis=1) > 0.01).all()


def test_noise_and_delay_change_what_is_measured_but_not_what_counts():
    plain, delayed = tracked(), tracked(tracker=dataclasses.replace(WRONG, delay=0.04))
    noisy = tracked(tracker=dataclasses.replace(WRONG, noise=0.005))
    assert noisy.random_start and not plain.random_start
    seen, late, rough = (play(task, 2)[0] for task in (plain, delayed, noisy))
    np.testing.assert_array_equal(late[1:, -3:], seen[:-1, -3:])  # one control period
    np.testing.assert_array_equal(late[:, :-3], seen[:, :-3])
    spread = (rough[:, -3:] - seen[:, -3:]).std()
    assert 0.003 < spread < 0.008
    np.testing.assert_array_equal(noisy.judged_goals(rough), plain.judged_goals(seen))


def test_the_same_seed_gives_the_same_noise_and_another_seed_another_one():
    task = tracked(tracker=dataclasses.replace(WRONG, noise=0.005, delay=0.02))
    first, again, other = (play(task, seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0, -3:], other[0, -3:])


@pytest.mark.parametrize('robot', ['ur5e', 'fetch'])
def test_goals_are_in_the_frame_of_the_camera_where_the_true_arm_can_reach_them(robot):
    task = tracked(robot)
    interface = task.interface
    assert interface.frame == 'camera' and interface.is_tracked
    for seed in range(20):
        goal = task.reset(seed=seed)[0]['desired_goal']
        assert (np.array(interface.goal_low) <= goal).all()
        assert (goal <= np.array(interface.goal_high)).all()


def test_evaluations_judge_by_the_true_pose():
    rough = Evaluator('reach', options(tracker=dataclasses.replace(WRONG, noise=0.1)))
    plain = Evaluator('reach', options())

    def rest(observations, goals):
        return np.zeros((len(observations), 6), np.float32)

    one, other = rough.run(rest, range(5)), plain.run(rest, range(5))
    assert one.motions_at_goal.max() < 1e-3  # by the measured pose it would be 0.5 m
    assert one.final_errors.shape == other.final_errors.shape


def test_options_of_the_tracker_without_a_measured_pose_are_refused():
    with pytest.raises(OptionError, match=r'task.tool_pose=topic'):
        Reach(ReachOptions(tracker=WRONG))
    with pytest.raises(OptionError, match=r'camera_turn takes three numbers'):
        tracked(tracker=TrackerOptions(camera_turn=(1.0,)))


def test_goals_of_the_robot_file_are_in_the_frame_of_the_camera(tmp_path):
    path = tmp_path / 'seen.yaml'
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    box = 'low: [0.4, 0.0, 0.3], high: [0.5, 0.2, 0.4]'
    path.write_text(f'{source}\ntool_pose: {{source: topic, goals: {{{box}}}}}\n')
    turned = TrackerOptions(camera_turn=(0.0, 0.0, 90.0))
    task = Reach(ReachOptions(robot=str(path), tracker=turned))
    assert (task.interface.goal_low, task.interface.goal_high) == (
        (0.4, 0.0, 0.3),
        (0.5, 0.2, 0.4),
    )
    goals = np.array([task.reset(seed=seed)[0]['desired_goal'] for seed in range(30)])
    assert (goals >= task.interface.goal_low).all() and (goals <= task.interface.goal_high).all()
    assert np.ptp(goals, axis=0).min() > 0.05
    # An arm that is not simulated has the same interface; where its camera is is not known.
    real = Reach(ReachOptions(robot=str(path)), arm=task.arm)
    assert real.interface == task.interface
    assert real.tracker is None
    real.tracked = np.array((0.41, 0.1, 0.35))
    start = real.reset(seed=1)[0]
    np.testing.assert_array_equal(start['achieved_goal'], real.tracked)
    with pytest.raises(OptionError, match=r'need a simulated arm'):
        Reach(ReachOptions(robot=str(path), tracker=turned), arm=task.arm)


def test_an_arm_that_is_not_simulated_needs_goals():
    with pytest.raises(OptionError, match=r'tool_pose.goals .* is needed'):
        Reach(ReachOptions(robot='ur5e', tool_pose='topic'), arm=tracked().arm)
