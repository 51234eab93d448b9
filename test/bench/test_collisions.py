"""The benchmark of collisions, with few motions."""

from types import SimpleNamespace

from mher_ros.bench import collisions
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.dynamic_arm import DynamicArm
import numpy as np
import pytest


@pytest.mark.slow
def test_an_arm_touches_nothing_among_obstacles_and_does_without_the_filter(monkeypatch):
    monkeypatch.setattr(collisions, 'LONGEST', 4.0)
    found = collisions.measure(robot='ur5e', goals=4, output='robot', seed=1)
    assert found.figures['penetrations'] == 0
    assert found.figures['worst_penetration_mm'] <= 1.0
    counted = [found.figures[key] for key in ('reached', 'refused', 'stuck')]
    assert sum(counted) == 4
    assert 0.0 < found.figures['ms_median'] <= found.figures['ms_p99']
    off = [values for name, values in found.samples.items() if name.endswith('off')]
    assert sum(values['penetrations'] for values in off) > 0
    assert {row[1] for row in found.tables[0].rows} == {'on', 'off'}


@pytest.mark.parametrize('name', ['fetch', 'ur5e'])
def test_random_scenes_leave_the_arm_free_at_home(name):
    # The robot files have collision avoidance off, as one half of the benchmark has.
    trial = collisions._Trial(load_robot(name), 'robot', np.random.default_rng(0), is_on=False)
    for _, robot in trial._scenes(4 * collisions.GOALS_PER_SCENE):
        assert len(robot.scene) >= collisions.OBSTACLES
        assert DynamicArm(robot, robot.output).data.ncon == 0


def test_a_goal_where_the_arm_is_is_reached(monkeypatch):
    monkeypatch.setattr(collisions, 'OBSTACLES', 0)
    trial = collisions._Trial(load_robot('ur5e'), 'robot', np.random.default_rng(0), is_on=True)
    space = trial._space
    there = np.clip(
        DynamicArm(trial._robot, 'joint_position').tool_position(), space.low, space.high
    )
    trial._random = SimpleNamespace(uniform=lambda low, high: there)
    trial.go_straight(1)
    assert trial.figures()['reached'] == 1
