"""The command path on topics: what leaves for an arm, and what does not."""

import contextlib
import time

from mher_ros.control.action_controller import ActionController
from mher_ros.control.stop_latch import StopLatch
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.model_file import find_file, read_model
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.common.arm_driver import ArmDriver
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

pytestmark = pytest.mark.ros


class Driven:
    """A UR5e that never moves, and a driver that steps when the test says so."""

    def __init__(self, world, text=None):
        """``text``: its URDF; default: one whose meshes are found."""
        robot = load_robot('ur5e')
        arm = ArmModel(robot, text) if text else ArmModel(robot.simulated())
        task = Reach(ReachOptions(robot='ur5e'), arm=arm)
        self.latch, self.peer = StopLatch(), world.peer()
        self.controller = ActionController(
            task.interface, arm, task.workspace, robot.output, latch=self.latch
        )
        node = world.peer().node
        latency = Latency(1.0)
        self.driver = ArmDriver(
            node, robot, arm, self.controller.path, robot.output, self.latch, latency
        )
        self.commands = self.peer.listen(
            Float64MultiArray, robot.topics.commands['joint_position']
        )
        self._states = self.peer.talk(JointState, 'joint_states')
        positions = [robot.home[name] for name in robot.joints]
        self._state = JointState(name=list(robot.joints), position=positions)
        self.driver.activate()

    def step(self):
        """Publish a state, and step until the driver has taken it."""
        self._state.header.stamp = self.peer.node.get_clock().now().to_msg()
        self._states.publish(self._state)
        for _ in range(3):
            self.driver.step()

    def move(self):
        """Ask for a motion, unless states were late, as on a busy machine."""
        with self.driver.lock, contextlib.suppress(GoalError):
            self.controller.act(self.driver.clock.now(), np.ones(6, np.float32))


@pytest.fixture
def driven(world):
    driven = Driven(world)
    driven.peer.wait_until(lambda: driven.step() or driven.driver.path.positions.size, 'a state')
    yield driven
    driven.driver.close()


def test_a_motion_that_is_asked_for_leaves(driven):
    def has_left():
        driven.move()
        driven.step()
        return len(driven.commands.messages) > 5

    driven.peer.wait_until(has_left, 'commands')
    assert driven.driver.path.is_moving


def test_a_command_is_withheld_if_a_stop_comes_while_it_is_written(driven):
    output = driven.driver._commands
    write, sent = output.write, []

    def write_and_stop(command):
        driven.latch.set('a test')
        return write(command)

    output.write, output.send = write_and_stop, sent.append

    def is_stopped():
        driven.move()
        driven.step()
        return driven.latch.reason

    driven.peer.wait_until(is_stopped, 'a command')
    assert not sent
    # Nothing had moved, so nothing need brake.
    driven.step()
    assert not sent
    assert not driven.driver.path.is_moving


def test_a_command_is_withheld_if_the_arm_has_come_to_rest_before_it_can_leave(driven):
    path, sent = driven.driver.path, []
    driven.driver._commands.send = sent.append
    outdated, path.is_outdated = [], lambda now: not outdated.append(now)

    def is_made():
        driven.move()
        driven.step()
        return outdated

    driven.peer.wait_until(is_made, 'a command')
    assert not sent


def test_a_command_that_is_50_ms_old_before_it_can_leave_is_withheld(driven):
    output = driven.driver._commands
    write, send, written, sent = output.write, output.send, [], []

    def write_slowly(command):
        written.append(command)
        time.sleep(0.06)
        return write(command)

    def are_written():
        driven.move()
        driven.step()
        return len(written) >= 3

    output.write, output.send = write_slowly, sent.append
    driven.peer.wait_until(are_written, 'commands')
    assert not sent
    # None of them has moved the set-point.
    places = [command.joint_positions for command in written]
    assert np.ptp(places, axis=0).max() == 0.0
    output.write, output.send = write, send
    test_a_motion_that_is_asked_for_leaves(driven)


def test_links_without_collision_avoidance_are_logged_once(world, capfd):
    robot = load_robot('ur5e')
    text = read_model(find_file(robot.simulation_model, robot.folder))
    Driven(
        world, text.replace('package://example-robot-data', 'package://not_here')
    ).driver.close()
    [line] = [line for line in capfd.readouterr().err.splitlines() if 'not avoided' in line]
    assert 'shoulder_link' in line
    assert 'wrist_3_link' in line
    assert 'not_here' in line
    Driven(world).driver.close()
    assert 'not avoided' not in capfd.readouterr().err
