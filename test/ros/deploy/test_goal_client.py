"""A program that sends goals: answers, refusals and drops come as data, not as silence."""

from geometry_msgs.msg import PointStamped
from mher_ros.errors import ArmError
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.deploy import goal_client
from mher_ros.ros.deploy.goal_client import GoalClient
import numpy as np
import pytest

pytestmark = pytest.mark.ros


@pytest.fixture
def client_of(world):
    """Return a function that makes a client with a node of its own."""
    import rclpy
    from rclpy.context import Context

    made = []

    def make(frame='world'):
        context = Context()
        rclpy.init(args=[], context=context, domain_id=world.domain)
        node = rclpy.create_node(f'client{len(made)}', context=context)
        made.append((GoalClient(frame, node), context))
        return made[-1][0]

    yield make
    for client, context in made:
        client.close()
        context.try_shutdown()


@pytest.fixture
def deployed_client(deploy, client_of):
    """Return a deployed policy, and a client that may send goals."""
    deployed = deploy('joint_trajectory')
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    client = client_of()
    client.wait_until_ready(60.0)
    return deployed, client


def test_a_goal_is_answered_and_reached(deployed_client):
    deployed, client = deployed_client
    goal = tuple(deployed.far_goal())
    assert client.go_to(goal) == client.goal == goal
    assert not client.is_reached
    assert client.wait_until_reached(60.0)
    assert client.is_reached
    assert client.distance <= client.status.threshold
    # The same goal once more is another one, and is answered again.
    accepted = client.status.accepted
    assert client.go_to(goal) == goal
    assert client.status.accepted == accepted + 1


@pytest.mark.parametrize(
    ('goal', 'code'), [((9.0, 9.0, 9.0), 'outside_workspace'), ((1.3, np.nan, 0.5), 'bad_message')]
)
def test_a_refusal_has_a_code_and_the_goal_before_stays(deployed_client, goal, code):
    deployed, client = deployed_client
    first = client.go_to(deployed.far_goal())
    with pytest.raises(GoalError) as refused:
        client.go_to(goal)
    assert refused.value.code == code
    assert client.goal is None
    assert not client.wait_until_reached(60.0)  # does not wait for the goal of before
    client.spin(0.5)
    assert client.status.goal == first


def test_a_goal_that_is_dropped_says_for_what(deployed_client):
    deployed, client = deployed_client
    client.go_to(deployed.far_goal())
    deployed.trigger('stop')
    with pytest.raises(GoalError) as dropped:
        client.wait_until_reached(60.0)
    assert dropped.value.code == 'stopped'
    with pytest.raises(GoalError) as refused:
        client.go_to(deployed.far_goal())
    assert refused.value.code == 'stopped'
    deployed.trigger('clear')
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    client.go_to(deployed.far_goal())
    assert deployed.change('deactivate')
    with pytest.raises(GoalError) as dropped:
        client.wait_until_reached(60.0)
    assert dropped.value.code == 'not_active'


def test_of_two_clients_each_gets_its_own_answer(deployed_client, client_of):
    deployed, one = deployed_client
    other = client_of('')
    other.wait_until_ready(60.0)
    near, far = deployed.far_goal(), (9.0, 9.0, 9.0)
    first = one.go_to(near)
    with pytest.raises(GoalError) as refused:
        other.go_to(far)
    assert refused.value.code == 'outside_workspace'
    assert one.goal == first
    second = other.go_to(near + (0.0, 0.0, 0.01))
    with pytest.raises(GoalError) as dropped:
        one.wait_until_reached(60.0)
    assert dropped.value.code == 'superseded'
    assert other.goal == second
    assert other.wait_until_reached(60.0)


def test_a_node_that_is_started_again_answers_again(deployed_client):
    deployed, client = deployed_client
    for _ in range(3):
        client.go_to(deployed.far_goal())

    def takers():
        found = client.node.get_subscriptions_info_by_topic('clicked_point')
        return {tuple(one.endpoint_gid) for one in found if one.node_name == 'policy_node'}

    before = takers()
    deployed.node.kill()
    deployed.start()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    goal = tuple(deployed.far_goal())
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.peer.wait_until(lambda: takers() - before, 'the client finds the new node')
    client.spin(1.0)
    assert client.go_to(goal) == goal
    assert client.status.accepted == 1


def test_only_where_nobody_answers_a_client_gives_up(deployed_client, world, monkeypatch):
    deployed, client = deployed_client
    monkeypatch.setattr(goal_client, 'GONE', 1.0)
    deployed.node.kill()
    # Somebody else hears of goals, and answers none.
    world.peer().node.create_subscription(PointStamped, 'clicked_point', lambda _: None, 10)
    with pytest.raises(ArmError, match='no answer within'):
        client.go_to(deployed.far_goal())
    assert client.goal is None


def test_a_node_that_does_not_become_active_is_told_by_its_state(deploy, client_of):
    deployed, client = deploy(autostart=False), client_of()
    with pytest.raises(ArmError, match='not known'):
        client.wait_until_ready(0.0)
    deployed.node.wait_for('waiting to be configured')
    deployed.peer.wait_until(lambda: client.spin(0.1) or client.status.state, 'a status')
    with pytest.raises(ArmError, match='state is unconfigured'):
        client.wait_until_ready(0.2)


def test_an_active_node_without_joint_states_is_not_ready_yet(deploy, client_of):
    deployed, client = deploy('joint_trajectory'), client_of()
    deployed.arm.is_silent = True
    deployed.wait_until_active()
    deployed.peer.wait_until(lambda: client.spin(0.1) or client.status.is_active, 'a status')
    with pytest.raises(ArmError, match='state is no_state'):
        client.wait_until_ready(0.5)
    deployed.arm.is_silent = False
    client.wait_until_ready(60.0)
    assert client.go_to(deployed.far_goal())
