"""Pictures of tasks, where pictures can be made."""

import os
import subprocess
import sys

from mher_ros.tasks import make, TASKS
from mher_ros.tasks.rendering import choose_backend
import numpy as np
import pytest


@pytest.fixture(params=TASKS)
def task(request, drawing):
    task = make(request.param, render_mode='rgb_array')
    yield task
    task.close()


def drawn(task, goal):
    task.reset(seed=0, options={'goal': goal})
    return task.render().copy()


def test_picture_shows_where_the_goal_is(task):
    low, high = np.array(task.interface.goal_low), np.array(task.interface.goal_high)
    here, there = low + 0.3 * (high - low), low + 0.7 * (high - low)
    first, second = drawn(task, here), drawn(task, there)
    assert first.dtype == np.uint8
    assert first.shape[2] == 3
    moved = (first != second).any(axis=2)
    # The goal moved and nothing else: some of the picture changed, most of it did not.
    assert 100 < moved.sum() < 0.3 * moved.size
    np.testing.assert_array_equal(drawn(task, here), first)


def test_picture_shows_where_the_tool_is(task):
    centre = 0.5 * (np.array(task.interface.goal_low) + task.interface.goal_high)
    before = drawn(task, centre)
    for _ in range(5):
        task.step(np.full(task.action_space.shape, 0.7))
    assert (task.render() != before).any(axis=2).sum() > 100


def test_drawing_does_not_change_the_episode(task):
    actions = np.random.default_rng(0).uniform(-1, 1, (10, *task.action_space.shape))
    paths = []
    for draw in (False, True):
        task.reset(seed=1)
        path = []
        for action in actions:
            if draw:
                task.render()
            path.append(task.step(action)[0]['observation'])
        paths.append(path)
    np.testing.assert_array_equal(*paths)


def test_picture_can_be_drawn_again_after_closing(task):
    first = drawn(task, task.interface.goal_low)
    task.close()
    np.testing.assert_array_equal(drawn(task, task.interface.goal_low), first)


def test_walls_are_drawn(drawing):
    rooms = make('point2d_four_room', render_mode='rgb_array')
    picture = drawn(rooms, [3.0, 3.0]).astype(int)
    rooms.close()
    height, width, _ = picture.shape
    metre = height / 2 / np.tan(np.radians(45.0 / 2)) / rooms.scene()[2]['distance']  # [pixels]

    def colour(x, y):
        return picture[round(height / 2 - metre * y), round(width / 2 + metre * x)]

    floor, wall = colour(-2.0, 2.0), colour(0.0, 0.0)
    assert np.abs(floor - wall).max() > 50
    # Between the middle wall and the outer one is a door, at x = -2.4 of [-4, 4].
    for x, expected in ((-3.8, wall), (-2.4, floor), (-1.0, wall)):
        assert np.abs(colour(x, 0.0) - expected).max() < 25


def test_error_says_what_to_install_where_mujoco_cannot_draw():
    code = """
from mher_ros.tasks import make
from mher_ros.tasks.rendering import RenderingError
task = make('reacher', render_mode='rgb_array')
task.reset(seed=0)
try:
    task.render()
except RenderingError as error:
    print(error)
"""
    environment = {**os.environ, 'MUJOCO_GL': 'disable'}
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, env=environment
    )
    assert 'apt install libegl1 libgl1' in done.stdout, done.stderr
    assert 'MUJOCO_GL=egl' in done.stdout


def test_backend_chosen_by_the_user_is_kept(monkeypatch):
    monkeypatch.delitem(sys.modules, 'mujoco', raising=False)
    monkeypatch.setenv('MUJOCO_GL', 'glfw')
    choose_backend()
    assert os.environ['MUJOCO_GL'] == 'glfw'


@pytest.mark.parametrize(
    ('there', 'chosen'),
    [({'EGL', 'OSMesa'}, 'egl'), ({'EGL'}, 'egl'), ({'OSMesa'}, 'osmesa'), (set(), None)],
)
def test_backend_is_one_whose_library_is_there(monkeypatch, there, chosen):
    monkeypatch.delitem(sys.modules, 'mujoco', raising=False)
    # Set first, so that what choose_backend sets is undone as well.
    monkeypatch.setenv('MUJOCO_GL', '')
    monkeypatch.setattr('ctypes.util.find_library', lambda name: name if name in there else None)
    choose_backend()
    assert os.environ['MUJOCO_GL'] == (chosen or '')
