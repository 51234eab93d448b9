"""The declared interface of a task, apart from any task."""

import dataclasses

from mher_ros.interface import Field, ORIENTATION, TaskInterface
from mher_ros.tasks import make
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
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


POSES = dataclasses.replace(
    INTERFACE,
    observation=tuple(Field(f'entry{index}', '1') for index in range(9)),
    goal=(
        *(Field(f'tool_position_{axis}', 'm') for axis in 'xyz'),
        *(Field(name, '1') for name in ORIENTATION),
    ),
    goal_low=(-1.0,) * 9,
    goal_high=(1.0,) * 9,
    achieved_index=tuple(range(9)),
    goal_index=(),
    success_threshold=0.05,
    orientation_threshold=0.2,
)


def poses(positions, rotations):
    """Return goals (n, 9) of positions (n, 3) and n rotations."""
    matrices = rotations.as_matrix()
    return np.concatenate((positions, matrices[:, :, 0], matrices[:, :, 1]), axis=1)


@pytest.mark.parametrize('kind', [np.float32, np.float64])
def test_the_angle_between_orientations_is_exact(kind):
    first = Rotation.random(1000, random_state=0)
    angles = np.concatenate((np.geomspace(1e-3, 3.0, 998), (0.0, np.pi)))
    axes = np.random.default_rng(0).normal(size=(1000, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    second = first * Rotation.from_rotvec(angles[:, None] * axes)
    there, here = (poses(np.zeros((1000, 3)), one).astype(kind) for one in (first, second))
    found = POSES.angle_error(there, here)
    assert found.shape == (1000,)
    np.testing.assert_allclose(found[:-1], angles[:-1], rtol=1e-3, atol=1e-6)
    assert found[-1] == pytest.approx(np.pi, abs=1e-3)


def test_axes_that_are_not_quite_orthonormal_are_corrected():
    rng = np.random.default_rng(0)
    exact = poses(np.zeros((1000, 3)), Rotation.random(1000, random_state=0))
    rough = exact + 0.02 * rng.normal(size=exact.shape)
    rough[:, 3:] *= rng.uniform(0.5, 2.0, (1000, 1))
    assert POSES.angle_error(rough, exact).max() < 0.2
    np.testing.assert_array_equal(POSES.angle_error(rough, rough), 0.0)


def test_axes_without_a_direction_are_no_success_and_no_error():
    exact = poses(np.zeros((1, 3)), Rotation.identity(1))
    for broken in (0.0 * exact, exact * 1e-30, exact[:, [0, 1, 2, 3, 4, 5, 3, 4, 5]]):
        assert np.isfinite(POSES.distance(broken, exact)).all()
        assert not POSES.is_success(broken, exact).any()


def test_success_needs_position_and_orientation():
    here = poses(np.zeros((4, 3)), Rotation.identity(4))
    moved = np.array(((0.049, 0, 0), (0.051, 0, 0), (0.049, 0, 0), (0, 0, 0)))
    turned = Rotation.from_rotvec(((0.19, 0, 0), (0.19, 0, 0), (0.21, 0, 0), (0.1, 0, 0)))
    there = poses(moved, turned)
    np.testing.assert_allclose(POSES.distance(there, here), (0.049, 0.051, 0.0525, 0.025))
    assert POSES.is_success(there, here).tolist() == [True, False, False, True]
    assert POSES.reward(there, here).tolist() == [0.0, -1.0, -1.0, 0.0]
    np.testing.assert_allclose(POSES.position_error(there, here), (0.049, 0.051, 0.049, 0.0))


def test_goals_are_compared_in_any_shape_and_precision():
    rng = np.random.default_rng(0)
    there = poses(rng.normal(size=(30, 3)), Rotation.random(30, random_state=1))
    here = poses(rng.normal(size=(30, 3)), Rotation.random(30, random_state=2))
    flat = POSES.distance(there, here)
    shaped = POSES.distance(there.reshape(5, 6, 9), here.reshape(5, 6, 9))
    np.testing.assert_array_equal(shaped.ravel(), flat)
    assert POSES.distance(there[0], here[0]) == flat[0]
    rough = POSES.distance(torch.tensor(there, dtype=torch.float32).numpy(), here)
    np.testing.assert_allclose(rough, flat, rtol=1e-5)


def test_a_factor_of_the_threshold_holds_for_position_and_orientation():
    here = poses(np.zeros((3, 3)), Rotation.identity(3))
    moved = np.array(((0.09, 0, 0), (0.11, 0, 0), (0, 0, 0)))
    turned = Rotation.from_rotvec(((0, 0, 0.39), (0, 0, 0), (0, 0, 0.41)))
    there = poses(moved, turned)
    assert POSES.is_success(there, here).tolist() == [False] * 3
    assert POSES.is_success(there, here, threshold_factor=2.0).tolist() == [True, False, False]
    assert POSES.reward(there, here, threshold_factor=2.0).tolist() == [0.0, -1.0, -1.0]


def test_a_threshold_for_the_orientation_needs_one_and_the_other_way_round():
    with pytest.raises(ValueError, match='tool_x_axis_x'):
        dataclasses.replace(INTERFACE, orientation_threshold=0.2)
    assert INTERFACE.position_size == 2
    assert POSES.position_size == 3
    assert POSES.position_box == ((-1.0,) * 3, (1.0,) * 3)


def test_an_action_means_something_that_a_node_can_look_up():
    with pytest.raises(ValueError, match="action_meaning of displacement.*got 'telepathy'"):
        dataclasses.replace(INTERFACE, action_meaning='telepathy')
    # A Fetch action leads the tool from where it is, a Sawyer action moves a target.
    assert make('fetch_reach').interface.action_meaning == 'tool_displacement'
    assert make('sawyer_reach').interface.action_meaning == 'target_displacement'
