"""The command `mher bench`: refusals, files, and the page of all results."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

from mher_ros.bench.result import Result
from mher_ros.cli import bench, main
from mher_ros.cli.arguments import FAILED, INTERRUPTED, WRONG_USE
import pytest

PATIENCE = 60.0
"""Time within which a process must start or end [s]."""

STAND_IN = """#!{python}
# Called as the interpreter is: -m mher_ros bench NAME --out DIR.
import json, os, pathlib, signal, sys, time

name, folder = sys.argv[4], pathlib.Path(sys.argv[6])

def write(*_):
    values = {{'tables': [], 'when': f'{{name}} found', 'machine': {{}}}}
    (folder / f'{{name}}.json').write_text(json.dumps(values))

def end(*_):
    time.sleep(0.5)  # longer than subprocess.run would wait
    write()
    sys.exit(130)

with open(folder / 'asked', 'a') as asked:
    print(name, file=asked)
if name == 'failing':
    sys.exit(1)
elif name in ('slow', 'stubborn'):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end if name == 'slow' else signal.SIG_IGN)
    (folder / 'started').write_text(str(os.getpid()))
    while True:
        time.sleep(60.0)
else:
    write()
"""


@pytest.fixture
def interpreter(tmp_path):
    path = tmp_path / 'stand_in.py'
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def bench_all(tmp_path, monkeypatch, interpreter):
    """Return a function that measures stand-ins of these names, and its page and folder."""
    page, folder = tmp_path / 'docs' / 'page.md', tmp_path / 'found'

    def run(*names, missing=False):
        monkeypatch.setattr(sys, 'executable', str(interpreter))
        found = {name: bench.Benchmark(f'of {name}', 'no time', ()) for name in names}
        monkeypatch.setattr(bench, 'BENCHMARKS', found)
        command = ['bench', 'all', '--page', str(page), '--out', str(folder)]
        return main([*command, '--missing'] if missing else command)

    return run, page, folder


def asked(folder):
    path = folder / 'asked'
    return path.read_text().split() if path.exists() else []


def sections(page):
    """Return what the page says of each benchmark."""
    text = page.read_text().partition('<!-- end')[0]
    return {part.partition('`')[0]: part for part in text.split('## `mher bench ')[1:]}


def test_all_are_measured_in_order_and_told_on_a_page(bench_all):
    run, page, folder = bench_all
    assert run('second', 'first') == 0
    assert asked(folder) == ['second', 'first']
    told = sections(page)
    assert list(told) == ['second', 'first']
    assert 'first found; [all samples](../found/first.json)' in told['first']


def test_missing_measures_only_what_is_not_there(bench_all):
    run, page, folder = bench_all
    run('one')
    assert run('one', 'two', missing=True) == 0
    assert asked(folder) == ['one', 'two']
    page.unlink()
    assert run('one', 'two', missing=True) == 0
    assert asked(folder) == ['one', 'two']
    assert 'two found' in sections(page)['two']


def test_what_failed_is_named_and_what_was_found_before_is_not_shown_for_it(bench_all, capsys):
    run, page, folder = bench_all
    run('one')
    (folder / 'failing.json').write_bytes((folder / 'one.json').read_bytes())
    assert run('failing', 'one') == FAILED
    assert 'failed: failing' in capsys.readouterr().err
    assert asked(folder) == ['one', 'failing', 'one']
    told = sections(page)
    assert 'Not measured yet.' in told['failing']
    assert 'one found' in told['one']


def test_a_page_without_marks_is_refused_before_anything_is_measured(bench_all, capsys):
    run, page, folder = bench_all
    page.parent.mkdir()
    page.write_text('# Mine\n')
    assert run('one') == WRONG_USE
    assert 'page.md' in capsys.readouterr().err
    assert asked(folder) == []
    assert page.read_text() == '# Mine\n'


@pytest.fixture
def start():
    """Return a function that runs code with a process group of its own, as a terminal does."""
    processes = []

    def run(code, **options):
        # What is started in the background, as these tests may be, would not hear of Ctrl-C.
        listening = 'import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n'
        command = [sys.executable, '-c', listening + code]
        processes.append(subprocess.Popen(command, start_new_session=True, **options))
        return processes[-1]

    yield run
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def start_all(tmp_path, interpreter, start):
    """Return a function that measures stand-ins of these names; the first is being measured."""

    def run(*names):
        process = start(
            'import sys\n'
            'from mher_ros.cli import bench, main\n'
            f'sys.executable = {str(interpreter)!r}\n'
            f'bench.BENCHMARKS = {{n: bench.Benchmark(n, "", ()) for n in {names!r}}}\n'
            'sys.exit(main(["bench", "all", "--page", "page.md", "--out", "."]))\n',
            cwd=tmp_path,
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / 'started').exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        return process

    return run


# A terminal sends Ctrl-C to the whole group, and others SIGTERM to one process.
@pytest.mark.parametrize(
    ('send', 'number'), [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)]
)
def test_a_signal_lets_a_benchmark_finish_up_and_writes_the_page(
    tmp_path, start_all, send, number
):
    process = start_all('slow', 'next')
    send(process.pid, number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED, said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert asked(tmp_path) == ['slow']
    told = sections(tmp_path / 'page.md')
    assert 'slow found' in told['slow']
    assert 'Not measured yet.' in told['next']


def test_another_ctrl_c_kills_a_benchmark_that_goes_on(tmp_path, start_all):
    process = start_all('stubborn', 'next')
    # After the second it ends, which may take its time: a third would come into Python's own end.
    for patience in (1.0, PATIENCE):
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    assert process.returncode == INTERRUPTED, process.communicate()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert asked(tmp_path) == ['stubborn']
    assert 'Not measured yet.' in sections(tmp_path / 'page.md')['stubborn']


# A benchmark that loads all cores.
LOADED = """
import sys, time
from mher_ros.bench import update
from mher_ros.bench.timing import busy_cores
from mher_ros.cli import main

def measure(**_):
    with busy_cores() as processes:
        print(*(process.pid for process in processes), flush=True)
        time.sleep(600.0)

update.measure = measure
sys.exit(main(['bench', 'update']))
"""


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_a_benchmark_has_started_ends_with_it(tmp_path, start, number):
    process = start(LOADED, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    loads = [os.pidfd_open(int(word)) for word in process.stdout.readline().split()]
    assert loads
    process.send_signal(number)
    killed = number == signal.SIGKILL
    assert process.wait(PATIENCE) == (-number if killed else INTERRUPTED)
    for load in loads:
        assert select.select([load], [], [], PATIENCE)[0], 'a load goes on'
        os.close(load)


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / 'file').touch()
    monkeypatch.setattr('mher_ros.bench.update.measure', lambda **_: pytest.fail('measured'))
    assert main(['bench', 'update', '--out', str(tmp_path / 'file')]) == WRONG_USE
    assert str(tmp_path / 'file') in capsys.readouterr().err


def test_the_file_tells_what_was_asked_and_is_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        'mher_ros.bench.update.measure', lambda rounds: Result({'ratio': rounds / 2}, (), {})
    )
    assert main(['bench', 'update', '--rounds', '3', '--json', '--out', str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed['arguments'] == {'rounds': 3}
    assert printed['ratio'] == 1.5
    assert printed == json.loads((tmp_path / 'update.json').read_text())


@pytest.mark.slow
def test_without_ros_benchmarks_of_nodes_say_what_to_source(tmp_path):
    code = (
        'import sys\n'
        'sys.modules["rclpy"] = None\n'
        'from mher_ros.cli import main\n'
        'for name in ("bridge", "latency", "deploy"):\n'
        '    print(main(["bench", name]))\n'
    )
    result = subprocess.run(
        [sys.executable, '-c', code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == [str(WRONG_USE)] * 3, result.stderr
    for line in result.stderr.splitlines():
        assert 'rclpy' in line
