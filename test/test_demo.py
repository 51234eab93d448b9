"""The demonstration: what it may remove, and (slow) the whole story."""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import os
import socket

from browser import wait_for
from mher_ros import demo
from mher_ros.demo import _clear, MARK, run_demo
from mher_ros.options import OptionError
from mher_ros.robots.robot import robot_names
from page_reader import PageReader
import pytest


def test_an_earlier_demonstration_makes_room(tmp_path):
    folder = tmp_path / 'demo'
    _clear(folder)
    (folder / 'old.txt').write_text('old')
    _clear(folder)
    assert [path.name for path in folder.iterdir()] == [MARK]


def test_anything_else_is_left_alone(tmp_path):
    (tmp_path / 'config.json').write_text('{}')
    with pytest.raises(OptionError, match='choose another folder'):
        _clear(tmp_path)
    assert (tmp_path / 'config.json').exists()
    with pytest.raises(OptionError, match='config.json'):
        _clear(tmp_path / 'config.json')


@pytest.fixture
def own_domain(monkeypatch):
    """Let the story's nodes meet no others."""
    pytest.importorskip('rclpy', reason='needs ROS 2')
    from ros_world import locked_domain

    with locked_domain() as (domain, _):
        monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
        yield


@pytest.mark.ros
def test_the_story_goes_on_without_a_page(tmp_path, capfd, monkeypatch, own_domain):

    def run(*_):
        # Until the only child, view_node, has ended.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        return 7

    monkeypatch.setattr(demo, 'ROBOT', 'r2d2')
    monkeypatch.setattr(demo, '_run', run)
    assert run_demo(tmp_path / 'demo', view=True) == 7
    out, error = capfd.readouterr()
    assert 'view_node exited with 2' in out
    assert ', '.join(robot_names()) in error


@pytest.mark.ros
@pytest.mark.slow
def test_the_story_ends_well_on_its_page_too_and_leaves_what_it_says(
    tmp_path, capfd, monkeypatch, own_domain
):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    start = demo.node_process
    monkeypatch.setattr(
        demo, 'node_process', lambda name, values: start(name, {**values, 'port': port})
    )
    with ThreadPoolExecutor(1) as thread:
        seen = thread.submit(see_the_story, port)
        assert run_demo(tmp_path / 'demo', seed=2, view=True) == 0
        seen.result()
    told, logged = capfd.readouterr()
    assert 'open http://127.0.0.1:' in told + logged
    for name in ('policy.onnx', 'progress.csv', 'demo.png'):
        assert f'demo/{name}' in told
        assert (tmp_path / 'demo' / name).stat().st_size > 0
    assert 'success' in told


def see_the_story(port):
    """Be a browser that finds on the page first the training, then the arm that is led."""
    with wait_for(lambda: open_page(port), 60.0, 'the page') as reader:
        reader.wait_for_line('Training', '.', 60.0)
        assert 'Distance' not in reader.lines
        reader.wait_for_line('Distance', 'mm', 300.0)


def open_page(port):
    """Return a browser, None if there is no page yet."""
    with contextlib.suppress(OSError):
        return PageReader(f'http://127.0.0.1:{port}/')
    return None
