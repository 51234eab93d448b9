"""Every choice the learner has, documented once, and the presets as values of it."""

from __future__ import annotations

import dataclasses
from typing import Any

from mher_ros.learning.plangan_config import PlanConfig
from mher_ros.learning.presets import DEPLOYED, EPISODES_PER_EPOCH, PRECISION, PRESETS
from mher_ros.learning.systems import ALGORITHMS
from mher_ros.options import option, OptionError, override
from mher_ros.tasks import task_class
from mher_ros.tasks.task import TaskOptions

__all__ = [
    'AgentConfig',
    'ModelConfig',
    'RelabelConfig',
    'ScheduleConfig',
    'TrainConfig',
    'config_from_dict',
    'make_config',
]


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    """Actor, critic and exploration."""

    hidden: tuple[int, ...] = option(
        (256, 256, 256), 'units of each hidden layer', low=1, high=8192
    )
    relative_goal: bool = option(False, 'show the networks the way to the goal, too')
    waves: int = option(
        0, 'show the networks that many sines and cosines of each number, too', low=0, high=16
    )
    workspace_units: bool = option(
        False,
        'show the networks positions and goals in widths of the workspace, not in standard '
        'deviations of those seen',
    )
    hide_still: bool = option(
        False, 'show the networks nothing of entries that never varied in training'
    )
    actor_learning_rate: float = option(1e-3, "Adam's, for the actor", low=1e-6, high=1.0)
    critic_learning_rate: float = option(1e-3, "Adam's, for the critic", low=1e-6, high=1.0)
    batch: int = option(64, 'transitions in an update', low=1, high=65536)
    gamma: float = option(0.99, 'discount', low=0.0, high=0.9999)
    value_ceiling: float = option(0.0, 'targets are cut above this', low=0.0)
    target_keep: float = option(0.9, 'share of the old in a target update', low=0.0, high=1.0)
    target_every: int = option(5, 'updates between target updates', low=1)
    alpha: float = option(
        3.0, 'weight of the supervised loss on relabelled rows', low=0.0, high=1e6
    )
    alpha_half_life: float = option(
        0.0, 'updates after which alpha has halved; 0: it never does', low=0.0
    )
    action_penalty: float = option(1.0, 'weight of the squared action', low=0.0, high=1e6)
    actor: str = option(
        'joint',
        'joint: policy gradient and supervised loss in one; apart: a supervised step on '
        'relabelled rows, then the policy gradient on original goals; imitation: supervised '
        'steps alone, no critic; plan: no actor, see plan.*',
        choices=('joint', 'apart', 'imitation', 'plan'),
    )
    target_steps: int = option(
        1, "rewards in the critic's target; those after the first by the model", low=1, high=100
    )
    imagined_steps: int = option(
        0, 'learn from model rollouts of this many steps alone; 0: from real ones', low=0, high=100
    )
    explore_noise: float = option(0.2, 'standard deviation of noise on actions', low=0.0)
    explore_random: float = option(0.3, 'chance of a uniform action', low=0.0, high=1.0)
    deploy_average: bool = option(False, 'evaluate and export the slowly moving target actor')
    replay: int = option(
        1_000_000, 'transitions kept, of real ones and of imagined ones', low=1, high=100_000_000
    )
    replay_rare: bool = option(False, 'replay episodes with rare paths more often')


@dataclasses.dataclass(frozen=True)
class RelabelConfig:
    """Which goals replace the original ones."""

    goals: str = option(
        'virtual',
        'none, future (of the same episode), virtual (of a model rollout), mixed (both), random',
        choices=('none', 'future', 'virtual', 'mixed', 'random'),
    )
    probability: float = option(0.8, 'share of rows relabelled', low=0.0, high=1.0)
    elsewhere: float = option(
        0.0,
        'share of rows whose own goal is first exchanged for one achieved anywhere in the replay',
        low=0.0,
        high=1.0,
    )
    steps: int = option(5, 'length n of the model rollout', low=0, high=1000)
    rollout_noise: float = option(0.2, 'standard deviation of noise in the rollout', low=0.0)
    virtual_share: float = option(
        0.5, 'mixed: share of the relabelled rows that is virtual', low=0.0, high=1.0
    )
    goal_noise: float = option(0.0, 'standard deviation of noise on new goals', low=0.0)
    candidates: int = option(
        1, 'candidates a row, of which a curriculum picks; 1: take what comes', low=1, high=100
    )
    closeness: float = option(
        1.0, 'curriculum: weight of closeness to the desired goal at first', low=0.0, high=1e6
    )
    closeness_growth: float = option(
        1e-4, 'curriculum: share by which that weight grows an update', low=0.0, high=1.0
    )


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The dynamics model."""

    hidden: tuple[int, ...] = option(
        (256, 256, 256, 256), 'units of each hidden layer', low=1, high=8192
    )
    members: int = option(3, 'networks in the ensemble', low=1, high=100)
    learning_rate: float = option(1e-3, "Adam's", low=1e-6, high=1.0)
    loss: str = option('absolute', 'absolute or squared error', choices=('absolute', 'squared'))
    gradient_limit: float = option(5.0, "cut each tensor's gradient norm; 0: never", low=0.0)
    fits_per_update: int = option(2, 'model steps in an update', low=0)
    warmup_fits: int = option(100, 'model steps after the warm-up', low=0)
    warmup_batch: int = option(512, 'transitions in each of those', low=1, high=65536)


@dataclasses.dataclass(frozen=True)
class ScheduleConfig:
    """What happens when."""

    warmup_episodes: int = option(20, 'episodes of random actions first (counted)', low=1)
    episode_steps: int = option(
        100,
        'steps in a training episode (those of a test: task.episode_steps)',
        low=1,
        high=100_000,
    )
    warmup_updates: int = option(0, 'updates on the episodes of the warm-up', low=0)
    updates_per_episode: int = option(5, 'updates after each later episode', low=0)
    episodes_per_epoch: int = option(1, 'episodes between two evaluations', low=1)
    evaluation_goals: int = option(100, 'goals in an evaluation', low=1, high=100_000)
    steps: int = option(5000, 'stop after this many environment steps', low=1)
    until: float = option(
        0.0, 'stop once this success rate holds over two evaluations; 0: never', low=0.0, high=1.0
    )
    max_minutes: float = option(
        0.0, 'stop after this much time, pauses not counted; 0: never', low=0.0
    )


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """A whole run."""

    task_name: str
    algorithm: str
    preset: str
    seed: int
    task: TaskOptions
    agent: AgentConfig
    relabel: RelabelConfig
    model: ModelConfig
    plan: PlanConfig
    schedule: ScheduleConfig

    @property
    def needs_model(self) -> bool:
        """Whether anything is learnt with the dynamics model."""
        agent = self.agent
        imagines = agent.target_steps > 1 or agent.imagined_steps > 0 or agent.actor == 'plan'
        return imagines or self.relabel.goals in ('virtual', 'mixed')

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self)


SECTIONS: dict[str, type] = {
    'agent': AgentConfig,
    'relabel': RelabelConfig,
    'model': ModelConfig,
    'plan': PlanConfig,
    'schedule': ScheduleConfig,
}
"""Parts of every run's configuration, beside that of its task."""


def make_config(
    task: str,
    algorithm: str = 'mher',
    preset: str = 'fast',
    seed: int = 0,
    changes: dict[str, Any] | None = None,
) -> TrainConfig:
    """Put task, algorithm and preset together, then apply ``changes`` (dotted key to value)."""
    options = task_class(task).default_options
    for name, value, known in (
        ('algorithm', algorithm, ALGORITHMS),
        ('preset', preset, PRESETS),
    ):
        if value not in known:
            raise OptionError(f'unknown {name} {value!r}; there are {", ".join(known)}')
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise OptionError(f'seed must be a whole number from 0 to 2**63 - 1, got {seed!r}')
    config = TrainConfig(
        task,
        algorithm,
        preset,
        seed,
        options,
        **{name: section() for name, section in SECTIONS.items()},
    )
    values = dict(PRESETS[preset])
    if preset.startswith('paper'):
        episodes = EPISODES_PER_EPOCH.get(task, 1)
        values['schedule.episodes_per_epoch'] = episodes
        values['schedule.steps'] = (20 + 30 * episodes) * 100
    if preset == 'precise':
        values['task.threshold'] = round(PRECISION * options.threshold, 6)
    if preset in DEPLOYED and hasattr(options, 'reachable_goals'):
        values['task.reachable_goals'] = True
    config = override(config, {**values, **ALGORITHMS[algorithm].changes, **(changes or {})})
    _check_fit(config)
    return config


def _check_fit(config: TrainConfig) -> None:
    """Refuse choices that are good each by itself but not together."""
    schedule, agent, relabel = config.schedule, config.agent, config.relabel
    rows = {
        f'agent.imagined_steps={agent.imagined_steps}': agent.imagined_steps > 0,
        'agent.replay_rare=true': agent.replay_rare,
        f'relabel.candidates={relabel.candidates}': relabel.candidates > 1,
    }
    choosing = [text for text, chosen in rows.items() if chosen]
    if len(choosing) > 1:
        raise OptionError(
            f'only one of these can choose the rows to learn from: {", ".join(choosing)}'
        )
    unfit = {
        'apart': [*choosing, *(['relabel.goals=none'] if relabel.goals == 'none' else [])],
        'imitation': [
            *(choosing if agent.imagined_steps else []),
            *(['relabel.goals=none'] if relabel.goals == 'none' else []),
        ],
        'plan': [
            *choosing,
            *([f'agent.waves={agent.waves}'] if agent.waves else []),
            *(['agent.workspace_units=true'] if agent.workspace_units else []),
            *([f'relabel.elsewhere={relabel.elsewhere:g}'] if relabel.elsewhere else []),
        ],
    }.get(agent.actor)
    if unfit:
        raise OptionError(f'agent.actor={agent.actor} does not go with {", ".join(unfit)}')
    least = (schedule.warmup_episodes + 1) * schedule.episode_steps
    if schedule.steps < least:
        raise OptionError(
            f'schedule.steps must be at least {least}, the warm-up and one episode, '
            f'got {schedule.steps}'
        )


def config_from_dict(values: dict[str, Any]) -> TrainConfig:
    """
    Rebuild a configuration from ``to_dict``, checking every value.

    An option that did not exist when it was written has its default, whatever a preset of that
    name says today.
    """
    try:
        head = {name: values[name] for name in ('task_name', 'algorithm', 'preset', 'seed')}
        hash(tuple(head.values()))  # TypeError for lists and the like
        written = {'plan': {}, **values}
        changes = {
            f'{section}.{key}': value
            for section, defaults in SECTIONS.items()
            for key, value in {**dataclasses.asdict(defaults()), **written[section]}.items()
        }
        defaults = dataclasses.asdict(task_class(head['task_name']).default_options)
        changes |= {f'task.{key}': value for key, value in (defaults | written['task']).items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise OptionError(f'not the configuration of a run: {error!r}') from None
    return make_config(head['task_name'], head['algorithm'], head['preset'], head['seed'], changes)
