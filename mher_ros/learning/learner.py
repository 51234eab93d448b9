"""What every learner is: it acts, stores episodes, updates, and can be put away and taken up."""

from __future__ import annotations

import abc
from collections.abc import Callable
import json
import math
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.learning import streams
from mher_ros.learning.checkpoint import check_alike
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.model_replay import ModelReplay
from mher_ros.learning.networks import Policy
from mher_ros.learning.replay import Episode, EpisodeReplay, Transitions
from mher_ros.tasks.rollouts import PolicyFunction
import numpy as np
from numpy.typing import NDArray
import torch

__all__ = ['DivergedError', 'Learner']

ERROR_SAMPLES = 256
"""Sequences on which the model's error is measured."""


class DivergedError(MherError, ArithmeticError):
    """A loss that is no number any more."""


class Learner(abc.ABC):
    """Everything random comes from its own generators; ``replay`` and ``dynamics`` are its own."""

    replay: EpisodeReplay
    dynamics: Dynamics | None
    loss_names: tuple[str, ...]
    """What ``take_losses`` may hold."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        self.interface, self._config = interface, config
        self._rng = np.random.default_rng([config.seed, streams.ACTING])
        self.updates = 0
        self.interrupt: Callable[[], None] = lambda: None
        """Called before whatever takes long; may raise StopAsked, also from another thread."""
        self._warm_up_done = 0
        self._losses: dict[str, list[float]] = {}

    @property
    @abc.abstractmethod
    def policy(self) -> Policy | None:
        """The network that is exported; None if there is none."""

    @abc.abstractmethod
    def policy_function(self) -> PolicyFunction:
        """Return what is evaluated, a function of arrays; asking it changes nothing in the run."""

    @abc.abstractmethod
    def store(self, episode: Episode) -> None:
        """Keep an episode and take it into the running statistics."""

    def warm_up_model(self) -> None:
        """Train what can be trained on the random episodes, or go on with it after a stop."""
        for fit in self._warm_up_fits()[self._warm_up_done :]:
            self.interrupt()
            fit()
            self._warm_up_done += 1

    @abc.abstractmethod
    def update(self) -> None:
        """Do one update on one batch, or what is left of it after a stop."""

    @property
    @abc.abstractmethod
    def virtual_offsets(self) -> NDArray[np.float32] | None:
        """
        Where the last batch's new goals lie (k, m), each seen from the goal in whose place it is.

        In no order; None if it was not relabelled. Any thread may ask, at any time.
        """

    @property
    def chance(self) -> dict[str, Any]:
        """State of the generator behind all that is random; may be set back."""
        return dict(self._rng.bit_generator.state)

    @chance.setter
    def chance(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state

    def act(self, observation: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[Any]:
        """Return an exploring action (k,): noisy, or now and then uniform."""
        settings, rng = self._config.agent, self._rng
        if rng.random() < settings.explore_random:
            return self.random_action()
        best = self._best_action(observation, goal)
        noise = settings.explore_noise * rng.standard_normal(len(self.interface.action))
        return np.clip(best + noise, -1.0, 1.0).astype(np.float32)

    def random_action(self) -> NDArray[np.float32]:
        """Return a uniform action (k,)."""
        return self._rng.uniform(-1.0, 1.0, len(self.interface.action)).astype(np.float32)

    def model_errors(self) -> list[float]:
        """Return the model's error after 1..n steps on replayed sequences."""
        if self.dynamics is None:
            return []
        steps = max(1, min(self._config.relabel.steps, self._config.schedule.episode_steps))
        rng = np.random.default_rng([self._config.seed, streams.LOOKING, self.updates])
        return self.dynamics.errors(*self.replay.sample_sequences(ERROR_SAMPLES, steps, rng))

    def take_losses(self) -> dict[str, float]:
        """Return the mean of each loss since the last call."""
        means = {name: float(np.mean(values)) for name, values in self._losses.items()}
        self._losses = {}
        return means

    def state(self) -> dict[str, Any]:
        """Return all that ``load_state`` needs to go on from here, by reference."""
        return {
            'modules': {name: module.state_dict() for name, module in self._modules().items()},
            'optimisers': [optimiser.state_dict() for optimiser in self._optimisers()],
            **{name: _tensors(replay.state()) for name, replay in self._replays().items()},
            'rng': json.dumps(self._rng.bit_generator.state),
            'updates': self.updates,
            'warm_up_done': self._warm_up_done,
            'losses': self._losses,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned; what is no such state raises some built-in error."""
        if not isinstance(state, dict):
            raise TypeError(f'the state of a learner is expected, got a {type(state).__name__}')
        modules = {name: module.state_dict() for name, module in self._modules().items()}
        check_alike('modules', state['modules'], modules)
        for name, module in self._modules().items():
            module.load_state_dict(state['modules'][name])
        for optimiser, saved in zip(self._optimisers(), state['optimisers'], strict=True):
            _load_optimiser(optimiser, saved)
        for name, replay in self._replays().items():
            replay.load_state({key: tensor.numpy() for key, tensor in state[name].items()})
        self._rng.bit_generator.state = json.loads(state['rng'])
        if type(state['updates']) is not int or state['updates'] < 0:
            raise ValueError(f'updates: a count is expected, got {state["updates"]!r}')
        self.updates = state['updates']
        self._warm_up_done = int(state.get('warm_up_done', 0))
        self._losses = {str(name): list(values) for name, values in state['losses'].items()}
        if not np.isfinite([value for values in self._losses.values() for value in values]).all():
            raise ValueError('losses: finite numbers are expected')

    @abc.abstractmethod
    def _best_action(
        self, observation: NDArray[np.float64], goal: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """Return the action (k,) to take if there were nothing to explore."""

    @abc.abstractmethod
    def _modules(self) -> dict[str, torch.nn.Module]:
        """Return every network by its name."""

    @abc.abstractmethod
    def _optimisers(self) -> list[torch.optim.Optimizer]:
        """Return every optimiser, always in the same order."""

    def _replays(self) -> dict[str, EpisodeReplay | ModelReplay]:
        """Return every replay by its name."""
        return {'replay': self.replay}

    def _warm_up_fits(self) -> list[Callable[[], None]]:
        """Return the fits of the warm-up, in their order."""
        settings = self._config.model

        def fit() -> None:
            self._fit_model(self.replay.sample(settings.warmup_batch, self._rng))

        return [fit] * (settings.warmup_fits if self.dynamics is not None else 0)

    def _fit_model(self, transitions: Transitions) -> None:
        assert self.dynamics is not None
        loss = self.dynamics.fit(
            torch.from_numpy(transitions.observations),
            torch.from_numpy(transitions.actions),
            torch.from_numpy(transitions.next_observations),
            int(self._rng.integers(self._config.model.members)),
        )
        self._note_loss('model_loss', loss)

    def _note_loss(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise DivergedError(
                f'the run has diverged: {name} is {value} after {self.updates} updates; smaller '
                'weights or learning rates may help'
            )
        self._losses.setdefault(name, []).append(value)


def _load_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    groups = optimiser.state_dict()['param_groups']
    for group, before in zip(groups, saved['param_groups'], strict=True):
        for key, value in group.items():
            if before.get(key, value) != value:
                raise ValueError(f'{key} of an optimiser: {value} is expected, got {before[key]}')
    optimiser.load_state_dict(saved)
    parameters = [one for group in optimiser.param_groups for one in group['params']]
    for parameter in parameters:
        for key, value in optimiser.state[parameter].items():
            form = torch.zeros(()) if key == 'step' else parameter.detach()
            check_alike(f'{key} of an optimiser', value, torch.zeros_like(form))


def _tensors(arrays: dict[str, NDArray[np.generic]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
