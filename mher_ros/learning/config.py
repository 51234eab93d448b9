"""Options of a training run."""

import dataclasses
import enum
import functools
from pathlib import Path
from typing import Any

from mher_ros.learning.presets import (
    ALGORITHMS,
    DEPLOYED,
    EPISODES_PER_EPOCH,
    PRECISION,
    PRESETS,
    TASK_CHANGES,
)
from mher_ros.learning.relabel import RELABELLING
from mher_ros.learning.run.arguments import read_config
from mher_ros.options import describe, dotted, option, OptionError, override
from mher_ros.registry import check_trusted
from mher_ros.tasks import task_class
from mher_ros.tasks.task import TaskOptions


class RngStream(enum.IntEnum):
    """Second entry of every seed sequence: an independent random stream for each purpose."""

    AGENT = 0  # exploration, batches, relabelling
    TRAINING = 1  # resets of training episodes
    TEST = 2  # resets of test episodes
    MODEL_ERROR = 3  # batches on which the model's error is measured
    PLANNING = 4  # plans of an evaluation
    RARITY = 5  # initial means of the Gaussian mixture of ``agent.replay_rare``
    RECORDS = 7  # recorders of experiments


_fraction = functools.partial(option, low=0.0, high=1.0)
_rate = functools.partial(option, low=1e-6, high=1.0)
_weight = functools.partial(option, low=0.0, high=1e6)
_not_negative = functools.partial(option, low=0.0)
_units = functools.partial(option, low=1, high=8192)
_batch = functools.partial(option, low=1, high=65536)
_count = functools.partial(option, low=0)
_up_to_100 = functools.partial(option, low=1, high=100)
_at_least_one = functools.partial(option, low=1)


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    hidden: tuple[int, ...] = _units((256, 256, 256), 'units of each hidden layer')
    relative_goal: bool = option(False, 'add desired minus achieved goal to the network inputs')
    fourier_features: int = option(
        0, 'add this many sines and cosines of each network input to the inputs', low=0, high=16
    )
    workspace_normalisation: bool = option(
        False, 'normalise positions and goals by the workspace, not by running statistics'
    )
    mask_constant_inputs: bool = option(False, 'set inputs to 0 that never varied in training')
    layer_norm: bool = option(False, 'layer normalisation in the hidden layers of the critic')
    actor_learning_rate: float = _rate(1e-3, 'learning rate of the actor (Adam)')
    critic_learning_rate: float = _rate(1e-3, 'learning rate of the critic (Adam)')
    batch: int = _batch(64, 'transitions per update')
    gamma: float = option(0.99, 'discount factor', low=0.0, high=0.9999)
    value_ceiling: float = _not_negative(0.0, "upper limit of the critic's targets")
    tau: float = _fraction(0.1, 'Polyak coefficient of a target network update')
    target_every: int = _at_least_one(5, 'updates between two target network updates')
    alpha: float = _weight(3.0, 'weight of the supervised loss on relabelled transitions')
    alpha_half_life: float = _not_negative(0.0, 'updates after which alpha halves; 0: constant')
    action_penalty: float = _weight(1.0, "weight of the squared action in the actor's loss")
    actor: str = option(
        'joint',
        'joint: policy gradient and supervised loss in one step; separate: a supervised step on '
        'relabelled transitions, then policy gradient on original goals; imitation: supervised '
        'loss only, no critic; plan: no actor, see plan.*',
        choices=('joint', 'separate', 'imitation', 'plan'),
    )
    target_steps: int = _up_to_100(1, "rewards in the critic's target, one of them real")
    model_batch_steps: int = option(
        0, 'train only on model rollouts of this length; 0: on real transitions', low=0, high=100
    )
    explore_noise: float = _not_negative(0.2, 'standard deviation of the exploration noise')
    explore_random: float = _fraction(0.3, 'probability of a uniform random action')
    export_target_actor: bool = option(False, 'evaluate and export the target actor')
    replay: int = option(1_000_000, 'transitions per replay buffer', low=1, high=100_000_000)
    replay_rare: bool = option(False, 'sample episodes with rare trajectories more often')


@dataclasses.dataclass(frozen=True)
class RelabelConfig:
    goals: str = option(
        'virtual',
        'new goals: none; future: achieved later in the episode; virtual: achieved in a model '
        'rollout; mixed: virtual and future; random: achieved anywhere in the buffer; uniform: '
        'uniform in the goal box; or module:Class',
    )
    probability: float = _fraction(0.8, 'fraction of transitions that are relabelled')
    random_share: float = _fraction(
        0.0, 'fraction of transitions that first get a random goal, as by goals=random'
    )
    steps: int = option(5, 'length n of the model rollout', low=0, high=1000)
    rollout_noise: float = _not_negative(0.2, 'standard deviation of action noise in rollouts')
    virtual_share: float = _fraction(0.5, 'mixed: fraction of virtual goals')
    goal_noise: float = _not_negative(0.0, 'standard deviation of noise on new goals')
    candidates: int = _up_to_100(1, 'curriculum: candidates per selected transition; 1: none')
    closeness: float = _weight(1.0, 'curriculum: initial weight of closeness to desired goals')
    closeness_growth: float = _fraction(1e-4, 'curriculum: relative growth of it per update')


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    hidden: tuple[int, ...] = _units((256, 256, 256, 256), 'units of each hidden layer')
    members: int = _up_to_100(3, 'networks in the ensemble')
    learning_rate: float = _rate(1e-3, 'learning rate (Adam)')
    loss: str = option('absolute', 'absolute or squared error', choices=('absolute', 'squared'))
    gradient_limit: float = _not_negative(5.0, 'gradient norm limit per tensor; 0: none')
    fits_per_update: int = _count(2, 'gradient steps of the model per update')
    warmup_fits: int = _count(100, 'gradient steps of the model after the warm-up')
    warmup_batch: int = _batch(512, 'transitions per gradient step after the warm-up')


@dataclasses.dataclass(frozen=True)
class PlanConfig:
    """The ensemble of GANs and the planner (PlanGAN)."""

    # The MHER paper gives the defaults of the planner, the PlanGAN paper those of the GANs.
    gans: int = _up_to_100(3, 'GANs in the ensemble')
    latent: int = _units(64, "size of the generators' latent vector")
    hidden: tuple[int, ...] = _units((512, 512), 'units of each hidden layer')
    learning_rate: float = _rate(1e-4, 'learning rate of the GANs (Adam)')
    weight_decay: float = _fraction(2e-4, 'weight decay of the GANs (Adam)')
    ema_decay: float = _fraction(0.998, 'decay of the moving average of the generators, per step')
    consistency: float = _weight(30.0, "weight of the squared difference to the model's states")
    batch: int = _batch(128, 'sequences, or transitions of the model, per gradient step')
    sequence: int = option(5, 'length of the sequences that train generators', low=1, high=1000)
    fits_per_update: int = _count(5, 'gradient steps of model and GANs per update')
    warmup_fits: int = _count(2000, 'gradient steps of the GANs after the warm-up')
    first_actions: int = option(20, 'candidate first actions', low=1, high=10_000)
    trajectories: int = option(50, 'trajectories per candidate first action', low=1, high=10_000)
    steps: int = option(50, 'steps per trajectory, including the first', low=1, high=1000)
    next_state: str = option(
        'model',
        'what predicts the next state: the model, or the generator (cheaper)',
        choices=('model', 'generator'),
    )
    choice: str = option(
        'best',
        'best: first action with the highest score; weighted: mean weighted by softmax of scores',
        choices=('best', 'weighted'),
    )
    sharpness: float = option(
        5.0, 'weighted: inverse temperature of the softmax of scores', low=0.0, high=1e3
    )


@dataclasses.dataclass(frozen=True)
class ScheduleConfig:
    warmup_episodes: int = _at_least_one(20, 'initial episodes with random actions')
    episode_steps: int = option(
        100, 'steps per training episode (test: task.episode_steps)', low=1, high=100_000
    )
    warmup_updates: int = _count(0, 'updates after the warm-up')
    updates_per_episode: int = _count(5, 'updates after each later episode')
    episodes_per_epoch: int = _at_least_one(1, 'episodes between two evaluations')
    evaluation_goals: int = option(100, 'goals per evaluation', low=1, high=100_000)
    steps: int = _at_least_one(5000, 'stop after this many environment steps')
    threshold_start: float = option(
        1.0,
        'factor of the success threshold of rewards at first; it shrinks to 1 as success holds. '
        'Evaluations use the threshold itself',
        low=1.0,
        high=1000.0,
    )
    threshold_episodes: int = _at_least_one(
        5, 'successive training episodes that reach their goals, after which it shrinks by 0.7'
    )
    until: float = _fraction(
        0.0, 'stop when two successive evaluations reach this success rate; 0: never'
    )
    max_minutes: float = _not_negative(0.0, 'stop after this training time [min]; 0: never')


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    task_name: str
    algorithm: str
    preset: str
    seed: int
    task: TaskOptions
    agent: AgentConfig = AgentConfig()
    relabel: RelabelConfig = RelabelConfig()
    model: ModelConfig = ModelConfig()
    plan: PlanConfig = PlanConfig()
    schedule: ScheduleConfig = ScheduleConfig()

    @property
    def needs_model(self) -> bool:
        agent = self.agent
        if agent.target_steps > 1 or agent.model_batch_steps > 0 or agent.actor == 'plan':
            return True
        return self.relabel.goals != 'none' and RELABELLING[self.relabel.goals].needs_model

    def values(self) -> dict[str, Any]:
        """Return the value of each option by its dotted key."""
        return {key: value for key, value, _ in describe(self)}

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def make_config(
    task: str,
    algorithm: str = 'mher',
    preset: str = 'fast',
    seed: int = 0,
    changes: dict[str, Any] | None = None,
) -> TrainConfig:
    """Return the preset, changed by the algorithm, then by ``changes`` (dotted key to value)."""
    options = task_class(task).default_options
    if preset not in PRESETS:
        raise OptionError(f'unknown preset {preset!r}; there are {", ".join(PRESETS)}')
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise OptionError(f'seed must be a whole number from 0 to 2**63 - 1, got {seed!r}')
    values = dict(PRESETS[preset])
    if preset.startswith('paper'):
        episodes = EPISODES_PER_EPOCH.get(task, 1)
        values['schedule.episodes_per_epoch'] = episodes
        values['schedule.steps'] = (20 + 30 * episodes) * 100
    if preset == 'precise':
        values['task.threshold'] = round(PRECISION * options.threshold, 6)
    if preset in DEPLOYED:
        values |= TASK_CHANGES.get(task, {})
        if hasattr(options, 'reachable_goals'):
            values['task.reachable_goals'] = True
    values |= {**ALGORITHMS[algorithm].changes, **(changes or {})}
    config = override(TrainConfig(task, algorithm, preset, seed, options), values)
    _check_fit(config)
    return config


def _check_fit(config: TrainConfig) -> None:
    """Raise OptionError for options that exclude each other."""
    schedule, agent, goals = config.schedule, config.agent, config.relabel.goals
    if goals != 'none' and goals not in RELABELLING:
        RELABELLING[goals]  # raises OptionError unless it is module:Class
    defaults = TrainConfig('', '', '', 0, config.task).values()
    changed = {key: f'{key}={v}' for key, v in config.values().items() if v != defaults[key]}

    def selected(*keys: str) -> list[str]:
        return [changed[key] for key in keys if key in changed]

    samplers = selected('agent.model_batch_steps', 'agent.replay_rare', 'relabel.candidates')
    if len(samplers) > 1:
        raise OptionError(f'these options exclude each other: {", ".join(samplers)}')
    inputs = 'agent.fourier_features', 'agent.workspace_normalisation', 'relabel.random_share'
    threshold = ('schedule.threshold_start',)  # there are no rewards
    no_goals = ['relabel.goals=none'] if goals == 'none' else []
    conflicts = {
        'separate': samplers + no_goals,
        'imitation': selected('agent.model_batch_steps', *threshold) + no_goals,
        'plan': samplers + selected(*inputs, *threshold),
    }.get(agent.actor)
    if conflicts:
        raise OptionError(f'agent.actor={agent.actor} excludes {", ".join(conflicts)}')
    least = (schedule.warmup_episodes + 1) * schedule.episode_steps
    if schedule.steps < least:
        raise OptionError(
            f'schedule.steps must be at least {least} (warm-up and one episode), '
            f'got {schedule.steps}'
        )


def config_from_dict(values: dict[str, Any]) -> TrainConfig:
    """Return the configuration of ``to_dict``; every value is checked."""
    # An option that the file lacks gets its default, not the preset's value: the option did not
    # exist when the run was started.
    try:
        head = {name: values[name] for name in ('task_name', 'algorithm', 'preset', 'seed')}
        hash(tuple(head.values()))  # TypeError for lists and dicts
        goals = values['relabel'].get('goals', '')
        check_trusted(*map(str, (head['task_name'], head['algorithm'], goals)))
        task = task_class(head['task_name']).default_options
        changes = {
            f'{section}.{key}': value
            for section, defaults in dataclasses.asdict(TrainConfig('', '', '', 0, task)).items()
            if isinstance(defaults, dict)
            for key, value in dotted({**defaults, **{'plan': {}, **values}[section]}).items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise OptionError(f'not the configuration of a run: {error!r}') from None
    return make_config(head['task_name'], head['algorithm'], head['preset'], head['seed'], changes)


def load_config(folder: Path) -> TrainConfig:
    return config_from_dict(read_config(folder))
