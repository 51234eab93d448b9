"""An arm over topics as a Gymnasium env, and the evaluation of policies on it."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
from typing import Any

import gymnasium
from mher_ros.errors import EpisodeLostError, TRIES
from mher_ros.interface import Vector
from mher_ros.ros.bringup.node_process import client_node, node_process
from mher_ros.ros.bringup.node_spec import defaults_for_nodes
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.train.lockstep_link import JointVectors, LockstepLink
from mher_ros.ros.train.real_time_link import RealTimeLink
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluation, GOALS_AT_ONCE, judge, PolicyFunction
from mher_ros.tasks.task import Observation, Outcome, Task
import numpy as np
from numpy.typing import ArrayLike


class ArmEnv(gymnasium.Env[Any, Any]):
    """
    A task on the arm of a link.

    Goals, observations and rewards are the task's; only the arm is not in this process. ``reset``
    and ``step`` raise ``EpisodeLostError`` if the state has become unreliable.
    """

    def __init__(
        self,
        task: Task,
        link: LockstepLink | RealTimeLink,
        watch: Callable[[Observation, bool], None] = lambda observation, first: None,
    ) -> None:
        """Step ``task``'s arm over ``link``; call ``watch`` with every observation."""
        self.task, self.link, self._watch = task, link, watch
        self.interface, self.joint_names = task.interface, task.joint_names
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self._state: JointVectors | None = None
        self.episodes_lost = 0
        """Number of episodes that were lost."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode with the goal, and a random initial state if any, of the seed."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**32))
        self.task.reset(seed=seed, options=options)
        self._state = self.link.reset(seed)
        observation = self.task.observe(*self._state)
        self._watch(observation, True)
        return observation, {}

    def start_options(self, last: Vector | None) -> dict[str, Any] | None:
        """Return what the task's ``start_options`` does."""
        return self.task.start_options(last)

    def step(self, action: ArrayLike) -> Outcome:
        """Do one control period; never terminates, truncates after ``episode_steps``."""
        self.joint_state()  # raises before the first reset
        checked = self.task.checked_action(action)
        try:
            self._state = self.link.exchange(checked)
        except EpisodeLostError:
            self.episodes_lost += 1
            raise
        self.task.remember(checked)
        outcome = self.task.outcome(*self._state)
        self._watch(outcome[0], False)
        return outcome

    def joint_state(self) -> JointVectors:
        """Return positions and velocities of ``joint_names`` at the last reset or step."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded('call reset first')
        return self._state

    def compute_reward(self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any) -> Any:
        """Return 0 at the goal and -1 elsewhere, for one pair or any batch of them."""
        return self.task.compute_reward(achieved_goal, desired_goal, info)

    def close(self) -> None:
        """Close the link."""
        self.link.close()


@contextlib.contextmanager
def sim_node_env(task: str, *, namespace: str = '') -> Iterator[tuple[ArmEnv, int]]:
    """
    Start sim_node; yield an env over its topics, and the number of its process.

    ``namespace``, such as ``/left``, is the namespace of both, for several arms.
    """
    os.environ.update(defaults_for_nodes())
    parameters = {'task': task, 'stepping': 'lockstep'}
    with (
        node_process('sim_node', parameters, namespace=namespace) as simulation,
        client_node('arm_env', namespace) as node,
        spinning(node),
    ):
        made = make(task)
        env = ArmEnv(made, LockstepLink(node, made))
        yield env, simulation.pid
        env.close()


class ArmEvaluator:
    """
    Evaluates a policy on one arm, goal by goal.

    Each goal is in the same row of a batch of the same size as in ``Evaluator``, so that the
    results are bit-identical.
    """

    def __init__(
        self,
        env: ArmEnv,
        report: Callable[[int, int], None] = lambda done, total: None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Call ``report`` with the numbers of goals done and in total, ``warn`` for a retry."""
        self._env, self._report, self._warn = env, report, warn

    def run(self, policy: PolicyFunction, seeds: Sequence[int]) -> Evaluation:
        """Evaluate the policy from the resets with these seeds."""
        episodes = []
        for index, seed in enumerate(seeds):
            self._report(index, len(seeds))
            for attempt in range(1, TRIES + 1):
                try:
                    episodes.append(self._run_goal(policy, seed, index % GOALS_AT_ONCE))
                    break
                except EpisodeLostError as error:
                    if attempt == TRIES:
                        raise
                    self._warn(f'a goal of the evaluation is repeated: {error}')
        achieved, goals = zip(*episodes, strict=True)
        return judge(self._env.interface, np.stack(achieved, axis=1), np.stack(goals))

    def _run_goal(self, policy: PolicyFunction, seed: int, row: int) -> tuple[Vector, Vector]:
        """Return the goals achieved after each step (steps, m), and the desired goal (m,)."""
        interface = self._env.interface
        observations = np.zeros((GOALS_AT_ONCE, len(interface.observation)))
        goals = np.zeros((GOALS_AT_ONCE, len(interface.goal)))
        start, _ = self._env.reset(seed=seed)
        observations[row], goals[row] = start['observation'], start['desired_goal']
        achieved = np.empty((interface.episode_steps, goals.shape[1]))
        for step in range(interface.episode_steps):
            action = policy(observations, goals)[row]
            observations[row] = self._env.step(action)[0]['observation']
            achieved[step] = self._env.task.judged_goals(observations[row])
        return achieved, goals[row].copy()
