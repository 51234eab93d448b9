"""An arm behind topics that a test has in its hands: it does as told, or what the test wants."""

import threading
import time

from arm_models import load_arm, model_text
from command_path_arm import joint_velocities
from geometry_msgs.msg import PoseStamped, TwistStamped
from mher_ros.ros.common.polled_topic import LATCHED
import numpy as np
from rclpy.time import Time
from ros_peer import Listener
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

MESSAGES = {
    'twist': TwistStamped,
    'pose': PoseStamped,
    'joint_trajectory': JointTrajectory,
    'joint_position': Float64MultiArray,
    'joint_velocity': Float64MultiArray,
}
RATE = 100.0
"""States in a second, unless a test says otherwise."""


class FakeArm:
    """
    Fetch as a kinematic model, in the node of a peer.

    It keeps doing what it was told last: an arm that is not stopped moves on.
    """

    def __init__(self, peer, output, tells_model=True, simulated=None):
        """Move by what ``simulated`` returns [s]; default: the wall clock's time."""
        self.robot, self.model = load_arm('fetch')
        self.output, self.kind = output, MESSAGES[output]
        self.names = list(self.model.state_names)
        self.positions = np.array([self.robot.home[name] for name in self.names])
        self.commands = Listener()
        self.published = 0
        """States told so far."""
        self.spoil = None
        """Changes a joint state before it is told."""
        self.rate = RATE
        self.company = ()
        """Joint states of others that are told right after each of the arm's."""
        self.is_silent = self.is_stuck = False
        self.shift = 0
        """Added to the stamps [ns]."""
        self._now = simulated or time.monotonic
        node = peer.node
        self._peer, self._clock = peer, node.get_clock()
        self._model = node.create_publisher(String, 'robot_description', LATCHED)
        if tells_model:
            self.tell_model()
        self._states = node.create_publisher(JointState, 'joint_states', 10)
        self.topic = self.robot.topics.commands[output]
        self.meet()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def tool(self):
        return self.model.tool(self.positions, np.zeros(len(self.positions)))[0]

    def meet(self):
        """Subscribe to commands."""
        self._subscription = self._peer.node.create_subscription(
            self.kind, self.topic, self.commands, 1000
        )

    def leave(self):
        """End the subscription, as a controller that is gone."""
        self._peer.node.destroy_subscription(self._subscription)

    def tell_model(self):
        self._model.publish(String(data=model_text('fetch')))

    def wait_for_states(self, count):
        """Wait until so many more were told."""
        end = self.published + count
        self._peer.wait_until(lambda: self.published >= end, f'{count} more states')

    def close(self):
        self._closing.set()
        self._thread.join()

    def _run(self):
        last = self._now()
        while not self._closing.wait(1.0 / self.rate):
            now = self._now()
            velocities = np.zeros(len(self.positions))
            # A simulated clock may not have moved on.
            if self.commands.messages and not self.is_stuck and now > last:
                most = self.model.velocity_limits
                wanted = self._velocities(self.commands.messages[-1], now - last)
                velocities[: len(most)] = np.clip(wanted, -most, most)
            self.positions = self.positions + velocities * (now - last)
            last = now
            if not self.is_silent:
                self._tell(velocities)

    def _tell(self, velocities):
        message = JointState(
            name=[*self.names], position=self.positions.tolist(), velocity=velocities.tolist()
        )
        stamp = Time(nanoseconds=self._clock.now().nanoseconds + self.shift)
        message.header.stamp = stamp.to_msg()
        if self.spoil is not None:
            self.spoil(message)
        self._states.publish(message)
        for other in self.company:
            self._states.publish(other)
        self.published += 1

    def _velocities(self, command, seconds):
        """Return what a command asks of the joints (k,) [rad/s]."""
        count = len(self.model.joint_names)
        if self.output == 'joint_velocity':
            return np.array(command.data)
        if self.output == 'joint_position':
            return (np.array(command.data) - self.positions[:count]) / seconds
        if self.output == 'joint_trajectory':
            return (np.array(command.points[-1].positions) - self.positions[:count]) / seconds
        if self.output == 'twist':
            wanted = vector(command.twist.linear)
        else:
            wanted = (vector(command.pose.position) - self.tool) / seconds
        return joint_velocities(self.model, self.positions, wanted)


def vector(message):
    return np.array((message.x, message.y, message.z))
