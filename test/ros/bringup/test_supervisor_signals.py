"""Signals to the supervisor, and those it sends to the processes it runs."""

import os
import signal

from mher_ros.ros.bringup.node_spec import Role
from mher_ros.ros.bringup.supervisor import Patience, Process, supervise
import pytest
from supervised import node, script


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize('code', [0, 6])
def test_a_signal_stops_the_main_process_then_the_others_and_gives_its_code(started, number, code):
    run = started(('sim', node(), Role.NEEDED), ('main', node(code=code), Role.MAIN))
    run.wait_until_up(2)
    run.process.send_signal(number)
    ended_with, lines = run.end()
    assert ended_with == code
    assert lines == [
        f'[mher] {number.name}: stopping main',
        '[main] got SIGINT',
        '[main] saved',
        *(['[mher] main ended with exit code 6; stopping sim'] if code else []),
        '[sim]  got SIGINT',
        '[sim]  saved',
    ]


def test_a_signal_to_the_whole_terminal_reaches_each_process_once(started):
    run = started(('sim', node(), Role.NEEDED), ('main', node(), Role.MAIN))
    run.wait_until_up(2)
    os.killpg(run.process.pid, signal.SIGINT)
    code, lines = run.end()
    assert code == 0
    assert [line for line in lines if 'got' in line] == ['[main] got SIGINT', '[sim]  got SIGINT']


def test_a_signal_that_comes_twice_at_once_is_one_wish(started):
    run = started(('main', node('SIGTERM'), Role.MAIN), echo=600.0)
    run.wait_until_up(1)
    run.process.send_signal(signal.SIGINT)
    run.read_until('got SIGINT')
    run.process.send_signal(signal.SIGINT)
    run.process.send_signal(signal.SIGTERM)
    os.kill(run.pids['main'], signal.SIGTERM)
    code, lines = run.end()
    assert (code, lines) == (0, ['[main] got SIGTERM', '[main] saved'])


def test_asking_again_is_firmer(started):
    run = started(
        ('main', node('none'), Role.MAIN),
        ('sim', node(), Role.NEEDED),
        interrupt=600.0,
        terminate=600.0,
        echo=0.0,
    )
    run.wait_until_up(2)
    run.process.send_signal(signal.SIGINT)
    run.read_until('[main] got SIGINT')
    run.process.send_signal(signal.SIGINT)
    lines = run.read_until('[main] got SIGTERM')
    assert lines[0] == '[mher] SIGINT again: sending the next signal'
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 128 + signal.SIGKILL


def test_a_signal_while_processes_start_stops_them_all(started):
    # The first process to start sends it, so the others have hardly begun. Python may end what
    # has not begun in its own way, or lose the first signal to a callback.
    early = script('import os, signal; os.kill(os.getppid(), signal.SIGINT); signal.pause()')
    late = [(f'window{i}', node(), Role.OPTIONAL) for i in range(3)]
    run = started(('sim', early, Role.NEEDED), *late, ('main', node(), Role.MAIN), interrupt=1.0)
    run.read_until('SIGINT: stopping main')
    assert run.end()[0] in (0, 1, 128 + signal.SIGINT, 128 + signal.SIGTERM)


@pytest.mark.parametrize(
    ('ends_on', 'code', 'heard'),
    [
        ('SIGTERM', 0, ['SIGINT']),
        ('none', 128 + signal.SIGKILL, ['SIGINT', 'SIGTERM']),
    ],
)
def test_a_process_that_does_not_end_is_sent_firmer_signals(started, ends_on, code, heard):
    run = started(('main', node(ends_on), Role.MAIN), interrupt=0.1, terminate=0.1)
    run.wait_until_up(1)
    run.process.send_signal(signal.SIGINT)
    ended_with, lines = run.end()
    assert ended_with == code
    told = [line for line in lines if 'still runs' in line]
    assert told == [f'[mher] main still runs after {name}' for name in heard]


def test_a_learner_has_time_to_save_its_work_on_a_busy_machine():
    # That takes it 1.4 s of computation, which was seen to last more than half a minute.
    assert (Patience().interrupt, Patience().terminate) == (60.0, 30.0)


def test_nohup_is_respected(started):
    run = started(('main', node(), Role.MAIN), hangup='SIG_IGN')
    run.wait_until_up(1)
    run.process.send_signal(signal.SIGHUP)
    run.process.send_signal(signal.SIGINT)
    code, lines = run.end()
    assert (code, lines[0]) == (0, '[mher] SIGINT: stopping main')


def test_handlers_are_as_before_afterwards():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    supervise([Process('main', script(''), Role.MAIN)], patience=Patience())
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
