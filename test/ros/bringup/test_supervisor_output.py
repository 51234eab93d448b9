"""What the supervisor prints of the processes it runs."""

import signal

from mher_ros.ros.bringup.node_spec import Role
import pytest
from supervised import node, script


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


def test_output_that_nobody_reads_stops_everything(started, mark):
    talker = script("import os; print('pid', os.getpid())\nwhile True: print('line')")
    run = started(('main', talker, Role.MAIN), ('sim', node(), Role.NEEDED))
    run.wait_until_up(2)
    run.process.stdout.close()
    run.process.wait(timeout=60)
    assert 'BrokenPipeError' in run.process.stderr.read()
    mark.wait_until_none_is_left()
