"""Goals that ``bench deploy`` draws are goals that the arm may go to."""

from mher_ros.bench import deploy
from mher_ros.policy import load
from mher_ros.robots.robot import arm_names, load_robot
from mher_ros.ros.deploy.goal_trials import GoalTrial
import numpy as np
import pytest

pytestmark = pytest.mark.ros

DRAWN = 500


class DrawnError(Exception):
    """Raised in place of the motion to the goals that were drawn."""


@pytest.fixture
def drawn(monkeypatch):
    """Return the list of goals (g, 3) [m] that an arm would be sent to; none is started."""
    goals = []

    def run_goal_trials(robot, policy, wanted, *_, **__):
        goals.extend(wanted)
        raise DrawnError

    monkeypatch.setattr(deploy, 'run_goal_trials', run_goal_trials)
    return goals


def assert_allowed(goals, robot, policy):
    """Fail unless all goals are inside the arm's box and its policy's workspace, and fill both."""
    config, interface = load_robot(robot), load(policy).interface
    trained = np.array((interface.goal_low, interface.goal_high))
    centre = trained.mean(axis=0)
    origin = centre if config.workspace.origin is None else config.workspace.origin
    low, high = origin + config.workspace.scale * (trained - centre)
    if config.box is not None:
        assert (np.array(config.box.low) > low).any()  # it leaves out some of the workspace
        low, high = np.maximum(low, config.box.low), np.minimum(high, config.box.high)
    assert len(goals) == DRAWN
    assert (goals >= low).all()
    assert (goals <= high).all()
    np.testing.assert_allclose(np.min(goals, axis=0), low, atol=0.02)
    np.testing.assert_allclose(np.max(goals, axis=0), high, atol=0.02)


@pytest.mark.parametrize('robot', ['fetch', 'ur5e'])
def test_the_benchmark_draws_goals_that_the_arm_may_go_to(drawn, policy, robot):
    with pytest.raises(DrawnError):
        deploy.measure(robot, DRAWN, 0, str(policy))
    assert_allowed(drawn, robot, policy)


def test_all_robots_are_in_one_table_with_the_straight_line_beside(policy, monkeypatch):
    """No arm is started: each trial ends at its goal."""

    def run_goal_trials(robot, path, wanted, *_, **__):
        return [
            GoalTrial(goal, 0.0, 0.0, 1.0, np.ones(1), goal[None], [{}], True, 0)
            for goal in wanted
        ]

    monkeypatch.setattr(deploy, 'run_goal_trials', run_goal_trials)
    result = deploy.measure('all', 3, 0, str(policy))
    assert set(result.figures['robots']) == set(result.samples) == set(arm_names())
    (table,) = result.tables
    controllers = ('policy', 'straight_line')
    expected = [(robot, name) for robot in arm_names() for name in controllers]
    assert [row[:2] for row in table.rows] == expected
    assert all(one['reached'] == 3 for one in result.figures['robots'].values())
