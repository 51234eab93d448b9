"""One agent, whose parts (goals, critic target, actor loss, model) make it MHER, HER or DDPG."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.learning.actor_loss import ActorLoss, JointLoss
from mher_ros.learning.batch import Batch
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.networks import Actor, Critic, Networks, Policy, View
from mher_ros.learning.relabel import FutureGoals, GoalSource, MixedGoals, relabel
from mher_ros.learning.replay import Episode, EpisodeReplay, Transitions
from mher_ros.learning.targets import CriticTarget, OneStepTarget
from mher_ros.learning.virtual_goals import VirtualGoals
import numpy as np
from numpy.typing import NDArray
import torch
from torch import Tensor

__all__ = ['Agent', 'DivergedError']

ERROR_SAMPLES = 256
"""Sequences on which the model's error is measured."""


class DivergedError(MherError, ArithmeticError):
    """A loss that is no number any more."""


class Agent:
    """Acts, stores episodes, updates; everything random comes from its own generators."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        settings = config.agent
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        self.interface, self._config, self._action_size = interface, config, k
        self._rng = np.random.default_rng([config.seed, 0])
        weights = torch.Generator().manual_seed(config.seed)
        view = View(interface, settings.relative_goal, settings.hide_still)
        actor = Actor(view.size, k, settings.hidden, weights)
        critic = Critic(view.size, k, settings.hidden, weights)
        self.networks = Networks(
            view,
            actor,
            critic,
            copy.deepcopy(actor).requires_grad_(False),
            copy.deepcopy(critic).requires_grad_(False),
        )
        self._actor_optimiser = torch.optim.Adam(
            actor.parameters(), lr=settings.actor_learning_rate, fused=True
        )
        self._critic_optimiser = torch.optim.Adam(
            critic.parameters(), lr=settings.critic_learning_rate, fused=True
        )
        self.replay = EpisodeReplay(settings.replay, config.schedule.episode_steps, n, k, m)
        self.dynamics: Dynamics | None = None
        if config.relabel.goals in ('virtual', 'mixed'):
            self.dynamics = Dynamics(n, k, config.model, weights)
        self._goals = self._make_goal_source()
        self._critic_target: CriticTarget = OneStepTarget(
            self.networks, settings.gamma, settings.value_ceiling
        )
        self._actor_loss: ActorLoss = JointLoss(
            self.networks, settings.alpha, settings.alpha_half_life, settings.action_penalty
        )
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
        noise = settings.explore_noise * rng.standard_normal(self._action_size)
        action = self.networks.actor(features)[0].numpy() + noise
        return np.clip(action, -1.0, 1.0).astype(np.float32)

    def random_action(self) -> NDArray[np.float32]:
        """Return a uniform action (k,)."""
        return self._rng.uniform(-1.0, 1.0, self._action_size).astype(np.float32)

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
        transitions = self.replay.sample(settings.batch, self._rng)
        if self.dynamics is not None:
            for _ in range(self._config.model.fits_per_update):
                self._fit_model(transitions)
        self._learn(self._relabelled(transitions))
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
            'replay': {
                name: torch.from_numpy(np.ascontiguousarray(array))
                for name, array in self.replay.state().items()
            },
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
        self.replay.load_state({name: t.numpy() for name, t in state['replay'].items()})
        self._rng.bit_generator.state = json.loads(state['rng'])
        self.updates = state['updates']
        self._losses = {name: list(values) for name, values in state['losses'].items()}

    def _modules(self) -> dict[str, torch.nn.Module]:
        modules = self.networks.modules()
        return modules if self.dynamics is None else {**modules, 'dynamics': self.dynamics}

    def _optimisers(self) -> list[torch.optim.Optimizer]:
        models = [] if self.dynamics is None else self.dynamics.optimisers
        return [self._actor_optimiser, self._critic_optimiser, *models]

    def _make_goal_source(self) -> GoalSource | None:
        settings = self._config.relabel
        if settings.goals == 'none':
            return None
        future = FutureGoals(self.replay, self.interface)
        if self.dynamics is None:
            return future
        virtual = VirtualGoals(
            self.dynamics,
            self.networks.target_action,
            self.interface,
            settings.steps,
            settings.rollout_noise,
        )
        if settings.goals == 'virtual':
            return virtual
        return MixedGoals(virtual, future, settings.virtual_share)

    def _fit_model(self, transitions: Transitions) -> None:
        assert self.dynamics is not None
        loss = self.dynamics.fit(
            torch.from_numpy(transitions.observations),
            torch.from_numpy(transitions.actions),
            torch.from_numpy(transitions.next_observations),
            int(self._rng.integers(self._config.model.members)),
        )
        self._note_loss('model_loss', loss)

    def _relabelled(self, transitions: Transitions) -> Batch:
        interface, probability = self.interface, self._config.relabel.probability
        goals, mask = relabel(transitions, self._goals, probability, self._rng)
        achieved = interface.achieved_goal(transitions.next_observations)
        observations = torch.from_numpy(interface.with_goal(transitions.observations, goals))
        following = torch.from_numpy(interface.with_goal(transitions.next_observations, goals))
        return Batch(
            observations=observations,
            actions=torch.from_numpy(transitions.actions),
            next_observations=following,
            goals=torch.from_numpy(goals),
            rewards=torch.from_numpy(interface.reward(achieved, goals)),
            relabelled=torch.from_numpy(mask.astype(np.float32)),
            features=self.networks.view(observations, torch.from_numpy(goals)),
        )

    def _learn(self, batch: Batch) -> None:
        target = self._critic_target(batch)
        critic_loss = (
            (self.networks.critic(batch.features, batch.actions) - target).square().mean()
        )
        actor_loss = self._actor_loss(batch, self.updates)
        # Both gradients are taken before either network moves, as the authors do.
        gradients = [
            torch.autograd.grad(loss, list(network.parameters()))
            for loss, network in (
                (critic_loss, self.networks.critic),
                (actor_loss, self.networks.actor),
            )
        ]
        _step(self._critic_optimiser, gradients[0])
        _step(self._actor_optimiser, gradients[1])
        for name, loss in (('critic_loss', critic_loss), ('actor_loss', actor_loss)):
            self._note_loss(name, float(loss.detach()))

    def _note_loss(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise DivergedError(
                f'the run has diverged: {name} is {value} after {self.updates} updates; smaller '
                'weights or learning rates may help'
            )
        self._losses.setdefault(name, []).append(value)


def _step(optimiser: torch.optim.Optimizer, gradients: tuple[Tensor, ...]) -> None:
    for parameter, gradient in zip(optimiser.param_groups[0]['params'], gradients, strict=True):
        parameter.grad = gradient
    optimiser.step()
