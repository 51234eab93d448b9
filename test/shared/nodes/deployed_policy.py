"""A policy_node, a fake arm that it moves, and a client that sends goals."""

import itertools

from fake_arm import FakeArm, vector
from geometry_msgs.msg import PointStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from mher_ros.ros.common.status import ACCEPTED, DeploymentStatus, point_of
import numpy as np
from std_srvs.srv import Trigger

PATIENT = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}
"""For a machine that may be busy with other tests."""
HEARTBEATS = 3
"""Messages of the status, 0.2 s apart, in which a command that should not come would come."""
LOW, HIGH = np.array((1.22, 0.64, 0.47)), np.array((1.43, 0.86, 0.63))
"""Goals are in this box [m]: so far inside that an arm whose tool has tilted reaches them."""


class DeployedPolicy:
    """A policy_node on a fake arm that the test controls."""

    def __init__(
        self,
        world,
        policy,
        output='twist',
        remap=(),
        tells_model=True,
        simulated=None,
        **parameters,
    ):
        self._world, self._remap = world, remap
        self._parameters = {'robot': 'fetch', 'policy': str(policy), 'output': output}
        self._parameters.update({**PATIENT, **parameters})
        self.peer = world.peer(remap)
        self.output = output
        self.arm = FakeArm(
            self.peer, output if output != 'none' else 'joint_trajectory', tells_model, simulated
        )
        self.commands = self.arm.commands
        self.start()

    def start(self):
        self.node = self._world.node('policy_node', self._remap, **self._parameters)

    def wait_until_active(self):
        self.node.wait_for('active: waiting for goals')
        self.meet()

    def send(self, goal, frame='world'):
        """Send a goal, and return the status that answers it."""
        seen = len(self.statuses.messages)
        before, sent = self.statuses.messages[seen - 1].answers, point_of(goal)
        self.publish(goal, frame)
        return self.statuses.wait_for(
            lambda status: status.answers != before and status.answered_position == sent,
            after=seen,
        )

    def publish(self, goal, frame='world'):
        message = PointStamped()
        message.header.frame_id = frame
        message.header.stamp = self.peer.node.get_clock().now().to_msg()
        message.point.x, message.point.y, message.point.z = map(float, goal)
        self._goals.publish(message)

    def far_goal(self):
        """Return a goal that is some time away."""
        return np.where(self.arm.tool > (LOW + HIGH) / 2, LOW, HIGH)

    def go(self, goal=None):
        """Send a goal, and return it as it was accepted."""
        answered = self.send(self.far_goal() if goal is None else goal)
        assert answered.answer == ACCEPTED, answered
        return np.array(answered.accepted_goal)

    def move(self):
        """Send the arm to a goal and return when it is on its way."""
        start = self.arm.tool
        self.go()
        self.peer.wait_until(
            lambda: np.linalg.norm(self.arm.tool - start) > 0.02, 'the arm moves', self.status
        )

    def drop_goal(self):
        """Return when the node takes goals again, and has none."""
        self.trigger('stop')
        self.node.wait_for('stopped until')
        self.trigger('clear')
        self.node.wait_for('there is no goal')

    def wait_until_reached(self):
        self.statuses.wait_for(lambda status: status.reached)

    def status(self):
        """Return the status as it was published last."""
        return self.statuses.messages[-1]

    def wait_for_status(self, accept):
        """Return the status once it is accepted."""
        return self.statuses.wait_for(accept, after=-2)

    def wait_for_stop(self):
        """Return when a command asks for rest."""
        self.peer.wait_until(lambda: any(stops(self.commands.messages)), 'a stop')

    def expect_one_stop(self, happen):
        """Let something happen to a moving arm: it slows down to a stop, and then nothing."""
        self.commands.messages.clear()
        happen()
        self.wait_for_stop()
        self.expect_silence()

    def expect_silence(self):
        """No command may have been sent in the meantime, except one stop."""
        self.wait_for_heartbeats()
        rests = stops(self.commands.messages)
        assert rests.count(True) == rests[-1:].count(True), rests

    def expect_no_goal_is_taken(self):
        """Send a goal: it is refused, and no command is sent; return the code."""
        self.peer.wait_until(self._goals.get_subscription_count, 'a subscriber of goals')
        self.commands.messages.clear()
        answered = self.send(self.far_goal())
        assert answered.answer not in ('', ACCEPTED)
        self.wait_for_heartbeats()
        assert not self.commands.messages
        return answered.answer

    def wait_for_heartbeats(self, count=HEARTBEATS):
        for _ in range(count):
            self.statuses.wait_for()

    def trigger(self, service):
        answer = self.peer.ask(Trigger, f'policy_node/{service}')
        assert answer.success
        return answer.message

    def change(self, name):
        """Ask for a transition; return whether it was made."""
        transition = Transition(id=getattr(Transition, f'TRANSITION_{name.upper()}'))
        answer = self.peer.ask(ChangeState, 'policy_node/change_state', transition=transition)
        return answer.success

    def state(self):
        return self.peer.ask(GetState, 'policy_node/get_state').current_state.label

    def close(self):
        self.arm.close()

    def meet(self):
        """Find the topics of a node that is configured."""
        self._goals = self.peer.talk(PointStamped, 'clicked_point')
        self.statuses = self.peer.follow(DeploymentStatus, 'policy_node')
        self.statuses.wait_for(after=0)
        if self.output != 'none':
            self.peer.wait_until(self.is_commanded, 'a publisher of commands')

    def is_commanded(self):
        return self.peer.node.count_publishers(self.arm.topic) > 0


def stops(messages):
    """Return which commands ask for rest: a twist of zero, or the joints of the one before."""
    if messages and hasattr(messages[0], 'twist'):
        return [not vector(command.twist.linear).any() for command in messages]
    joints = [list(command.points[-1].positions) for command in messages]
    return [False, *(one == other for one, other in itertools.pairwise(joints))][: len(joints)]
