"""Requirements are pinned by hash and brought; only tests whose needs are not met are skipped."""

import os
from pathlib import Path
import re
import subprocess
import sys

import pytest

ROOT = Path(__file__).resolve().parents[1]
IN_A_BROWSER = 'test/view/test_browser.py'
DRAWN = 'test/tasks/test_rendering.py'


def requirements(name):
    """Return the entries of a pin file, each with its hashes."""
    text = (ROOT / 'requirements' / f'{name}.txt').read_text()
    lines = re.sub(r'#.*', '', text).replace('\\\n', ' ').splitlines()
    return [line.split() for line in lines if line.strip()]


@pytest.mark.parametrize('name', ['base', 'dev', 'ros'])
def test_every_requirement_has_a_version_and_hashes(name):
    entries = requirements(name)
    assert len(entries) > 20
    for requirement, *rest in entries:
        assert re.fullmatch(r'[\w.-]+==[\w.]+', requirement)
        assert any(word.startswith('--hash=sha256:') for word in rest), requirement


def test_torch_alone_has_none():
    assert [entry[0].partition('==')[0] for entry in requirements('torch')] == ['torch']


def test_make_test_brings_what_tests_need_before_it_runs_them():
    # Without what a `make` around this test has set.
    environment = {key: os.environ[key] for key in ('PATH', 'HOME') if key in os.environ}
    done = subprocess.run(
        ['make', '-n', 'test'], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    brings, runs = (done.stdout.find(what) for what in ('system_packages.sh .venv', '-m pytest'))
    assert 0 <= brings < runs, done.stdout


@pytest.fixture
def run_without(tmp_path):
    """Return a function that runs tests on a machine with no browser and nothing to draw with."""
    environment = {
        **os.environ,
        'PATH': str(tmp_path),
        'PLAYWRIGHT_BROWSERS_PATH': str(tmp_path),
        'MUJOCO_GL': 'disable',
    }

    def run(*arguments):
        command = (sys.executable, '-m', 'pytest', '-q', '-rspE', '-p', 'no:cacheprovider')
        done = subprocess.run(
            [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert 'no browser starts here' in done.stdout, done
        assert 'MuJoCo cannot render' in done.stdout, done
        return done

    return run


def test_only_what_needs_a_browser_or_a_picture_of_mujoco_is_skipped(run_without):
    done = run_without(DRAWN, IN_A_BROWSER)
    assert done.returncode == 0, done.stdout
    passed = re.findall(r'^PASSED (\S+?)::(\S+)', done.stdout, re.M)
    assert {path for path, _ in passed} == {DRAWN}
    names = {name for _, name in passed}
    assert 'test_error_says_what_to_install_where_mujoco_cannot_draw' in names
    assert not any('picture' in name or 'drawn' in name for name in names), names


def test_it_fails_where_everything_must_be_there(run_without):
    picture = f'{DRAWN}::test_picture_shows_where_the_goal_is[reacher]'
    page = f'{IN_A_BROWSER}::test_a_box_is_drawn_and_seen_to_move'
    done = run_without('--complete', picture, page)
    assert done.returncode == 1
    assert set(re.findall(r'^ERROR (\S+)', done.stdout, re.M)) == {picture, page}
