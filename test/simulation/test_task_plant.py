from mher_ros.options import override
from mher_ros.simulation.plant import TaskPlant
from mher_ros.tasks import make, PAPER_TASKS, task_class
import numpy as np
import pytest


@pytest.fixture(params=PAPER_TASKS)
def pair(request):
    """Return a task and its plant, reset alike."""
    task, plant = make(request.param), TaskPlant(request.param)
    task.reset(seed=3)
    plant.reset(3)
    return task, plant


def actions(task, count, seed=0):
    size = (count, len(task.interface.action))
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size).astype(np.float32)


def test_an_action_moves_the_arm_as_it_moves_the_task(pair):
    task, plant = pair
    np.testing.assert_array_equal(plant.joint_state(), task.joint_state())
    for action in actions(task, 30):
        task.step(action)
        plant.advance(action.astype(float))
        np.testing.assert_array_equal(plant.joint_state(), task.joint_state())
        np.testing.assert_array_equal(plant.tool_pose()[0], task.tool_pose()[0])


def test_names_and_period_are_the_tasks(pair):
    task, plant = pair
    assert plant.joint_names == task.joint_names
    assert plant.period == task.interface.control_period
    assert plant.frame == task.interface.frame
    assert plant.command_names == tuple(field.name for field in task.interface.action)


def test_an_action_that_exceeds_1_by_a_rounding_error_is_cut(pair):
    task, plant = pair
    action = np.sign(actions(task, 1)[0])
    task.step(action)
    plant.advance((1.0 + 1e-6) * action.astype(float))
    np.testing.assert_array_equal(plant.joint_state(), task.joint_state())


def test_a_reset_forgets_what_was_done_and_starts_where_the_seed_says(pair):
    task, plant = pair
    for action in actions(task, 5):
        plant.advance(action.astype(float))
    plant.advance(None)
    for seed in (3, 4):
        plant.reset(seed)
        task.reset(seed=seed)
        np.testing.assert_array_equal(plant.joint_state(), task.joint_state())
        np.testing.assert_array_equal(plant.tool_pose()[0], task.tool_pose()[0])


@pytest.mark.parametrize('task', ['fetch_reach', 'sawyer_reach', 'point2d_large'])
def test_an_arm_without_a_command_stays_in_place(task):
    plant = TaskPlant(task)
    plant.reset(0)
    for action in actions(make(task), 5):
        plant.advance(action.astype(float))
    for _ in range(25):  # a moving arm comes to rest first
        plant.advance(None)
    place, _ = plant.tool_pose()
    for _ in range(50):
        plant.advance(None)
    assert np.linalg.norm(plant.tool_pose()[0] - place) < 1e-3


def test_what_is_shown_is_where_the_arm_is(pair):
    task, plant = pair
    count = len(plant.joint_names)
    for action in actions(task, 3):
        plant.advance(action.astype(float))
        np.testing.assert_array_equal(plant.data.qpos[:count], plant.joint_state()[0])
        assert np.isfinite(plant.data.xpos).all()


def test_the_arm_is_that_of_the_options():
    options = override(task_class('point2d_large').default_options, {'box': 2.0})
    plant = TaskPlant('point2d_large', options)
    assert plant.model.jnt_range[0].tolist() == [-2.0, 2.0]
