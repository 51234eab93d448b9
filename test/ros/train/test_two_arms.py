"""Several arms in one ROS domain, each in a namespace of its own: trained and deployed at once."""

import time

from geometry_msgs.msg import PointStamped
from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.tasks import make
import numpy as np
import pytest
from rclpy.node import NodeNameNonExistentError
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

pytestmark = pytest.mark.ros

GLOBAL = {'/rosout', '/parameter_events', '/diagnostics', '/tf', '/tf_static', '/clock'}
"""Names that ROS has in no namespace."""
PATIENT = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}
"""For a machine that may be busy with other tests."""
ONE, OTHER = np.array((1.25, 0.65, 0.5)), np.array((1.4, 0.85, 0.6))
"""Goals [m]."""
NEAR = 0.03
"""Distance of a tool that has reached its goal [m]."""
REST = 0.01
"""By which a joint of an arm at rest may move [rad or m]."""
AGAIN = 5.0
"""Time after which a goal that was not reached is sent again [s]."""


SHORT = {'schedule.steps': '80'}
"""Four episodes, and an evaluation."""


class Learner:
    """A tiny run, and the robot that learns, in a namespace; the robot is paused at first."""

    def __init__(self, world, namespace, folder, robot, seed):
        self.folder = folder
        self.config = {'task.robot': robot, 'seed': seed, **SHORT}
        remap = {'__ns': namespace}
        sim = world.node('sim_node', remap, robot=robot, stepping='lockstep')
        sim.wait_for(f'{robot}: .* joints, commanded by')
        self._peer = world.peer(remap)
        self.states = self._peer.listen(JointState, 'joint_states')
        self.pause(True)
        self.process = world.train_node(
            folder, 'reach', SHORT, remap, robot=robot, seed=seed, arm_timeout=60.0
        )

    def first_state(self):
        """Return the state with which the run begins, once it waits for the next one."""
        self.process.wait_for('joint_states that can be used: .* is it paused')
        return self.states.wait_for()

    def pause(self, data):
        assert self._peer.ask(SetBool, 'sim_node/pause', data=data).success


class DeployedArm:
    """A policy and the arm that it moves, in a namespace, judged by the arm's joints alone."""

    def __init__(self, world, policy, namespace):
        self.namespace = namespace
        remap = {'__ns': namespace}
        self._sim = world.node('sim_node', remap, robot='fetch')
        self._node = world.node(
            'policy_node', remap, robot='fetch', policy=str(policy), output='twist', **PATIENT
        )
        self.peer = world.peer(remap)
        self._kinematics = ToolKinematics(make('fetch_reach').model, site='robot0:grip')

    def wait_until_ready(self):
        self._sim.wait_for('fetch: .* joints, commanded by')
        self._node.wait_for('active: waiting for goals')
        self.states = self.peer.listen(JointState, 'joint_states')
        self._goals = self.peer.talk(PointStamped, 'clicked_point')
        self.states.wait_for()

    def joints(self):
        return np.array(self.states.messages[-1].position)

    def distance(self, goal):
        return np.linalg.norm(self._kinematics.pose(self.joints())[0] - goal)

    def send(self, goal):
        message = PointStamped()
        message.header.frame_id = 'world'
        message.header.stamp = self.peer.node.get_clock().now().to_msg()
        message.point.x, message.point.y, message.point.z = goal
        self._goals.publish(message)

    def go(self, goal):
        """Send the goal until it is reached: a machine that stalls may have had it dropped."""
        sent = -AGAIN

        def is_there():
            nonlocal sent
            if time.monotonic() - sent > AGAIN:
                sent = time.monotonic()
                self.send(goal)
            return self.distance(goal) < NEAR

        self.peer.wait_until(is_there, f'{self.namespace} is at {goal}')

    def come_to_rest(self):
        """Return the joints once they are the same over a second of states."""

        def rests(_):
            last = np.array([state.position for state in self.states.messages[-100:]])
            return len(last) == 100 and np.ptp(last, axis=0).max() < 0.1 * REST

        self.states.wait_for(rests)
        return self.joints()

    def has_moved_from(self, joints):
        """Return whether any state since the first one with these joints differs from them."""
        told = np.array([state.position for state in self.states.messages])
        (since,) = np.nonzero((told == joints).all(axis=1))
        return np.abs(told[since[0] :] - joints).max() > REST

    def trigger(self, service):
        assert self.peer.ask(Trigger, f'policy_node/{service}').success


@pytest.mark.slow
def test_arms_in_one_domain_are_trained_and_deployed_side_by_side(
    world, tmp_path, policy, in_process, run_in
):
    left, right = (DeployedArm(world, policy, name) for name in ('/left', '/right'))
    learners = [
        Learner(world, f'/{name}/learner', tmp_path / name, robot, seed)
        for seed, (name, robot) in enumerate({'left': 'fetch', 'right': 'ur5e'}.items())
    ]
    for arm in (left, right):
        arm.wait_until_ready()

    # A goal moves the arm that it is sent to, and no other.
    rest = right.come_to_rest()
    left.go(ONE)
    assert not right.has_moved_from(rest)

    # A pause is of one arm, too.
    waiting, going = learners
    firsts = [learner.first_state() for learner in learners]
    going.pause(False)
    going.states.wait_for(lambda state: state != firsts[1])
    going.pause(True)
    assert waiting.states.messages[-1] == firsts[0]

    # Both robots train at the same time, beside the other arms.
    assert all(learner.process.is_running() for learner in learners)
    for learner in learners:
        learner.pause(False)

    # And so is a stop.
    rest = left.come_to_rest()
    left.trigger('stop')
    left.send(OTHER)
    right.go(OTHER)
    assert not left.has_moved_from(rest)
    rest = right.come_to_rest()
    left.trigger('clear')
    left.go(OTHER)
    assert not right.has_moved_from(rest)

    for learner in learners:
        assert learner.process.end() == 0
        run, expected = run_in(learner.folder), in_process('reach', **learner.config)
        assert run.rows() == expected.rows()
        assert run.policy() == expected.policy()


def test_all_names_of_all_nodes_are_in_their_namespace(world, tmp_path, policy):
    remap = {'__ns': '/left/arm'}
    world.node('sim_node', remap, robot='fetch')
    world.node('policy_node', remap, robot='fetch', policy=str(policy))
    world.node('view_node', remap, port=0)
    # It waits for a simulation of its own; the one that is there is another arm.
    world.train_node(tmp_path / 'run', remap=remap, arm='nobody', arm_timeout=600.0)
    peer = world.peer()
    node = peer.node
    expected = {
        'sim_node': {'/left/arm/clock', '/left/arm/joint_states', '/left/arm/sim_node/reset'},
        'policy_node': {'/left/arm/policy_node/markers', '/left/arm/policy_node/stop'},
        'view_node': {'/left/arm/goal_pose', '/left/arm/joint_states'},
        'train_node': {'/left/arm/action', '/left/arm/train_node/save'},
    }

    def names_of(name):
        try:
            return {
                found
                for ask in (
                    node.get_publisher_names_and_types_by_node,
                    node.get_subscriber_names_and_types_by_node,
                    node.get_service_names_and_types_by_node,
                    node.get_client_names_and_types_by_node,
                )
                for found, _ in ask(name, '/left/arm')
            }
        except NodeNameNonExistentError:
            return set()

    for name, some in expected.items():
        peer.wait_until(lambda name=name, some=some: some <= names_of(name), f'names of {name}')
        others = {found for found in names_of(name) if not found.startswith('/left/arm/')}
        assert others <= GLOBAL


def test_the_clock_of_a_simulation_is_that_of_its_namespace(world):
    """Two simulations of one domain, and a node that takes its time from one of them."""
    for name in ('left', 'right'):
        sim = world.node('sim_node', {'__ns': f'/{name}'}, task='point2d_large')
        sim.wait_for('joints, commanded by')
    peer = world.peer({'__ns': '/left', '/clock': 'clock'})
    assert peer.node.count_publishers('/clock') == 0
    clocks = peer.listen(Clock, '/clock')
    states = peer.listen(JointState, 'joint_states')
    clocks.wait_for(
        lambda told: told.clock in [state.header.stamp for state in states.messages[-50:]]
    )
    assert peer.node.count_publishers('clock') == 1
