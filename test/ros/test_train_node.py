"""The learner as a node: a run from its start to its end, and how it is stopped on the way."""

from pathlib import Path
import re
import signal
import time

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import pytest
from rcl_interfaces.msg import Log
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

pytestmark = pytest.mark.ros

RELAYED = {
    'joint_states': 'relayed/joint_states',
    'twist_command': 'relayed/twist_command',
}


def test_a_run_is_that_of_one_process(world, tmp_path, in_process, run_in):
    """Also asks what can be asked of it on the way, which must not change it."""
    world.sim_node()
    relay = world.relay(hold='50')
    peer = world.peer()
    train = world.train_node(tmp_path / 'run', remap=RELAYED, seed=0)
    relay.wait_for('holding 50')  # the tenth step of the third episode
    rates = peer.listen(Float64, 'train_node/success_rate')
    errors = peer.listen(Float64, 'train_node/final_error')
    log = peer.listen(Log, '/rosout')

    names = peer.ask(ListParameters, 'train_node/list_parameters').result.names
    described = peer.ask(DescribeParameters, 'train_node/describe_parameters', names=names)
    described = {descriptor.name: descriptor for descriptor in described.descriptors}
    assert {'task', 'algorithm', 'preset', 'seed', 'steps', 'out', 'resume'} <= described.keys()
    assert described['arm_timeout'].floating_point_range[0].from_value == 0.5
    assert described['seed'].integer_range[0].from_value == 0
    values = peer.ask(GetParameters, 'train_node/get_parameters', names=['task', 'out']).values
    assert [value.string_value for value in values] == ['point2d_large', str(tmp_path / 'run')]

    waiting = peer.figures('train_node', lambda told: told['message'].startswith('waiting for'))
    assert waiting['level'] == b'\1'
    assert waiting['environment steps'] == '40'

    said = peer.ask(Trigger, 'train_node/save')
    assert said.success
    assert said.message == f'a checkpoint will be in {tmp_path / "run"} after this episode'
    relay.tell('go on')
    said = log.wait_for(lambda said: said.msg == 'checkpoint written after 60 steps', after=0)
    assert said.level == 20  # INFO

    assert train.end() == 0
    train.wait_for(f'policy: {tmp_path / "run" / "policy.onnx"}')
    run, expected = run_in(tmp_path / 'run'), in_process()
    assert run.rows() == expected.rows()
    assert run.policy() == expected.policy()
    for listener, key in ((rates, 'success_rate'), (errors, 'final_error')):
        told = [message.data for message in listener.messages]
        assert told == [float(row[key]) for row in expected.rows()]


def test_a_run_goes_on_from_whatever_ended_it_as_if_nothing_had(
    world, tmp_path, in_process, run_in
):
    folder = tmp_path / 'run'
    sim = world.sim_node()
    # The tenth step of the third episode, which is then done again; the first evaluation's 25th.
    relay = world.relay(hold='50,115')
    train = world.train_node(folder, remap=RELAYED)
    relay.wait_for('holding 50')
    train.signal(signal.SIGINT)
    assert train.end(5.0) == 0
    assert any('stopped after 40 steps: it was asked to stop' in line for line in train.lines)
    assert any(f'go on with resume:=true out:={folder}' in line for line in train.lines)
    assert run_in(folder).checkpoint()['env_steps'] == 40
    assert not (folder / 'policy.onnx').exists()
    relay.tell('go on')

    train = world.train_node(folder, remap=RELAYED, resume=True, arm_timeout=2.0)
    relay.wait_for('holding 115')
    sim.kill()
    silent = time.monotonic()
    assert train.end() == 1
    assert time.monotonic() - silent < 2.0 + 6.0  # the time-out is 10 s by default
    (said,) = (line for line in train.errors if line.startswith('train_node: '))
    assert 'nothing on /relayed/joint_states that can be used for 2 s' in said
    assert said.endswith('is the arm, or sim_node, running in this ROS domain?')
    assert run_in(folder).checkpoint()['env_steps'] == 80
    relay.tell('go on')

    world.sim_node()
    assert world.train_node(folder, remap=RELAYED, resume=True).end() == 0
    assert run_in(folder).rows() == in_process().rows()
    assert run_in(folder).policy() == in_process().policy()


def test_it_ends_in_good_order_when_stopped_while_it_starts(world, tmp_path):
    train = world.train_node(tmp_path / 'run')
    # It handles signals first, then imports.
    while signal.SIGTERM not in caught_signals(train.pid):
        time.sleep(0.005)
    train.signal(signal.SIGINT)
    assert train.end() == 0
    assert train.lines == []
    assert not (tmp_path / 'run').exists()


def caught_signals(pid):
    mask = re.search(r'SigCgt:\s*(\w+)', Path(f'/proc/{pid}/status').read_text())[1]
    return {number for number in signal.valid_signals() if int(mask, 16) >> (number - 1) & 1}


def test_a_wrong_parameter_ends_it_with_a_sentence(world):
    train = world.node('train_node', task='point2d_large', set='task.box=4')
    assert train.end() == 2
    assert train.errors == [
        'train_node: task.box belongs to the arm, which is not in this process: it stays 5.0'
    ]


@pytest.mark.slow
def test_it_answers_within_100_ms_while_it_learns_and_stops_when_asked(
    world, tmp_path, run_in, capsys
):
    """Measure while the networks of the preset learn, then stop in a long evaluation."""
    world.sim_node('fetch_reach')
    changes = {
        'agent.hidden': '128,128',
        'model.hidden': '128,128',
        'schedule.episodes_per_epoch': '8',
        'schedule.evaluation_goals': '10000',
        'schedule.steps': '1000',
        'schedule.updates_per_episode': '100',
    }
    train = world.train_node(tmp_path / 'run', 'fetch_reach', changes)
    peer = world.peer()
    diagnostics = peer.listen(DiagnosticArray, '/diagnostics')
    peer.figures('train_node', lambda told: told['message'] == 'learning')
    parameters = peer.client(GetParameters, 'train_node/get_parameters')
    save = peer.client(Trigger, 'train_node/save')
    took = {'get_parameters': [], 'save': []}
    for index in range(100):
        request = GetParameters.Request(names=['task', 'seed'])
        took['get_parameters'].append(peer.call(parameters, request)[1])
        if index % 2:
            took['save'].append(peer.call(save, Trigger.Request())[1])
    train.wait_for('evaluating, 0 of 10000 goals')
    told = [
        at
        for at, array in zip(diagnostics.times, diagnostics.messages, strict=True)
        if array.status[0].name == 'train_node'
    ]
    took['diagnostics'] = list(np.abs(np.diff(told) - 1.0))
    said = peer.ask(Trigger, 'train_node/stop')
    assert said.success
    assert said.message == f'stopping, with a checkpoint in {tmp_path / "run"}'
    assert train.end(5.0) == 0
    assert run_in(tmp_path / 'run').checkpoint()['env_steps'] == (2 + 8) * 20
    with capsys.disabled():
        for name, seconds in took.items():
            within = (1e3 * np.percentile(seconds, (50, 90, 100))).round(1)
            print(f'\n{name}: half, 90 % and all of {len(seconds)} within {within} ms')
    assert len(took['diagnostics']) >= 3
    for name, seconds in took.items():
        assert np.percentile(seconds, 90) < 0.1, name
