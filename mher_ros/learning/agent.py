"""One agent, whose parts (rows, goals, critic target, actor loss, model) make it any system."""

from __future__ import annotations

import json
import math
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.learning.actor_loss import ImitationLoss
from mher_ros.learning.assembly import Parts
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.model_replay import ModelReplay
from mher_ros.learning.networks import Policy
from mher_ros.learning.relabel import FutureGoals, relabel
from mher_ros.learning.replay import Episode, EpisodeReplay, Transitions
import numpy as np
from numpy.typing import NDArray
import torch

__all__ = ['Agent', 'DivergedError']

ERROR_SAMPLES = 256
"""Sequences on which the model's error is measured."""


class DivergedError(MherError, ArithmeticError):
    """A loss that is no number any more."""


class Agent:
    """Acts, stores episodes, updates; everything random comes from its own generators."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        self.interface, self._config = interface, config
        self._rng = np.random.default_rng([config.seed, 0])
        parts = Parts(interface, config)
        self.networks, self.replay, self.dynamics = parts.networks, parts.replay, parts.dynamics
        self.goal_source = parts.goal_source
        self._model_replay = parts.model_replay
        self._batches, self._actor_critic = parts.batches, parts.actor_critic
        self._imitation = ImitationLoss(parts.networks) if config.agent.actor == 'apart' else None
        self.updates = 0
        self._losses: dict[str, list[float]] = {}

    @property
    def policy(self) -> Policy:
        """What is evaluated and exported."""
        networks = self.networks
        average = self._config.agent.deploy_average
        return Policy(networks.view, networks.target_actor if average else networks.actor)

    @property
    def chance(self) -> dict[str, Any]:
        """State of the generator behind all that is random; may be set back."""
        return dict(self._rng.bit_generator.state)

    @chance.setter
    def chance(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state

    @torch.no_grad()
    def act(self, observation: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[Any]:
        """Return an exploring action (k,): noisy, or now and then uniform."""
        settings, rng = self._config.agent, self._rng
        if rng.random() < settings.explore_random:
            return self.random_action()
        features = self.networks.view(
            torch.from_numpy(observation[None].astype(np.float32)),
            torch.from_numpy(goal[None].astype(np.float32)),
        )
        noise = settings.explore_noise * rng.standard_normal(len(self.interface.action))
        action = self.networks.actor(features)[0].numpy() + noise
        return np.clip(action, -1.0, 1.0).astype(np.float32)

    def random_action(self) -> NDArray[np.float32]:
        """Return a uniform action (k,)."""
        return self._rng.uniform(-1.0, 1.0, len(self.interface.action)).astype(np.float32)

    def store(self, episode: Episode) -> None:
        """Keep an episode and take it into the running statistics."""
        self.replay.add(episode)
        seen = self.replay.sample_latest(self._rng)
        goals = seen.goals
        if self._config.relabel.goals != 'none':
            future = FutureGoals(self.replay, self.interface)
            goals, _ = relabel(seen, future, self._config.relabel.probability, self._rng)
        observations = self.interface.with_goal(seen.observations, goals)
        self.networks.view.update(torch.from_numpy(observations), torch.from_numpy(goals))
        if self.dynamics is not None:
            self.dynamics.see(torch.from_numpy(seen.observations), torch.from_numpy(seen.actions))

    def warm_up_model(self) -> None:
        """Train the model on the random episodes."""
        for _ in range(self._config.model.warmup_fits if self.dynamics else 0):
            self._fit_model(self.replay.sample(self._config.model.warmup_batch, self._rng))

    def update(self) -> None:
        """Do one update of model, critic and actor on one batch."""
        settings = self._config.agent
        transitions = self._batches.draw(self._rng)
        if self.dynamics is not None:
            for _ in range(self._config.model.fits_per_update):
                self._fit_model(transitions)
        batch = self._batches.relabelled(transitions, self.updates, self._rng)
        if self._imitation is not None:
            loss = self._actor_critic.learn_actor(batch, self._imitation, self.updates)
            self._note_loss('imitation_loss', loss)
            batch = self._batches.original(transitions)
        for name, loss in self._actor_critic.learn(batch, self.updates).items():
            self._note_loss(name, loss)
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self.networks.move_targets(1.0 - settings.target_keep)

    def model_errors(self) -> list[float]:
        """Return the model's error after 1..n steps on replayed sequences."""
        if self.dynamics is None:
            return []
        steps = max(1, min(self._config.relabel.steps, self._config.schedule.episode_steps))
        # A generator of its own, so that looking at the model changes nothing in the run.
        rng = np.random.default_rng([self._config.seed, 3, self.updates])
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
            'losses': self._losses,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        for name, module in self._modules().items():
            module.load_state_dict(state['modules'][name])
        for optimiser, saved in zip(self._optimisers(), state['optimisers'], strict=True):
            optimiser.load_state_dict(saved)
        for name, replay in self._replays().items():
            replay.load_state({key: tensor.numpy() for key, tensor in state[name].items()})
        self._rng.bit_generator.state = json.loads(state['rng'])
        self.updates = state['updates']
        self._losses = {name: list(values) for name, values in state['losses'].items()}

    def _modules(self) -> dict[str, torch.nn.Module]:
        modules = self.networks.modules()
        return modules if self.dynamics is None else {**modules, 'dynamics': self.dynamics}

    def _optimisers(self) -> list[torch.optim.Optimizer]:
        models = [] if self.dynamics is None else self.dynamics.optimisers
        return [*self._actor_critic.optimisers, *models]

    def _replays(self) -> dict[str, EpisodeReplay | ModelReplay]:
        imagined = {} if self._model_replay is None else {'model_replay': self._model_replay}
        return {'replay': self.replay, **imagined}

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


def _tensors(arrays: dict[str, NDArray[np.generic]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
