"""Base class of the agents: exploration, replay, model training and checkpoint state."""

import abc
from collections.abc import Callable
import json
import math
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.learning.config import RngStream, TrainConfig
from mher_ros.learning.core.networks import InputEncoder, Policy
from mher_ros.learning.core.replay_buffer import (
    check_array,
    Episode,
    EpisodeReplay,
    Floats,
    ModelReplay,
    Transitions,
)
from mher_ros.learning.model import Dynamics
from mher_ros.learning.relabel.strategies import FutureGoals, relabel
from mher_ros.tasks.rollouts import PolicyFunction
from mher_ros.tasks.task import Array
import numpy as np
from numpy.typing import NDArray
import torch

ERROR_SAMPLES = 256  # sequences per measurement of the model's error


class DivergedError(MherError, ArithmeticError):
    """A loss is infinite or NaN."""


class Learner(abc.ABC):
    """An agent that learns from episodes; ``rng`` generates all of its random numbers."""

    encoder: InputEncoder
    dynamics: Dynamics | None = None
    goal_offsets: Floats | None = None  # new minus original goals of the last batch (k, m)
    loss_names: tuple[str, ...]  # possible keys of ``take_losses``
    _modules: dict[str, torch.nn.Module]
    _optimisers: list[torch.optim.Optimizer]  # in a fixed order

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        self.interface, self._config = interface, config
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        self.replay = EpisodeReplay(config.agent.replay, config.schedule.episode_steps, n, k, m)
        self._replays: dict[str, EpisodeReplay | ModelReplay] = {'replay': self.replay}
        self.rng = np.random.default_rng([config.seed, RngStream.AGENT])
        self.updates = 0
        self.threshold_factor = 1.0
        """Factor of the success threshold of rewards."""
        self.interrupt: Callable[[], None] = lambda: None
        """Called often during long computations; may raise StopRequested."""
        self._warm_up_done = 0
        self._losses: dict[str, list[float]] = {}

    @property
    def policy(self) -> Policy | None:
        """The network to export; None if the agent has no actor."""
        return None

    @abc.abstractmethod
    def policy_function(self) -> PolicyFunction:
        """Return the policy to evaluate; calling it does not change the agent."""

    @abc.abstractmethod
    def update(self) -> None:
        """Do one update on one batch, or the rest of an interrupted update."""

    @abc.abstractmethod
    def _greedy_action(self, observation: Array, goal: Array) -> Floats:
        """Return the action (k,) without exploration."""

    def store(self, episode: Episode) -> None:
        """Add an episode to the replay buffer and to the running statistics."""
        self.replay.add(episode)
        latest, config = self.replay.sample_latest(self.rng), self._config
        goals = latest.goals
        if config.relabel.goals != 'none' or config.agent.actor == 'plan':
            future = FutureGoals(self.replay, self.interface)
            goals, _ = relabel(latest, future, config.relabel.probability, self.rng)
        observations = torch.from_numpy(latest.observations)
        following = torch.from_numpy(latest.next_observations)
        self.encoder.update_statistics(observations, following, torch.from_numpy(goals))
        if self.dynamics is not None:
            self.dynamics.update_statistics(observations, torch.from_numpy(latest.actions))

    def warm_up_model(self) -> None:
        """Fit the model to the warm-up episodes, or do the rest after an interruption."""
        for fit in self._warm_up_fits()[self._warm_up_done :]:
            self.interrupt()
            fit()
            self._warm_up_done += 1

    def act(self, observation: Array, goal: Array) -> NDArray[Any]:
        """Return an action (k,) with exploration: Gaussian noise, or a uniform action."""
        settings, rng = self._config.agent, self.rng
        if rng.random() < settings.explore_random:
            return self.random_action()
        best = self._greedy_action(observation, goal)
        noise = settings.explore_noise * rng.standard_normal(len(self.interface.action))
        return np.clip(best + noise, -1.0, 1.0).astype(np.float32)

    def random_action(self) -> Floats:
        return self.rng.uniform(-1.0, 1.0, len(self.interface.action)).astype(np.float32)

    def model_errors(self) -> list[float]:
        """Return the model's prediction error after 1 to n steps."""
        if self.dynamics is None:
            return []
        steps = max(1, min(self._config.relabel.steps, self._config.schedule.episode_steps))
        rng = np.random.default_rng([self._config.seed, RngStream.MODEL_ERROR, self.updates])
        return self.dynamics.errors(*self.replay.sample_sequences(ERROR_SAMPLES, steps, rng))

    def take_losses(self) -> dict[str, float]:
        """Return the mean of each loss since the last call."""
        means = {name: float(np.mean(values)) for name, values in self._losses.items()}
        self._losses = {}
        return means

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, by reference."""
        return {
            'modules': {name: module.state_dict() for name, module in self._modules.items()},
            'optimisers': [optimiser.state_dict() for optimiser in self._optimisers],
            **{
                name: {key: torch.from_numpy(array) for key, array in replay.state_dict().items()}
                for name, replay in self._replays.items()
            },
            'rng': json.dumps(self.rng.bit_generator.state),
            'updates': self.updates,
            'warm_up_done': self._warm_up_done,
            'losses': self._losses,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state; one of Python's own exceptions is raised for any other object."""
        modules = {name: module.state_dict() for name, module in self._modules.items()}
        check_same_structure('modules', state['modules'], modules)
        for name, module in self._modules.items():
            module.load_state_dict(state['modules'][name])
        for optimiser, saved in zip(self._optimisers, state['optimisers'], strict=True):
            _load_optimiser(optimiser, saved)
        for name, replay in self._replays.items():
            replay.load_state_dict({key: tensor.numpy() for key, tensor in state[name].items()})
        self.rng.bit_generator.state = json.loads(state['rng'])
        if type(state['updates']) is not int or state['updates'] < 0:
            raise ValueError(f'updates: expected a count, got {state["updates"]!r}')
        self.updates = state['updates']
        self._warm_up_done = int(state.get('warm_up_done', 0))
        self._losses = {str(name): list(values) for name, values in state['losses'].items()}
        if not np.isfinite([value for values in self._losses.values() for value in values]).all():
            raise ValueError('losses: expected finite numbers')

    def _warm_up_fits(self) -> list[Callable[[], None]]:
        settings, replay = self._config.model, self.replay
        count = settings.warmup_fits if self.dynamics is not None else 0
        return [lambda: self._fit_model(replay.sample(settings.warmup_batch, self.rng))] * count

    def _fit_model(self, transitions: Transitions) -> None:
        assert self.dynamics is not None
        parts = transitions.observations, transitions.actions, transitions.next_observations
        observations, actions, following = map(torch.from_numpy, parts)
        member = int(self.rng.integers(self._config.model.members))
        loss = self.dynamics.fit(observations, actions, following, member)
        self._record_loss('model_loss', loss)

    def _record_loss(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise DivergedError(
                f'the training has diverged: {name} is {value} after {self.updates} updates; '
                'try smaller loss weights or learning rates'
            )
        self._losses.setdefault(name, []).append(value)


def _load_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    groups = optimiser.state_dict()['param_groups']
    for group, found in zip(groups, saved['param_groups'], strict=True):
        for key, value in group.items():
            if found.get(key, value) != value:
                raise ValueError(f'optimiser.{key}: expected {value}, got {found[key]}')
    optimiser.load_state_dict(saved)
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            expected = torch.zeros(()) if key == 'step' else parameter.detach()
            check_same_structure(f'optimiser.{key}', value, torch.zeros_like(expected))


def check_same_structure(where: str, found: Any, expected: Any) -> None:
    """Raise ValueError unless keys, types, shapes and dtypes agree and tensors are finite."""
    if type(found) is not type(expected):
        raise ValueError(
            f'{where}: expected a {type(expected).__name__}, got a {type(found).__name__}'
        )
    if isinstance(expected, dict):
        if found.keys() != expected.keys():
            differ = sorted(map(str, found.keys() ^ expected.keys()))
            raise ValueError(f'{where}: the keys differ: {", ".join(differ[:5])}')
        for key, value in expected.items():
            check_same_structure(f'{where}.{key}', found[key], value)
    elif isinstance(expected, torch.Tensor):
        check_array(where, found.numpy(), expected.numpy())
