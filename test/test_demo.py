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
from mher_ros.ros.deploy.goal_trials import GoalTrial
import numpy as np
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


@pytest.fixture
def short(monkeypatch):
    """Make the demonstration short; its policy has learnt next to nothing."""
    values = {'STEPS': 120, 'TESTED': 2, 'EPISODES': 3, 'BEHIND': 1, 'OTHERS': 1, 'WANTED': 0.0}
    for name, value in values.items():
        monkeypatch.setattr(demo, name, value)


@pytest.mark.ros
@pytest.mark.slow
def test_the_story_ends_well_on_its_page_too_and_leaves_what_it_says(
    tmp_path, capfd, monkeypatch, own_domain, short
):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    start = demo.node_process
    monkeypatch.setattr(
        demo, 'node_process', lambda name, values: start(name, {**values, 'port': port})
    )
    move, found = demo._move, {}
    monkeypatch.setattr(demo, '_move', lambda *given: found.update(move(*given)) or found)
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
    # The straight line gets to a goal beside the wall, and to none behind it; nothing is touched.
    *_, line = (row for row in told.splitlines() if row.startswith('| straight line'))
    assert [cell.strip() for cell in line.split('|')][2:6:3] == ['0 of 1', '0']
    for trials in found.values():
        begins = [trial.tool_path[0] for trial in trials]
        np.testing.assert_allclose(begins[0], begins[1], atol=0.005)  # each from home


def test_a_goal_behind_the_wall_is_not_reached_from_before_it():
    task = demo._task()
    (wall,) = task.robot.scene
    beside = np.array([0.04, 0.0, 0.0])
    behind, before = wall.position + beside, wall.position - beside
    far = before - [0.1, 0.0, 0.0]

    def trial(goal, tool, contacts=0, accepted=True):
        error = float(np.linalg.norm(tool - goal))
        return GoalTrial(goal, error, 0.0, 1.0, np.ones(1), tool[None], [{}], accepted, contacts)

    # Within 5 cm of the wall's other side, with 8 cm between tool and goal, and then with 5 cm.
    thin = wall.position + np.array([0.02, 0.0, 0.0])
    nearest = wall.position - np.array([0.02, 0.0, 0.0])
    assert not demo._reached(trial(thin, nearest), task)
    assert demo._reached(trial(behind, behind), task)
    assert demo._reached(trial(before, before), task)
    trials = {
        'policy': [trial(behind, behind)] * 10 + [trial(before, before)] * 10,
        'straight_line': [trial(behind, before, 2, False)] * 10 + [trial(before, far)] * 10,
    }
    policy, line = demo._table(trials, task).rows
    assert policy == ('policy', '10 of 10', '10 of 10', '0', '0', '0.0 mm')
    assert line == ('straight line', '0 of 10', '0 of 10', '10', '20', '')


@pytest.mark.parametrize(('missed', 'code'), [(2, 0), (3, 1)])
def test_a_policy_that_falls_short_is_a_failure(tmp_path, monkeypatch, capsys, missed, code):

    def train(system, values):
        for name in ('policy.onnx', 'progress.csv'):
            (tmp_path / 'demo' / name).write_text('env_steps,success_rate\n40,0.5\n')
        return 0

    def move(policy, goals, task):
        places = [goal + ([0.2, 0.0, 0.0] if n < missed else 0.0) for n, goal in enumerate(goals)]
        found = [
            GoalTrial(
                goal,
                np.linalg.norm(place - goal),
                0.0,
                1.0,
                np.ones(1),
                place[None],
                [{}],
                True,
                0,
            )
            for goal, place in zip(goals, places, strict=True)
        ]
        return {'policy': found, 'straight_line': found}

    monkeypatch.setattr(demo, 'run_bringup', train)
    monkeypatch.setattr(demo, '_move', move)
    monkeypatch.setattr(demo, 'film_motions', lambda path, trials, task: path.write_bytes(b''))
    assert run_demo(tmp_path / 'demo') == code
    told = capsys.readouterr().out
    assert f'{10 - missed} of 10 ' in told and 'learnt in 40 steps, 8 s' in told
    assert ('fewer than 90 %' in told) is bool(code)


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
