"""A sim_node in its own ROS domain, and a client of it."""

from mher_ros.ros.common.raw_messages import SECOND
from mher_ros.ros.common.status import SimulationStatus
import numpy as np
from rclpy.time import Time
from sensor_msgs.msg import JointState, Joy
from std_srvs.srv import Trigger

PERIOD = SECOND // 10
"""Of point2d_large [ns]."""


def stamp_of(message):
    return Time.from_msg(message.header.stamp).nanoseconds


class SimNodeArm:
    """A sim_node in its own ROS domain, with a client that sends commands and reads states."""

    def __init__(self, world, command=(Joy, 'action'), **parameters):
        self.process = world.sim_node(**parameters)
        self.peer = world.peer()
        self.states = self.peer.listen(JointState, 'joint_states')
        self.statuses = self.peer.follow(SimulationStatus, 'sim_node')
        self._commands = self.peer.talk(*command)
        if parameters.get('stepping') != 'realtime':
            self.send((0.0, 0.0), 0)  # answered with the latest state

    def latest(self):
        """Return the newest state, as stamp [ns] and position."""
        if not self.states.messages:
            self.states.wait_for(after=0)
        message = self.states.messages[-1]
        return stamp_of(message), np.array(message.position)

    def send(self, action, stamp):
        message = Joy(axes=list(map(float, action)))
        message.header.stamp = Time(nanoseconds=stamp).to_msg()
        self._commands.publish(message)

    def publish(self, message):
        self._commands.publish(message)

    def step(self, action):
        """Answer the latest state and return the next one."""
        stamp, _ = self.latest()
        self.send(action, stamp)
        self.states.wait_for(lambda state: stamp_of(state) == stamp + PERIOD, after=-1)
        return self.latest()

    def reset(self):
        """Return its status, once a state of the new start is here; the first one may be lost."""
        before = self.statuses.wait_for(after=-2)
        assert self.peer.ask(Trigger, 'sim_node/reset').success
        status = self.statuses.wait_for(lambda told: told.resets == before.resets + 1, after=-2)
        self.states.wait_for(lambda state: stamp_of(state) >= status.reset_stamp, after=0)
        return status

    def figures(self, **expected):
        """Return the figures of /diagnostics once those named are as expected."""
        names = {key.replace('_', ' '): str(value) for key, value in expected.items()}
        return self.peer.figures(
            'sim_node', lambda told: all(told[key] == names[key] for key in names)
        )
