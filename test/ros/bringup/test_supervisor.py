"""What the end of a process means to those that the supervisor runs beside it."""

import os
import signal

from mher_ros.errors import MherError
from mher_ros.ros.bringup.node_spec import Role
from mher_ros.ros.bringup.supervisor import Patience, Process, supervise
import pytest
from supervised import node, SAVING, script, STUBBORN


@pytest.mark.parametrize('code', [0, 3])
def test_the_end_of_the_main_process_is_the_end_of_all_with_its_code(started, code):
    run = started(
        ('sim', node(code=7), Role.NEEDED),
        ('main', script(f'raise SystemExit({code})'), Role.MAIN),
    )
    ended_with, lines = run.end()
    assert ended_with == code
    told = [line for line in lines if line.startswith('[mher]')]
    assert told == ([f'[mher] main ended with exit code {code}; stopping sim'] if code else [])


def test_a_main_process_that_a_signal_ended_gives_128_and_its_number(started):
    dying = script('import os, signal; os.kill(os.getpid(), signal.SIGSEGV)')
    run = started(('main', dying, Role.MAIN))
    code, lines = run.end()
    assert code == 128 + signal.SIGSEGV
    assert lines == ['[mher] main was ended by SIGSEGV']


@pytest.mark.parametrize(
    ('ending', 'sentence'),
    [
        ('raise SystemExit(0)', 'sim ended with exit code 0'),
        ('raise SystemExit(3)', 'sim ended with exit code 3'),
        ('import os; os.kill(os.getpid(), 9)', 'sim was ended by SIGKILL'),
    ],
)
def test_a_needed_process_that_ends_first_is_a_failure_and_stops_the_others(
    started, tmp_path, ending, sentence
):
    gate = tmp_path / 'gate'
    os.mkfifo(gate)
    run = started(
        ('main', node(), Role.MAIN),
        ('sim', script(f'import sys; open(sys.argv[1]).read(); {ending}', str(gate)), Role.NEEDED),
        ('window', node(), Role.OPTIONAL),
    )
    run.wait_until_up(2)
    gate.write_text('')
    code, lines = run.end()
    assert code == 1
    assert lines[0] == f'[mher]   {sentence}, but is needed; stopping main and window'
    assert sorted(lines[1:]) == [
        '[main]   got SIGINT',
        '[main]   saved',
        '[window] got SIGINT',
        '[window] saved',
    ]


def test_without_an_optional_process_the_others_go_on(started):
    run = started(
        ('main', node(), Role.MAIN),
        ('window', script('raise SystemExit(5)'), Role.OPTIONAL),
    )
    run.read_until('[mher]   window ended with exit code 5')
    run.wait_until_up(1)
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 0


def test_what_a_process_leaves_behind_is_killed(started):
    leaving = script(
        'import subprocess, sys\n'
        'subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])\n'
    )
    run = started(('main', leaving, Role.MAIN))
    assert run.end()[0] == 0


def test_a_command_that_cannot_be_started_stops_those_that_were(tmp_path, mark):
    processes = [
        Process('sim', node('none'), Role.NEEDED),
        Process('main', [str(tmp_path / 'missing')], Role.MAIN),
    ]
    with pytest.raises(MherError, match=r'cannot start .*missing: No such file'):
        supervise(processes, mark.environment, patience=Patience(0.1, 0.1))
    mark.wait_until_none_is_left()


def test_processes_of_a_killed_supervisor_are_stopped(started, tmp_path, mark):
    saving = script(SAVING, str(tmp_path / 'saved'))
    run = started(
        ('main', saving, Role.MAIN),
        ('sim', script(STUBBORN), Role.NEEDED),
        interrupt=2.0,
        terminate=0.1,
    )
    run.wait_until_up(2)
    os.killpg(run.process.pid, signal.SIGKILL)
    mark.wait_until_none_is_left()
    assert (tmp_path / 'saved').read_text() == 'checkpoint'
