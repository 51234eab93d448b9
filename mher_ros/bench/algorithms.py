"""The algorithms that learn a task in ``mher bench learning``: ours and those of SB3."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from fractions import Fraction
from pathlib import Path
import re
from typing import Any, NamedTuple

from mher_ros.interface import Vector
from mher_ros.learning.config import make_config, TrainConfig
from mher_ros.learning.presets import ALGORITHMS as LEARNING_ALGORITHMS
from mher_ros.learning.run.trainer import Trainer
from mher_ros.tasks import make, PAPER_TASKS, task_class
from mher_ros.tasks.rollouts import Evaluator, PolicyFunction
from mher_ros.tasks.task import TaskOptions
import numpy as np
from numpy.typing import NDArray

TASK = 'fetch_reach'  # the task of the zoo's settings
FAST, HER = 'mher_fast', 'her_fast'

# rl-baselines3-zoo, hyperparams/sac.yml, FetchReach-v1. Its `normalize: True` wraps the
# environment in VecNormalize with the algorithm's gamma (rl_zoo3/exp_manager.py).
GAMMA, LEARNING_RATE, HIDDEN = 0.95, 1e-3, (64, 64)
# The zoo has no DDPG settings for this task: DDPG gets those of SAC, and the action noise that
# hyperparams/ddpg.yml has by default.
DDPG_NOISE = 0.1


@dataclasses.dataclass(frozen=True)
class Problem:
    """What all algorithms learn: a task, with changes of its options and of ours."""

    task: str = TASK
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """By dotted key; those of ``task`` hold for SB3, too."""

    def config(self, algorithm: str = 'mher', preset: str = 'fast', seed: int = 0) -> TrainConfig:
        """Return our configuration; what makes an algorithm another one is not changed."""
        its_own = LEARNING_ALGORITHMS[algorithm].changes
        changes = {key: value for key, value in self.changes.items() if key not in its_own}
        if hasattr(task_class(self.task).default_options, 'reachable_goals'):
            # The goals of FetchReach-v4, as for all others.
            changes = {'task.reachable_goals': False, **changes}
        return make_config(self.task, algorithm, preset, seed, changes)

    @property
    def options(self) -> TaskOptions:
        """Options of the task, which are the same for all algorithms."""
        return self.config().task

    @property
    def robot(self) -> str:
        """Its robot, as the option says; empty if the task has no such option."""
        return str(getattr(self.options, 'robot', ''))

    @property
    def name(self) -> str:
        """Task and robot, for names of files."""
        task = re.sub(r'[^A-Za-z0-9_.-]', '_', self.task)
        return f'{task}-{Path(self.robot).stem}' if self.robot else task


class OurLearner:
    """Our trainer, without its own evaluations; ``Sb3Learner`` has the same interface."""

    def __init__(self, config: TrainConfig, env: Any) -> None:
        endless = dataclasses.replace(
            config.schedule, episodes_per_epoch=10**9, steps=10**9, until=0.0
        )
        config = dataclasses.replace(config, schedule=endless)
        self._trainer = Trainer(config, env, Evaluator(config.task_name).run, None)
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
    gamma: float = GAMMA
    hidden: tuple[int, ...] = HIDDEN


ZOO_SCHEDULE = Schedule(1000, batch=256, updates_per_step=Fraction(1), episode_steps=50)
"""That of hyperparams/sac.yml, with the episodes of FetchReach."""


def our_schedule(problem: Problem) -> Schedule:
    """Return the schedule of mher with the preset ``fast``."""
    config = problem.config()
    schedule, agent = config.schedule, config.agent
    # For a task that the zoo does not have, SB3 also gets our discount and networks.
    others = (GAMMA, HIDDEN) if problem.task == TASK else (agent.gamma, agent.hidden)
    return Schedule(
        schedule.warmup_episodes * schedule.episode_steps,
        config.agent.batch,
        Fraction(schedule.updates_per_episode, schedule.episode_steps),
        schedule.episode_steps,
        schedule.warmup_updates,
        *others,
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
    def __init__(
        self, algorithm: str, problem: Problem, seed: int, limit: int, schedule: Schedule
    ) -> None:
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.noise import NormalActionNoise
        from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

        options = dataclasses.replace(problem.options, episode_steps=schedule.episode_steps)
        env = make(problem.task, options)
        actions = len(env.interface.action)
        noise = NormalActionNoise(np.zeros(actions), np.full(actions, DDPG_NOISE))
        self._normalised = VecNormalize(DummyVecEnv([lambda: env]), gamma=schedule.gamma)
        self._interface = env.interface
        self.model = sb3_model(
            algorithm,
            self._normalised,
            schedule.hidden,
            seed,
            learning_rate=LEARNING_RATE,
            gamma=schedule.gamma,
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
    begin: Callable[[Problem, int, int], OurLearner | Sb3Learner]
    """Returns a new learner, given a problem, a seed and the limit of steps."""
    settings: Callable[[Problem], Any]  # JSON values on which its runs depend, but for the seed
    look: Mapping[str, Any]  # arguments for drawing its line
    is_sb3: bool


def _ours(algorithm: str, preset: str, **look: Any) -> Algorithm:
    def config(problem: Problem, seed: int = 0) -> TrainConfig:
        # Tests are those of ``fast`` for all, whatever a preset changes of the task.
        found = problem.config(algorithm, preset, seed)
        return dataclasses.replace(found, task=problem.options)

    def begin(problem: Problem, seed: int, limit: int) -> OurLearner:
        return OurLearner(config(problem, seed), make(problem.task, problem.options))

    return Algorithm(
        f'{algorithm} {preset}', begin, lambda problem: config(problem).to_dict(), look, False
    )


def _sb3(algorithm: str, whose: str, **look: Any) -> Algorithm:
    def schedule(problem: Problem) -> Schedule:
        return ZOO_SCHEDULE if whose == 'zoo' else our_schedule(problem)

    def begin(problem: Problem, seed: int, limit: int) -> Sb3Learner:
        return Sb3Learner(algorithm, problem, seed, limit, schedule(problem))

    def settings(problem: Problem) -> Any:
        import stable_baselines3 as sb3

        return [
            sb3.__version__,
            problem.task,
            dataclasses.asdict(problem.options),
            str(schedule(problem)),
        ]

    return Algorithm(f'SB3 {algorithm}+HER, {whose}', begin, settings, look, True)


ALGORITHMS = {
    FAST: _ours('mher', 'fast', color='#D55E00', marker='o'),
    'mher_paper': _ours('mher', 'paper', color='#E69F00', marker='P'),
    HER: _ours('her', 'fast', color='#0072B2', marker='s'),
    'sb3_sac': _sb3('SAC', 'zoo', color='#7A7A7A', marker='^', linestyle='--'),
    'sb3_ddpg': _sb3('DDPG', 'zoo', color='#7A7A7A', marker='v', linestyle=':'),
    'sb3_sac_our_pace': _sb3('SAC', 'our pace', color='#009E73', marker='^', linestyle='--'),
    'sb3_ddpg_our_pace': _sb3('DDPG', 'our pace', color='#009E73', marker='v', linestyle=':'),
}


def default_algorithms(task: str) -> list[str]:
    """Return those that have settings for the task."""
    found = list(ALGORITHMS)
    if task not in PAPER_TASKS:
        found.remove('mher_paper')
    if task != TASK:
        found = [name for name in found if name not in ('sb3_sac', 'sb3_ddpg')]
    return found
