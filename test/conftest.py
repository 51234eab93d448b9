"""
The order of tests, how hard properties are tried, where meshes are kept, and how MuJoCo draws.

MuJoCo settles the last when it is first imported, so this comes before any test.
"""

import gc
import os

from hypothesis import settings
from mher_ros.tasks.rendering import choose_backend, RenderingError
import pytest

choose_backend()

# The same examples each time, so that it fails only by a change; `make nightly` draws new ones.
settings.register_profile('test', max_examples=100, deadline=None, derandomize=True)
settings.register_profile('nightly', max_examples=10_000, deadline=None)
settings.load_profile('test')


def pytest_addoption(parser):
    parser.addoption(
        '--complete',
        action='store_true',
        help='fail where there is no browser or nothing to draw with, instead of skipping tests',
    )


def pytest_collection_modifyitems(items):
    """
    Put files with slow tests first, then those that start nodes.

    Processes that run files at once then end at about the same time. A file stays together: its
    tests share what it starts.
    """
    rank = {}
    for item in items:
        marks = [item.get_closest_marker(mark) is None for mark in ('slow', 'ros')]
        rank[item.path] = min(rank.get(item.path, marks), marks)
    items.sort(key=lambda item: rank[item.path])


@pytest.fixture(autouse=True)
def environment():
    """Undo what commands that a test runs in this process do to its environment."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True, scope='module')
def memory():
    """Free what a file of tests has left: models of arms are large, and hold each other."""
    yield
    gc.collect()


@pytest.fixture(autouse=True, scope='session')
def cache(tmp_path_factory):
    """Return the folder in which meshes are kept, made once and out of the user's cache."""
    folder = tmp_path_factory.mktemp('cache')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('XDG_CACHE_HOME', str(folder))
        yield folder


@pytest.fixture(scope='session')
def missing(request):
    """Return what ends a test that needs something that this machine lacks, given the reason."""
    return pytest.fail if request.config.getoption('--complete') else pytest.skip


@pytest.fixture(scope='session')
def drawing(missing):
    """Skip where MuJoCo cannot draw."""
    from drawing import draw

    try:
        draw()
    except RenderingError as error:
        missing(str(error))


@pytest.fixture(scope='module')
def browser(missing):
    """Return a browser; it is gone before the next file of tests, whose times it could spoil."""
    from browser import Browser, NoBrowserError

    try:
        started = Browser()
    except NoBrowserError as error:
        missing(str(error))
    yield started
    started.close()
