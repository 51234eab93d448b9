"""The straight line in the task reach: every arm of this package, from home to random goals."""

from mher_ros.control.reachability import Reachability
from mher_ros.options import OptionError
from mher_ros.robots.robot import arm_names, load_robot
from mher_ros.robots.workspace import GoalError
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.straight_line import evaluate_straight_line
from mher_ros.tasks import make
import numpy as np
import pytest


@pytest.mark.parametrize('name', arm_names())
def test_every_arm_comes_to_rest_at_its_goals_and_touches_nothing(name):
    task = Reach(ReachOptions(robot=name, episode_steps=20, control_period=0.2, threshold=0.05))
    evaluation = evaluate_straight_line(task, range(3))
    assert evaluation.successes.all()
    assert np.median(evaluation.final_errors) < 1e-3
    assert evaluation.final_errors.max() < 3e-3
    assert np.median(evaluation.motions_at_goal) < 1e-3
    assert task._simulated().contacts().number == 0


def test_actions_have_no_effect_and_the_next_episode_takes_them_again():
    task, other = (Reach(ReachOptions(robot='ur5e', episode_steps=5)) for _ in range(2))
    random = np.random.default_rng(0)
    for one in (task, other):
        one.reset(seed=1)
        one.go_straight()
    for _ in range(5):
        np.testing.assert_array_equal(
            task.step(random.uniform(-1.0, 1.0, 6))[0]['observation'],
            other.step(np.zeros(6))[0]['observation'],
        )
    fresh = Reach(ReachOptions(robot='ur5e', episode_steps=5))
    for one in (task, fresh):
        one.reset(seed=2)
    action = random.uniform(-1.0, 1.0, 6)
    for _ in range(5):
        np.testing.assert_array_equal(
            task.step(action)[0]['observation'], fresh.step(action)[0]['observation']
        )


def test_another_task_has_no_straight_line():
    with pytest.raises(OptionError, match='not in point2d_large'):
        evaluate_straight_line(make('point2d_large'), [0])


def test_five_joints_refuse_goals_out_of_reach_and_no_others():
    task = Reach(ReachOptions(robot='so101'))
    home = np.array([task.robot.home[name] for name in task.joint_names])
    for keeps in (True, False):
        reachability = Reachability(task.arm, keeps_orientation=keeps)
        for goal in np.random.default_rng(0).uniform(
            task.workspace.low, task.workspace.high, (20, 3)
        ):
            reachability.check_goal(goal, home, None)
        with pytest.raises(GoalError, match='can reach is expected') as refused:
            reachability.check_goal(np.array((0.6, 0.0, 0.1)), home, None)
        assert refused.value.code == 'out_of_reach'


@pytest.mark.parametrize('controller', ['twist', 'pose'])
def test_with_five_joints_the_position_is_exact_and_the_orientation_gives_way(controller):
    arm = simulated_robot(load_robot('so101'))
    arm.controller = controller
    position, orientation = arm.tool_pose()
    goal = position + (-0.05, 0.06, 0.05)
    for _ in range(400):
        position = position + np.clip(goal - position, -0.001, 0.001)
        pose = np.concatenate((position, orientation))
        velocity = np.clip(3.0 * (goal - arm.tool_pose()[0]), -0.1, 0.1)
        arm.advance(velocity if controller == 'twist' else pose)
    reached, turned = arm.tool_pose()
    assert np.linalg.norm(reached - goal) < 1e-3
    assert abs(turned @ orientation) < 0.999  # it could not be kept
