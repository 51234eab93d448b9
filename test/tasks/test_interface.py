"""The declared interface of a task, apart from any task."""

import dataclasses

from mher_ros.interface import Field, TaskInterface
from mher_ros.tasks import make
import numpy as np
import pytest
import torch

INTERFACE = TaskInterface(
    task='example',
    observation=tuple(Field(f'entry{index}', 'm') for index in range(6)),
    goal=(Field('x', 'm'), Field('y', 'm')),
    action=(Field('u', 'm'),),
    action_meaning='displacement',
    frame='world',
    control_period=0.1,
    episode_steps=10,
    goal_low=(-1.0, -1.0),
    goal_high=(1.0, 1.0),
    success_threshold=0.5,
    achieved_index=(4, 5),
    goal_index=(1, 2),
)


@pytest.mark.parametrize('index', [(), (0, 2), (1, 0), (5, 6), (-2, -1), (0,), (0, 1, 2)])
def test_achieved_goal_must_be_a_run_of_entries_of_the_observation(index):
    with pytest.raises(ValueError, match='example: .* 2 of 6 entries'):
        dataclasses.replace(INTERFACE, achieved_index=index)


@pytest.mark.parametrize('index', [(0, 2), (5, 6), (-2, -1), (0,)])
def test_repeated_goal_must_be_a_run_of_entries_of_the_observation(index):
    with pytest.raises(ValueError, match='2 of 6 entries'):
        dataclasses.replace(INTERFACE, goal_index=index)


@pytest.mark.parametrize('convert', [np.array, torch.tensor])
def test_with_goal_rewrites_only_the_entries_that_repeat_it(convert):
    observation = convert([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]])
    rewritten = INTERFACE.with_goal(observation, convert([[-1.0, -2.0], [-3.0, -4.0]]))
    assert type(rewritten) is type(observation)
    assert rewritten.tolist() == [[0, -1, -2, 3, 4, 5], [9, -3, -4, 6, 5, 4]]
    assert observation.tolist() == [[0, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4]]


def test_with_goal_returns_the_observation_itself_where_no_goal_is_repeated():
    observation = np.zeros((3, 10))
    assert make('fetch_reach').interface.with_goal(observation, np.ones((3, 3))) is observation


def test_distance_is_euclidean():
    distance = INTERFACE.distance([[0.0, 0.0], [1.0, 1.0]], [[3.0, 4.0], [1.0, 1.0]])
    assert distance.tolist() == [5.0, 0.0]


def test_an_action_means_something_that_a_node_can_look_up():
    with pytest.raises(ValueError, match="action_meaning of displacement.*got 'telepathy'"):
        dataclasses.replace(INTERFACE, action_meaning='telepathy')
    # A Fetch action leads the tool from where it is, a Sawyer action moves a target.
    assert make('fetch_reach').interface.action_meaning == 'tool_displacement'
    assert make('sawyer_reach').interface.action_meaning == 'target_displacement'
