"""The algorithms that learn fetch_reach in ``mher bench learning``: ours and those of SB3."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from fractions import Fraction
from typing import Any, NamedTuple

from mher_ros.interface import Vector
from mher_ros.learning.config import make_config
from mher_ros.learning.run.trainer import Trainer
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import Evaluator, PolicyFunction
import numpy as np
from numpy.typing import NDArray

TASK = 'fetch_reach'
FAST, HER = 'mher_fast', 'her_fast'

# rl-baselines3-zoo, hyperparams/sac.yml, FetchReach-v1. Its `normalize: True` wraps the
# environment in VecNormalize with the algorithm's gamma (rl_zoo3/exp_manager.py).
GAMMA, LEARNING_RATE, HIDDEN = 0.95, 1e-3, (64, 64)
# The zoo has no DDPG settings for this task: DDPG gets those of SAC, and the action noise that
# hyperparams/ddpg.yml has by default.
DDPG_NOISE = 0.1


class OurLearner:
    """Our trainer, without its own evaluations; ``Sb3Learner`` has the same interface."""

    def __init__(self, algorithm: str, preset: str, seed: int) -> None:
        changes = {
            'schedule.episodes_per_epoch': 10**9,
            'schedule.steps': 10**9,
            'schedule.until': 0.0,
            'task.reachable_goals': False,  # the goals of FetchReach-v4, as for all others
        }
        config = make_config(TASK, algorithm, preset, seed, changes)
        self._trainer = Trainer(config, make(TASK, config.task), Evaluator(TASK).run, None)
        schedule = config.schedule
        episodes = schedule.warmup_episodes + (0 if schedule.warmup_updates else 1)
        self.learns_from = episodes * schedule.episode_steps
        """Environment steps after which it has learnt from at least one batch."""

    @property
    def steps(self) -> int:
        return self._trainer.env_steps

    def learn_until(self, steps: int) -> None:
        """Act and learn until this number of steps, or until the end of that episode."""
        self._trainer.run(
            asked_to_stop=lambda: self.steps >= steps and self._trainer.updates_complete
        )

    def policy(self) -> PolicyFunction:
        """Return the present policy, without exploration."""
        return self._trainer.agent.policy_function()


@dataclasses.dataclass(frozen=True)
class Schedule:
    learning_starts: int  # number of warm-up steps with random actions
    batch: int
    updates_per_step: Fraction
    episode_steps: int
    first_updates: int = 0  # updates after the warm-up, before the next step


ZOO_SCHEDULE = Schedule(1000, batch=256, updates_per_step=Fraction(1), episode_steps=50)
"""That of hyperparams/sac.yml, with the episodes of FetchReach."""


def our_schedule() -> Schedule:
    """Return the schedule of mher with the preset ``fast``."""
    config = make_config(TASK, preset='fast')
    schedule = config.schedule
    return Schedule(
        schedule.warmup_episodes * schedule.episode_steps,
        config.agent.batch,
        Fraction(schedule.updates_per_episode, schedule.episode_steps),
        schedule.episode_steps,
        schedule.warmup_updates,
    )


def sb3_model(algorithm: str, env: Any, hidden: Sequence[int], seed: int, **settings: Any) -> Any:
    """Return an algorithm of SB3 with HER, 4 of 5 goals relabelled, on the CPU."""
    import stable_baselines3 as sb3

    return getattr(sb3, algorithm)(
        'MultiInputPolicy',
        env,
        replay_buffer_class=sb3.HerReplayBuffer,
        replay_buffer_kwargs={'n_sampled_goal': 4, 'goal_selection_strategy': 'future'},
        policy_kwargs={'net_arch': list(hidden)},
        seed=seed,
        device='cpu',
        **settings,
    )


class Sb3Learner:
    """SAC or DDPG with HER, on one core."""

    # The replay buffer has room for ``limit`` steps instead of the zoo's million. It still keeps
    # all steps, and HerReplayBuffer, which searches the whole buffer for every batch, is faster.
    def __init__(self, algorithm: str, seed: int, limit: int, schedule: Schedule) -> None:
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.noise import NormalActionNoise
        from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

        options = task_class(TASK).default_options
        env = make(TASK, dataclasses.replace(options, episode_steps=schedule.episode_steps))
        actions = len(env.interface.action)
        noise = NormalActionNoise(np.zeros(actions), np.full(actions, DDPG_NOISE))
        self._normalised = VecNormalize(DummyVecEnv([lambda: env]), gamma=GAMMA)
        self._interface = env.interface
        self.model = sb3_model(
            algorithm,
            self._normalised,
            HIDDEN,
            seed,
            learning_rate=LEARNING_RATE,
            gamma=GAMMA,
            buffer_size=limit,
            learning_starts=schedule.learning_starts,
            batch_size=schedule.batch,
            train_freq=schedule.updates_per_step.denominator,
            gradient_steps=schedule.updates_per_step.numerator,
            action_noise=noise if algorithm == 'DDPG' else None,
        )
        # The default logger makes a folder at every call of learn().
        self.model.set_logger(Logger(None, []))
        self._schedule = schedule
        self.learns_from = schedule.learning_starts
        if not schedule.first_updates:
            self.learns_from += schedule.updates_per_step.denominator

    @property
    def steps(self) -> int:
        return int(self.model.num_timesteps)

    def learn_until(self, steps: int) -> None:
        start = self._schedule.learning_starts
        if self.steps < start <= steps:
            self._learn(start)
            if self._schedule.first_updates:
                self.model.train(self._schedule.first_updates, self._schedule.batch)
        self._learn(steps)

    def _learn(self, steps: int) -> None:
        if steps > self.steps:
            self.model.learn(steps - self.steps, reset_num_timesteps=False)

    def policy(self) -> PolicyFunction:
        def act(observations: Vector, goals: Vector) -> NDArray[np.float32]:
            seen = {
                'observation': observations,
                'achieved_goal': self._interface.achieved_goal(observations),
                'desired_goal': goals,
            }
            normalised: Any = self._normalised.normalize_obs(seen)
            return np.asarray(self.model.predict(normalised, deterministic=True)[0], np.float32)

        return act


class Algorithm(NamedTuple):
    title: str
    begin: Callable[[int, int], OurLearner | Sb3Learner]
    """Returns a new learner, given a seed and the limit of steps."""
    look: Mapping[str, Any]  # arguments for drawing its line
    is_sb3: bool


def _ours(algorithm: str, preset: str, **look: Any) -> Algorithm:
    return Algorithm(
        f'{algorithm} {preset}', lambda seed, _: OurLearner(algorithm, preset, seed), look, False
    )


def _sb3(algorithm: str, whose: str, **look: Any) -> Algorithm:
    def begin(seed: int, limit: int) -> Sb3Learner:
        schedule = ZOO_SCHEDULE if whose == 'zoo' else our_schedule()
        return Sb3Learner(algorithm, seed, limit, schedule)

    return Algorithm(f'SB3 {algorithm}+HER, {whose}', begin, look, True)


ALGORITHMS = {
    FAST: _ours('mher', 'fast', color='#D55E00', marker='o'),
    'mher_paper': _ours('mher', 'paper', color='#E69F00', marker='P'),
    HER: _ours('her', 'fast', color='#0072B2', marker='s'),
    'sb3_sac': _sb3('SAC', 'zoo', color='#7A7A7A', marker='^', linestyle='--'),
    'sb3_ddpg': _sb3('DDPG', 'zoo', color='#7A7A7A', marker='v', linestyle=':'),
    'sb3_sac_our_pace': _sb3('SAC', 'our pace', color='#009E73', marker='^', linestyle='--'),
    'sb3_ddpg_our_pace': _sb3('DDPG', 'our pace', color='#009E73', marker='v', linestyle=':'),
}
