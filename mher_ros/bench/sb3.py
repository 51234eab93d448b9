"""stable-baselines3's learners with hindsight, on a task of ours."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
import importlib
from typing import Any

from mher_ros.bench.measured import BenchError
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import PolicyFunction
import numpy as np
from numpy.typing import NDArray

__all__ = ['Pace', 'require_sb3', 'Sb3Learner', 'ZOO_PACE']

VERSION = '2.9.2'

# rl-baselines3-zoo, hyperparams/sac.yml, FetchReach-v1. Its `normalize: True` puts the environment
# into VecNormalize with the learner's gamma (rl_zoo3/exp_manager.py).
GAMMA, LEARNING_RATE, HIDDEN, SAMPLED_GOALS = 0.95, 1e-3, (64, 64), 4
# The same project has no settings of DDPG for this task: it gets those of SAC, and the noise on
# actions that hyperparams/ddpg.yml gives wherever it says nothing else.
DDPG_NOISE = 0.1


@dataclasses.dataclass(frozen=True)
class Pace:
    """When it learns, and from how much."""

    learning_starts: int
    """Steps of random actions first."""
    batch: int
    updates_per_step: Fraction
    episode_steps: int
    first_updates: int = 0
    """Updates on the steps of random actions alone."""


ZOO_PACE = Pace(learning_starts=1000, batch=256, updates_per_step=Fraction(1), episode_steps=50)
"""That of the same file, with the episodes of FetchReach."""


def require_sb3() -> Any:
    """Return the package."""
    try:
        return importlib.import_module('stable_baselines3')
    except ImportError:
        raise BenchError(
            'the rival of this benchmark is the package stable-baselines3: '
            f"pip install 'mher_ros[bench]', or pip install stable-baselines3=={VERSION}"
        ) from None


class Sb3Learner:
    """
    SAC or DDPG with HER, on one core.

    The replay has room for ``limit`` steps, not for the zoo's million: nothing is lost of what is
    learnt, and HerReplayBuffer is spared a search of all its room for every batch.
    """

    def __init__(self, algorithm: str, task: str, seed: int, limit: int, pace: Pace) -> None:
        sb3 = require_sb3()
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.noise import NormalActionNoise
        from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

        options = task_class(task).default_options
        env = make(task, dataclasses.replace(options, episode_steps=pace.episode_steps))
        actions = len(env.interface.action)
        noise = NormalActionNoise(np.zeros(actions), np.full(actions, DDPG_NOISE))
        self._normalised = VecNormalize(DummyVecEnv([lambda: env]), gamma=GAMMA)
        self._interface = env.interface
        self.model = getattr(sb3, algorithm)(
            'MultiInputPolicy',
            self._normalised,
            learning_rate=LEARNING_RATE,
            gamma=GAMMA,
            buffer_size=limit,
            learning_starts=pace.learning_starts,
            batch_size=pace.batch,
            train_freq=pace.updates_per_step.denominator,
            gradient_steps=pace.updates_per_step.numerator,
            replay_buffer_class=sb3.HerReplayBuffer,
            replay_buffer_kwargs={
                'n_sampled_goal': SAMPLED_GOALS,
                'goal_selection_strategy': 'future',
            },
            policy_kwargs={'net_arch': list(HIDDEN)},
            action_noise=noise if algorithm == 'DDPG' else None,
            seed=seed,
            device='cpu',
        )
        # Its own would make a folder for every call of learn().
        self.model.set_logger(Logger(None, []))
        self._pace = pace
        self.learns_from = pace.learning_starts
        if not pace.first_updates:
            self.learns_from += pace.updates_per_step.denominator

    @property
    def steps(self) -> int:
        """Steps done in the environment."""
        return int(self.model.num_timesteps)

    def learn_until(self, steps: int) -> None:
        """Act and learn until that many steps are done."""
        start = self._pace.learning_starts
        if self.steps < start <= steps:
            self._learn(start)
            if self._pace.first_updates:
                self.model.train(self._pace.first_updates, self._pace.batch)
        self._learn(steps)

    def _learn(self, steps: int) -> None:
        if steps > self.steps:
            self.model.learn(steps - self.steps, reset_num_timesteps=False)

    def policy(self) -> PolicyFunction:
        """Return what it would do now, without noise."""

        def act(
            observations: NDArray[np.float64], goals: NDArray[np.float64]
        ) -> NDArray[np.float32]:
            seen = {
                'observation': observations,
                'achieved_goal': self._interface.achieved_goal(observations),
                'desired_goal': goals,
            }
            normalised: Any = self._normalised.normalize_obs(seen)
            return np.asarray(self.model.predict(normalised, deterministic=True)[0], np.float32)

        return act
