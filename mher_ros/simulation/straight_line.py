"""The baseline of the task ``reach``: the tool moves straight to the goal, without a policy."""

from collections.abc import Sequence

from mher_ros.options import OptionError
from mher_ros.simulation.reach import Reach
from mher_ros.tasks.rollouts import Evaluation, judge
from mher_ros.tasks.task import Task
import numpy as np


def evaluate_straight_line(task: Task, seeds: Sequence[int]) -> Evaluation:
    """
    Run one episode per seed, through the safety filter.

    Goals and starts are those of a policy with the same seeds.
    """
    if not isinstance(task, Reach):
        raise OptionError(
            f'a straight line is possible in the task reach, not in {task.interface.task}'
        )
    interface = task.interface
    goals = np.empty((len(seeds), len(interface.goal)))
    achieved = np.empty((interface.episode_steps, *goals.shape))
    action = np.zeros(len(interface.action), np.float32)
    for row, seed in enumerate(seeds):
        goals[row] = task.reset(seed=seed)[0]['desired_goal']
        task.go_straight()
        for step in range(interface.episode_steps):
            achieved[step, row] = task.step(action)[0]['achieved_goal']
    return judge(interface, achieved, goals)
