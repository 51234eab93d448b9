"""Who learns fetch_reach: our systems, and those of stable-baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
from fractions import Fraction
from typing import Any, Protocol

from mher_ros.bench.sb3 import Pace, Sb3Learner, ZOO_PACE
from mher_ros.learning.config import make_config
from mher_ros.learning.train import Trainer
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluator, PolicyFunction

__all__ = ['FAST', 'HER', 'Learner', 'System', 'SYSTEMS', 'TASK']

TASK = 'fetch_reach'
FAST, HER = 'mher_fast', 'her_fast'


class Learner(Protocol):
    """Something that learns step by step."""

    learns_from: int
    """Steps after which it first knows more than nothing."""

    @property
    def steps(self) -> int:
        """Steps done in the environment."""

    def learn_until(self, steps: int) -> None:
        """Act and learn until that many steps are done, or the episode that they end in."""

    def policy(self) -> PolicyFunction:
        """Return what it would do now, without exploring."""


class OurLearner:
    """The trainer, without evaluations of its own."""

    def __init__(self, algorithm: str, preset: str, seed: int) -> None:
        changes = {
            'schedule.episodes_per_epoch': 10**9,
            'schedule.steps': 10**9,
            'schedule.until': 0.0,
            'task.reachable_goals': False,  # FetchReach-v4 as it is, as all others have it
        }
        config = make_config(TASK, algorithm, preset, seed, changes)
        self._trainer = Trainer(config, make(TASK, config.task), Evaluator(TASK).run, None)
        schedule = config.schedule
        episodes = schedule.warmup_episodes + (0 if schedule.warmup_updates else 1)
        self.learns_from = episodes * schedule.episode_steps

    @property
    def steps(self) -> int:
        return self._trainer.env_steps

    def learn_until(self, steps: int) -> None:
        self._trainer.run(asked_to_stop=lambda: self.steps >= steps and self._trainer.has_learnt)

    def policy(self) -> PolicyFunction:
        return self._trainer.agent.policy_function()


@dataclasses.dataclass(frozen=True)
class System:
    """A learner, how it begins (seed, limit), and how its line is drawn."""

    title: str
    begin: Callable[[int, int], Learner]
    look: Mapping[str, Any]

    @property
    def is_sb3(self) -> bool:
        """Whether it is a rival."""
        return self.title.startswith('SB3')


def _ours(algorithm: str, preset: str, **look: Any) -> System:
    def begin(seed: int, limit: int) -> Learner:
        return OurLearner(algorithm, preset, seed)

    return System(f'{algorithm} {preset}', begin, look)


def _sb3(algorithm: str, at_our_pace: bool, **look: Any) -> System:
    def begin(seed: int, limit: int) -> Learner:
        pace = _our_pace() if at_our_pace else ZOO_PACE
        return Sb3Learner(algorithm, TASK, seed, limit, pace)

    whose = 'our pace' if at_our_pace else 'zoo'
    return System(f'SB3 {algorithm}+HER, {whose}', begin, look)


def _our_pace() -> Pace:
    config = make_config(TASK, preset='fast')
    schedule = config.schedule
    return Pace(
        schedule.warmup_episodes * schedule.episode_steps,
        config.agent.batch,
        Fraction(schedule.updates_per_episode, schedule.episode_steps),
        schedule.episode_steps,
        schedule.warmup_updates,
    )


SYSTEMS = {
    FAST: _ours('mher', 'fast', color='#D55E00', marker='o'),
    'mher_paper': _ours('mher', 'paper', color='#E69F00', marker='P'),
    HER: _ours('her', 'fast', color='#0072B2', marker='s'),
    'sb3_sac': _sb3('SAC', False, color='#7A7A7A', marker='^', linestyle='--'),
    'sb3_ddpg': _sb3('DDPG', False, color='#7A7A7A', marker='v', linestyle=':'),
    'sb3_sac_our_pace': _sb3('SAC', True, color='#009E73', marker='^', linestyle='--'),
    'sb3_ddpg_our_pace': _sb3('DDPG', True, color='#009E73', marker='v', linestyle=':'),
}
