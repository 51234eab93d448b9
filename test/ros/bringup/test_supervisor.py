"""Processes that belong together, run by the supervisor; small scripts stand in for nodes."""

import json
import os
import re
import signal
import subprocess
import sys

from mher_ros.errors import MherError
from mher_ros.ros.bringup.supervisor import Patience, Process, supervise
from mher_ros.ros.bringup.system import Role
import pytest

DRIVER = """
import json, signal, sys
from mher_ros.ros.bringup.supervisor import Patience, Process, supervise
from mher_ros.ros.bringup.system import Role
processes, patience, hangup = json.loads(sys.argv[1])
signal.signal(signal.SIGHUP, getattr(signal, hangup))
processes = [Process(name, command, Role[role]) for name, command, role in processes]
sys.exit(supervise(processes, patience=Patience(**patience)))
"""

# Says which signals arrive, and ends in good order on those named after the script.
NODE = """
import os, signal, sys
signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print('pid', os.getpid(), flush=True)
while True:
    name = signal.Signals(signal.sigwait(signals)).name
    print('got', name, flush=True)
    if name in sys.argv[1].split(','):
        print('saved', flush=True)
        sys.exit(int(sys.argv[2]))
"""

# Writes a file when it is interrupted.
SAVING = """
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print('pid', os.getpid())
signal.sigwait({signal.SIGINT})
pathlib.Path(sys.argv[1]).write_text('checkpoint')
"""

STUBBORN = """
import os, signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print('pid', os.getpid())
while True:
    signal.pause()
"""


def node(ends_on='SIGINT,SIGTERM', code=0):
    return [sys.executable, '-c', NODE, ends_on, str(code)]


def script(text, *arguments):
    return [sys.executable, '-uc', text, *arguments]


class Supervised:
    """The supervisor in a process of its own, as a person's shell would start it."""

    def __init__(self, processes, patience, hangup, environment, mark):
        arguments = json.dumps([[[n, c, r.name] for n, c, r in processes], patience, hangup])
        self.process = subprocess.Popen(
            [sys.executable, '-c', DRIVER, arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**mark.environment, **environment},
        )
        self.mark = mark
        self.pids = {}

    def read_until(self, wanted):
        """Return the lines up to the first that contains ``wanted``."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip('\n'))
            if found := re.fullmatch(r'\[(\w+)\] +pid (\d+)\n', line):
                self.pids[found[1]] = int(found[2])
            if wanted in line:
                return lines
        pytest.fail(f'no {wanted!r} in {lines}: {self.process.stderr.read()}')

    def wait_until_up(self, count):
        while len(self.pids) < count:
            self.read_until('pid ')

    def end(self):
        """Return the exit code and the lines that were still to come."""
        out, error = self.process.communicate(timeout=60)
        assert error == ''
        self.mark.wait_until_none_is_left()
        return self.process.returncode, out.splitlines()


@pytest.fixture
def started(mark):
    """Return a function that starts (name, command, role) ...; nothing outlives the test."""
    running = []

    def start(*processes, hangup='SIG_DFL', environment=None, **patience):
        running.append(Supervised(processes, patience, hangup, environment or {}, mark))
        return running[-1]

    yield start
    for supervised in running:
        supervised.process.kill()
        supervised.process.communicate()


# What is printed


def test_each_line_follows_the_name_of_its_process(started):
    talker = script("import sys; print('one'); print('', flush=True); sys.stderr.write('two')")
    run = started(('talker', talker, Role.MAIN), ('sim', node(), Role.NEEDED))
    code, lines = run.end()
    assert code == 0
    assert [line for line in lines if line.startswith('[talker]')] == [
        '[talker] one',
        '[talker]',
        '[talker] two',
    ]
    assert all(line.startswith(('[talker] ', '[sim]    ')) for line in lines if ' ' in line)


def test_a_line_is_printed_while_the_process_goes_on(started):
    run = started(('main', node(), Role.MAIN))
    run.read_until('[main] pid ')
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 0


def test_the_last_lines_of_a_process_are_printed(started):
    # As much as a pipe holds, so that it is read after the process has ended.
    run = started(('main', script(r"import os; os.write(1, b'x\n' * 32768)"), Role.MAIN))
    assert run.end()[1] == ['[main] x'] * 32768


@pytest.mark.parametrize('encoding', ['utf-8', 'ascii'])
def test_text_that_cannot_be_shown_stops_nothing(started, encoding):
    talker = script(r"import sys; sys.stdout.buffer.write(b'\xff \xc3\xa9\n'); print('end')")
    run = started(('main', talker, Role.MAIN), environment={'PYTHONIOENCODING': encoding})
    code, lines = run.end()
    assert code == 0
    assert (
        lines[0]
        == {'utf-8': '[main] \N{REPLACEMENT CHARACTER} é', 'ascii': '[main] ? ?'}[encoding]
    )
    assert lines[1] == '[main] end'


def test_lines_go_to_the_function_that_is_given():
    lines = []
    ending = Process('main', script("print('hello'); raise SystemExit(4)"), Role.MAIN)
    assert supervise([ending], write=lambda *line: lines.append(line)) == 4
    assert lines == [('main', 'hello'), ('mher', 'main ended with exit code 4')]


def test_what_the_function_raises_is_raised_once_all_have_stopped(tmp_path, mark):
    def write(name, line):
        raise ValueError(line)

    processes = [
        Process('main', script(SAVING, str(tmp_path / 'saved')), Role.MAIN),
        Process('sim', script(STUBBORN), Role.NEEDED),
    ]
    with pytest.raises(ValueError, match='pid'):
        supervise(processes, mark.environment, write, Patience(1.0, 0.1))
    assert mark.processes() == {}


def test_output_that_nobody_reads_stops_everything(started, mark):
    talker = script("import os; print('pid', os.getpid())\nwhile True: print('line')")
    run = started(('main', talker, Role.MAIN), ('sim', node(), Role.NEEDED))
    run.wait_until_up(2)
    run.process.stdout.close()
    run.process.wait(timeout=60)
    assert 'BrokenPipeError' in run.process.stderr.read()
    mark.wait_until_none_is_left()


# When one ends


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
        supervise(processes, mark.environment)
    mark.wait_until_none_is_left()


# Signals


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
    assert lines[0] == '[mher] SIGINT again: firmer'
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
    told = [line for line in lines if 'in spite of' in line]
    assert told == [f'[mher] main goes on in spite of {name}' for name in heard]


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


# When the supervisor itself is killed


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
