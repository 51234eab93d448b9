"""A robot that does not wait, commanded by a learner: a real sim_node at the other end."""

import time

from geometry_msgs.msg import PoseStamped
from mher_ros.control.safety_monitor import SafetyOptions
from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import ArmError, EpisodeLostError
from mher_ros.files import share_folder
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.ros.train.arm_env import ArmEnv
from mher_ros.ros.train.real_time_link import RealTimeLink
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
import numpy as np
import pytest
from sensor_msgs.msg import JointState

pytestmark = pytest.mark.ros

STILL = 1e-3
"""By which joints of an arm at rest move in half a second [rad]."""
MOVED = 0.01
"""By which a joint has moved that is moving [rad]."""


def reach(robot='ur5e'):
    config = load_robot(robot)
    return Reach(ReachOptions(robot=str(robot)), arm=ArmModel(config.simulated()))


class Learner:
    """A link to a simulated UR5e, and what an onlooker sees of the arm."""

    def __init__(self, world):
        world.sim_node(robot='ur5e', stepping='realtime')
        self.latch, self.task = StopLatch(), reach()
        peer = world.peer()
        patient = SafetyOptions(resume_within=30.0)  # the machine may be busy
        self.link = RealTimeLink(peer.node, self.task, self.latch, timeout=30.0, safety=patient)
        self.env = ArmEnv(self.task, self.link)
        self.states = world.peer().listen(JointState, 'joint_states')

    def move(self, sign=1.0):
        """Ask for a motion of all joints until they have moved, however busy the machine is."""
        start, end = self.position(), time.monotonic() + 60.0
        while (sign * (self.position() - start)).min() < MOVED:
            assert time.monotonic() < end, 'it does not move'
            try:
                self.env.step(np.full(6, sign, np.float32))
            except EpisodeLostError:  # joint states came too late
                self.env.reset(seed=1)

    def position(self):
        return np.array(self.states.wait_for().position)

    def wait_until_still(self):
        end = time.monotonic() + 30.0
        while True:
            before = self.position()
            time.sleep(0.5)
            if np.abs(self.position() - before).max() < STILL:
                return
            assert time.monotonic() < end, 'it goes on'


@pytest.fixture
def learner(world):
    learner = Learner(world)
    learner.env.reset(seed=1)
    yield learner
    learner.env.close()


def test_the_arm_moves_as_it_is_asked_and_rests_when_nobody_asks_any_longer(learner):
    learner.move()
    learner.wait_until_still()
    # An episode begins where the last one ended.
    observation, _ = learner.env.reset(seed=2)
    order = [learner.states.messages[-1].name.index(name) for name in learner.task.joint_names]
    np.testing.assert_allclose(
        observation['observation'][:6], learner.position()[order], atol=STILL
    )


def test_an_action_that_is_late_by_less_than_a_period_has_a_whole_period_of_its_own(learner):
    # Otherwise the model would learn that it moves the arm less.
    learner.env.step(np.zeros(6, np.float32))
    missed = learner.link.repeats
    time.sleep(0.6 * learner.task.interface.control_period)
    learner.env.step(np.zeros(6, np.float32))
    assert learner.link.repeats == missed + 1


def test_a_stop_brakes_the_arm_and_ends_the_run_which_does_not_move_it_again(learner):
    learner.move()
    learner.latch.set('a test')
    with pytest.raises(ArmError, match='the arm was stopped .stopped.: .*a test.*resume'):
        for _ in range(5):
            learner.env.step(np.ones(6, np.float32))
    learner.wait_until_still()
    # Not even when the stop is cleared: a person says when it may move.
    learner.latch.clear()
    with pytest.raises(ArmError, match='the arm was stopped'):
        learner.env.reset(seed=3)


def test_whoever_learns_is_told_when_the_arm_cannot_be_commanded_any_longer(learner, monkeypatch):
    def fail():
        raise RuntimeError('a test')

    monkeypatch.setattr(learner.link.driver, 'step', fail)
    learner.link._thread.join(10.0)
    monkeypatch.undo()
    with pytest.raises(ArmError, match='cannot be commanded'):
        learner.env.step(np.ones(6, np.float32))
    with pytest.raises(ArmError, match='cannot be commanded'):
        learner.env.reset(seed=4)


def test_an_arm_that_is_not_commanded_by_its_joints_is_refused(tmp_path, world):
    path = tmp_path / 'twist.yaml'
    text = (share_folder() / 'config' / 'robots' / 'ur5e.yaml').read_text()
    path.write_text(text.replace('output: joint_position', 'output: twist'))
    with pytest.raises(OptionError, match='joint_trajectory, joint_position.*; got twist'):
        RealTimeLink(world.peer().node, reach(path), StopLatch())


def test_a_learner_sees_the_measured_pose_of_the_tool(world, tmp_path):
    path = tmp_path / 'seen.yaml'
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    box = 'low: [0.3, -0.1, 0.2], high: [0.6, 0.2, 0.5]'
    path.write_text(f'{source}\ntool_pose: {{source: topic, timeout: 2.0, goals: {{{box}}}}}\n')
    turned = {'tracker.camera_turn': '0,0,90'}
    world.node('sim_node', robot=str(path), stepping='realtime', **turned)
    task, peer = reach(path), world.peer()
    poses = peer.listen(PoseStamped, 'tracked_pose')
    link = RealTimeLink(
        peer.node, task, StopLatch(), timeout=30.0, safety=SafetyOptions(resume_within=30.0)
    )
    env = ArmEnv(task, link)
    observation, _ = env.reset(seed=1)
    seen = poses.wait_for().pose.position
    assert abs(seen.x - task.arm.tool_position(env.joint_state()[0])[0]) > 0.01
    np.testing.assert_allclose(observation['achieved_goal'], (seen.x, seen.y, seen.z), atol=STILL)
    env.close()
