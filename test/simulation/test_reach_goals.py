"""The goals of the task `reach`: the tool can reach them, and there the arm touches nothing."""

import json

from mher_ros.options import OptionError
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.reach import ReachOptions
from mher_ros.tasks import make
import numpy as np
import pytest

BLOCK = {'shape': 'box', 'position': [0.45, 0.1, 0.3], 'size': [0.1, 0.4, 0.2]}
"""In the middle of the workspace of ur5e."""


def reach(tmp_path, scene, **options):
    path = tmp_path / 'blocked.yaml'
    source = load_robot('ur5e').folder / 'ur5e.yaml'
    path.write_text(f'{source.read_text()}\nscene: {json.dumps(scene)}\n')
    return make('reach', ReachOptions(50, 0.05, robot=str(path), **options))


def test_goals_are_never_in_an_obstacle(tmp_path):
    task = reach(tmp_path, {'block': BLOCK})
    middle, half = np.array(BLOCK['position']), np.array(BLOCK['size']) / 2.0
    goals = np.array([task.reset(seed=seed)[0]['desired_goal'] for seed in range(100)])
    assert (np.abs(goals - middle) > half).any(axis=1).all()
    low, high = np.array(task.interface.goal_low), np.array(task.interface.goal_high)
    assert ((low <= goals) & (goals <= high)).all()
    # They are still on all sides of it.
    assert (goals[:, 0] < middle[0] - half[0]).any()
    assert (goals[:, 0] > middle[0] + half[0]).any()


def test_the_same_seed_gives_the_same_goal(tmp_path):
    first, second = (reach(tmp_path, {'block': BLOCK}) for _ in range(2))
    for seed in range(10):
        goals = [task.reset(seed=seed)[0]['desired_goal'] for task in (first, second)]
        np.testing.assert_array_equal(*goals)


def test_a_workspace_without_goals_that_can_be_reached_is_refused_in_a_sentence(tmp_path):
    everywhere = {**BLOCK, 'size': [0.4, 0.4, 0.4], 'position': [0.45, 0.1, 0.35]}
    task = reach(tmp_path, {'block': everywhere})
    with pytest.raises(OptionError, match='goals that the arm can reach.*inside block'):
        task.reset(seed=0)
