"""Learning with a measured pose of the tool over topics: the same as in one process."""

import dataclasses

from arm_episodes import actions_for, assert_same
from mher_ros.errors import ArmError
from mher_ros.options import OptionError
from mher_ros.robots.robot import load_robot
from mher_ros.ros.train.arm_env import ArmEvaluator
from mher_ros.ros.train.lockstep_link import RobotLink
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.tracker import TrackerOptions
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
import pytest

pytestmark = pytest.mark.ros

WRONG = TrackerOptions(
    camera_turn=(0.0, 10.0, 90.0),
    tool_offset_error=(0.0, 0.1, 0.0),
    link_error=0.03,
    arm_seed=3,
    noise=0.004,
    delay=0.04,
)


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / 'seen.yaml'
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    path.write_text(f'{source}\ntool_pose: {{source: topic, topic: marker}}\n')
    return str(path)


@pytest.fixture
def simulated(world, robot):
    wrong = {
        'tracker.camera_turn': '0,10,90',
        'tracker.tool_offset_error': [0.0, 0.1, 0.0],
        'tracker.link_error': 0.03,
        'tracker.arm_seed': 3,
        'tracker.noise': 0.004,
        'tracker.delay': 0.04,
    }
    node = world.node('sim_node', robot=robot, stepping='lockstep', **wrong)
    node.wait_for('joints, commanded by')
    return node


def test_episodes_and_evaluations_are_those_of_one_process_to_the_bit(world, robot, simulated):
    options = ReachOptions(episode_steps=10, threshold=0.05, robot=robot, tracker=WRONG)
    task, env = make('reach', options), world.arm(RobotLink, make('reach', options))
    for seed in (1, 2):
        assert_same(env.reset(seed=seed)[0], task.reset(seed=seed)[0])
        for action in actions_for(task, 10, seed):
            (observation, *rest), (expected, *others) = env.step(action), task.step(action)
            assert_same(observation, expected)
            assert rest == others

    def policy(observations, goals):
        return np.full((len(observations), 6), 0.3, np.float32)

    seen = ArmEvaluator(env).run(policy, range(3))
    expected = Evaluator('reach', options).run(policy, range(3))
    np.testing.assert_array_equal(seen.final_errors, expected.final_errors)
    np.testing.assert_array_equal(seen.motions_at_goal, expected.motions_at_goal)


def test_an_arm_with_other_errors_is_refused(world, robot, simulated):
    other = dataclasses.replace(WRONG, noise=0.0)
    env = world.arm(RobotLink, make('reach', ReachOptions(robot=robot, tracker=other)))
    with pytest.raises(ArmError, match=r'tracker camera_turn=0.0,10.0,90.0 .* expected'):
        env.reset(seed=1)


def test_over_topics_the_robot_file_decides(world):
    options = ReachOptions(robot='ur5e', tool_pose='topic')
    with pytest.raises(OptionError, match='tool_pose.source: topic is expected'):
        world.arm(RobotLink, make('reach', options))


def test_a_simulation_without_a_measured_pose_refuses_its_options(world):
    node = world.node('sim_node', robot='ur5e', **{'tracker.noise': 0.01})
    node.wait_for('tool_pose.source: topic')
    assert node.end() != 0
