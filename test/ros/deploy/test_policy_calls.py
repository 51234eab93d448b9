"""Goals and stops from the command line: the real policy_node, and an arm."""

from mher_ros.cli import main
from mher_ros.errors import ArmError
from mher_ros.ros.deploy import goal_client
import pytest
from std_srvs.srv import Trigger

pytestmark = pytest.mark.ros


@pytest.fixture
def mher(world, monkeypatch, capsys):
    """Return a function that runs a command, and returns its code, its output and its errors."""
    monkeypatch.setenv('ROS_DOMAIN_ID', str(world.domain))

    def run(*words):
        capsys.readouterr()
        code = main(words)
        out, error = capsys.readouterr()
        return code, out.rstrip('\n'), error

    return run


def test_goals_are_sent_stopped_and_cleared_in_a_namespace(world, policy, mher, monkeypatch):
    remap = {'__ns': '/left'}
    world.node('sim_node', remap, robot='fetch').wait_for('fetch: .* joints, commanded by')
    patient = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}
    node = world.node('policy_node', remap, robot='fetch', policy=str(policy), **patient)
    node.wait_for('active: waiting for goals')
    here = ('--namespace', 'left')

    code, out, _ = mher('goal', '1.3', '0.8', '0.6', '--wait', *here)
    assert code == 0
    assert out.startswith('goal: (1.300, 0.800, 0.600) m\nreached, ')

    code, out, error = mher('goal', '9', '0', '0', *here)
    assert (code, out) == (1, '')
    assert 'the goal was refused (outside_workspace): ' in error

    code, out, _ = mher('stop', *here)
    assert (code, out) == (0, 'stopped: the arm brakes; ~/clear ends it')
    node.wait_for('stopped until')
    code, _, error = mher('goal', '1.3', '0.75', '0.6', *here)
    assert code == 1
    assert 'the goal was refused (stopped): ' in error
    code, out, _ = mher('clear', *here)
    assert (code, out) == (0, 'the stop is cleared; the next goal moves the arm')
    code, out, _ = mher('goal', '1.3', '0.75', '0.6', *here)
    assert (code, out) == (0, 'goal: (1.300, 0.750, 0.600) m')

    monkeypatch.setattr(goal_client, 'FINDING', 4.0)
    with pytest.raises(ArmError, match='no policy_node was found in namespace / .* one in /left:'):
        goal_client.call_arm_nodes('', 'clear')
    monkeypatch.setattr(goal_client, 'FINDING', 0.2)
    with pytest.raises(ArmError, match='THE ARM WAS NOT STOPPED'):
        goal_client.call_arm_nodes('', 'stop')


def test_an_arm_that_learns_is_stopped_as_well(world, mher):
    peer = world.peer()
    calls = []

    def stop(_, response):
        calls.append(response)
        response.success, response.message = True, 'stopping, with a checkpoint'
        return response

    peer.node.create_service(Trigger, 'train_node/stop', stop)
    assert mher('stop')[:2] == (0, 'stopping, with a checkpoint')
    assert len(calls) == 1


def test_where_there_is_no_policy_node_a_call_fails(world, monkeypatch, capsys):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(world.domain))
    monkeypatch.setattr(goal_client, 'FINDING', 0.2)
    for words in (('stop',), ('clear',), ('goal', '1', '2', '3')):
        assert main(words) == 1
        assert f'in namespace / of ROS domain {world.domain}' in capsys.readouterr().err
