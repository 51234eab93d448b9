"""``mher view``: where it says the page is, how it ends, and what it refuses."""

import os
import re
import signal
import sys
from urllib.request import urlopen

from mher_ros.files import EPISODES
import pytest
from recorded_runs import RecordedRun
from ros_process import Process


@pytest.fixture
def recorded(tmp_path):
    """Return the folder of a run with two episodes."""
    run = RecordedRun(tmp_path / 'run')
    run.write_curve((40, 0.25, 3.0))
    run.add_episodes(2)
    return run.folder


@pytest.fixture
def opener(tmp_path):
    """Return the environment in which a script is the browser, and the file that it writes."""
    script, opened = tmp_path / 'browser', tmp_path / 'opened'
    script.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    script.chmod(0o755)
    # Without an ampersand, webbrowser waits for it to end.
    return {'BROWSER': f'{script} %s'}, opened


@pytest.fixture
def view():
    """Return a function that starts the command as a person does."""
    started = []

    def start(*arguments, **environment):
        screen = {'DISPLAY': '', 'WAYLAND_DISPLAY': '', **environment}
        command = [sys.executable, '-m', 'mher_ros', 'view', *map(str, arguments), '--port', '0']
        started.append(Process(command, {**os.environ, **screen}, ()))
        return started[-1]

    yield start
    wrongs = [process.close() for process in started]
    assert not any(wrongs), '\n'.join(filter(None, wrongs))


def address(process):
    return re.search(r'shown at (http://\S+)', process.wait_for('shown at'))[1]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_the_page_is_at_the_printed_address_until_it_is_told_to_end(view, recorded, number):
    process = view(recorded)
    where = address(process)
    assert where.startswith('http://127.0.0.1:')
    assert b'<html' in urlopen(where).read()
    process.signal(number)
    assert process.end() == 0
    assert process.errors == []


def test_a_browser_opens_where_there_is_a_screen(view, recorded, opener):
    environment, opened = opener
    process = view(recorded, DISPLAY=':99', **environment)
    where = address(process)
    assert process.stop() == 0
    assert opened.read_text() == f'{where}\n'


@pytest.mark.parametrize(('arguments', 'screen'), [([], ''), (['--no-open'], ':99')])
def test_no_browser_opens_otherwise(view, recorded, opener, arguments, screen):
    environment, opened = opener
    process = view(recorded, *arguments, DISPLAY=screen, **environment)
    address(process)
    assert process.stop() == 0
    assert not opened.exists()


def test_a_run_from_before_episodes_were_kept_is_shown_without(view, recorded):
    (recorded / EPISODES).unlink()
    process = view(recorded)
    assert b'<html' in urlopen(address(process)).read()
    assert process.stop() == 0  # so all that it said has come
    (said,) = process.errors
    assert 'no recorded episodes' in said


def test_on_the_network_it_takes_a_token_and_says_who_sees_the_run(view, recorded):
    process = view(recorded, '--host', '0.0.0.0', '--token', 'a-long-secret')
    assert address(process).endswith('/?token=a-long-secret')
    assert process.stop() == 0  # so all that it said has come
    (said,) = process.errors
    assert 'network' in said


def test_what_cannot_be_shown_is_refused(refused, recorded, tmp_path):
    assert 'holds no run: there is no config.json' in refused('view', tmp_path)
    assert 'token' in refused('view', recorded, '--host', '0.0.0.0')
    assert 'at least 8' in refused('view', recorded, '--token', 'short')
    (recorded / 'progress.csv').write_text('nothing')
    assert 'progress.csv' in refused('view', recorded)
    (recorded / EPISODES).write_bytes(b'nothing')
    assert EPISODES in refused('view', recorded)
