"""An arm behind topics as a Gymnasium env, and policies tried on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
from mher_ros.control.commands import CommandEncoding
from mher_ros.errors import EpisodeLostError, TRIES
from mher_ros.ros.arm_link import ArmLink, JointVectors
from mher_ros.tasks.rollouts import Evaluation, GOALS_AT_ONCE, judge, PolicyFunction
from mher_ros.tasks.task import Observation, Task
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['ArmEnv', 'ArmEvaluator']


class ArmEnv(gymnasium.Env[Any, Any]):
    """
    The task, done by whatever arm is behind the link.

    Goals, observations and rewards are the task's own; only the arm is not in this process.
    ``reset`` and ``step`` raise ``EpisodeLostError`` if the state can no longer be trusted.
    """

    def __init__(
        self,
        task: Task,
        link: ArmLink,
        watch: Callable[[Observation, bool], None] = lambda observation, first: None,
    ) -> None:
        """Step ``task``'s arm over ``link``; ``watch`` hears of every observation."""
        self.task, self.link, self._watch = task, link, watch
        self.interface, self.joint_names = task.interface, task.joint_names
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self._encoding = CommandEncoding(task.interface)
        self._steps_left = 0
        self._state: JointVectors | None = None
        self.episodes_lost = 0
        """Episodes whose state could no longer be trusted."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode with the goal, and where it is drawn the start, of the seed."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**32))
        self.task.reset(seed=seed, options=options)
        self._state = self.link.reset(seed)
        observation = self.task.observe(*self._state)
        self._steps_left = self.interface.episode_steps
        self._watch(observation, True)
        return observation, {}

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do one control period; never terminates, truncates after ``episode_steps``."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded('an episode begins with reset')
        command = self._encoding.command(self.task.checked_action(action))
        try:
            self._state = self.link.exchange(command)
        except EpisodeLostError:
            self.episodes_lost += 1
            raise
        observation = self.task.observe(*self._state)
        self._steps_left -= 1
        reward = self.task.compute_reward(observation['achieved_goal'], self.task.goal, {})
        self._watch(observation, False)
        info = {'is_success': bool(reward == 0.0)}
        return observation, float(reward), False, self._steps_left <= 0, info

    def joint_state(self) -> JointVectors:
        """Return positions and velocities of ``joint_names`` at the last reset or step."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded('an episode begins with reset')
        return self._state

    def compute_reward(self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any) -> Any:
        """Return 0 at the goal and -1 elsewhere, for one pair or any batch of them."""
        return self.task.compute_reward(achieved_goal, desired_goal, info)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> bool:
        """Return False: the arm has to stay at the goal."""
        return self.task.compute_terminated(achieved_goal, desired_goal, info)

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> bool:
        """Return whether the episode's steps are used up."""
        return self._steps_left <= 0

    def close(self) -> None:
        """Leave the arm."""
        self.link.close()


class ArmEvaluator:
    """
    Tries a policy on one arm, goal after goal.

    The policy sees each goal in the same row of a batch of the same size as ``Evaluator`` shows
    it, so the two agree to the bit.
    """

    def __init__(
        self,
        env: ArmEnv,
        tell: Callable[[int, int], None] = lambda done, total: None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``tell`` hears of goals done and in all, ``warn`` of goals that are tried again."""
        self._env, self._tell, self._warn = env, tell, warn

    def run(self, policy: PolicyFunction, seeds: Sequence[int]) -> Evaluation:
        """Try the policy from the resets that ``seeds`` stand for."""
        ways, goals = [], []
        for index, seed in enumerate(seeds):
            self._tell(index, len(seeds))
            way, goal = self._run_goal(policy, seed, index % GOALS_AT_ONCE)
            ways.append(way)
            goals.append(goal)
        return judge(self._env.interface, np.stack(ways, axis=1), np.stack(goals))

    def _run_goal(
        self, policy: PolicyFunction, seed: int, row: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where each step led (steps, m), and the goal (m,)."""
        lost = 0
        while True:
            try:
                return self._try_goal(policy, seed, row)
            except EpisodeLostError as error:
                lost += 1
                if lost == TRIES:
                    raise
                self._warn(f'a goal of the evaluation is tried again: {error}')

    def _try_goal(
        self, policy: PolicyFunction, seed: int, row: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        interface = self._env.interface
        observations = np.zeros((GOALS_AT_ONCE, len(interface.observation)))
        goals = np.zeros((GOALS_AT_ONCE, len(interface.goal)))
        start, _ = self._env.reset(seed=seed)
        observations[row], goals[row] = start['observation'], start['desired_goal']
        way = np.empty((interface.episode_steps, goals.shape[1]))
        for step in range(interface.episode_steps):
            action = policy(observations, goals)[row]
            observations[row] = self._env.step(action)[0]['observation']
            way[step] = interface.achieved_goal(observations[row])
        return way, goals[row].copy()
