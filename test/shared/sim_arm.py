"""A sim_node, and what a person in its ROS domain sees and does."""

from geometry_msgs.msg import TwistStamped
from mher_ros.ros.wire import SECOND
import numpy as np
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

PERIOD = SECOND // 10
"""Of point2d_large [ns]."""


def stamp_of(message):
    return Time.from_msg(message.header.stamp).nanoseconds


class Arm:
    """A sim_node of its own domain, and what a person in that domain sees and does."""

    def __init__(self, world, command=(TwistStamped, 'twist_command'), **parameters):
        self.process = world.sim_node(**parameters)
        self.peer = world.peer()
        self.states = self.peer.listen(JointState, 'joint_states')
        self._commands = self.peer.talk(*command)
        if parameters.get('stepping') != 'realtime':
            self.send((0.0, 0.0), 0)  # answered with the latest state

    def latest(self):
        """Return the newest state, as stamp [ns] and position."""
        if not self.states.messages:
            self.states.wait_for(after=0)
        message = self.states.messages[-1]
        return stamp_of(message), np.array(message.position)

    def send(self, velocity, stamp, frame='square', turn=0.0):
        message = TwistStamped()
        message.header.stamp = Time(nanoseconds=stamp).to_msg()
        message.header.frame_id = frame
        linear = message.twist.linear
        linear.x, linear.y, linear.z = map(float, (*velocity, 0.0)[:3])
        message.twist.angular.z = turn
        self._commands.publish(message)

    def publish(self, message):
        self._commands.publish(message)

    def step(self, velocity):
        """Answer the latest state and return the next one."""
        stamp, _ = self.latest()
        self.send(velocity, stamp)
        self.states.wait_for(lambda state: stamp_of(state) == stamp + PERIOD, after=-1)
        return self.latest()

    def reset(self):
        """Return what it says, once the first state is here."""
        said = self.peer.ask(Trigger, 'sim_node/reset')
        assert said.success
        first = int(said.message.split()[-1])
        self.states.wait_for(lambda state: stamp_of(state) == first, after=0)
        return said.message

    def figures(self, **expected):
        """Return the figures of /diagnostics once those named are as expected."""
        names = {key.replace('_', ' '): str(value) for key, value in expected.items()}
        return self.peer.figures(
            'sim_node', lambda told: all(told[key] == names[key] for key in names)
        )
