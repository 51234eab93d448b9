"""One agent, whose parts (goals, targets, losses, model) make it MHER, HER or DDPG."""

from __future__ import annotations

import copy
import json
from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.learning.actor_loss import joint_loss
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.networks import Actor, Critic, Policy, View
from mher_ros.learning.relabel import FutureGoals, GoalSource, MixedGoals, relabel
from mher_ros.learning.replay import Episode, EpisodeReplay, Transitions
from mher_ros.learning.targets import one_step_target
from mher_ros.learning.virtual_goals import VirtualGoals
import numpy as np
from numpy.typing import NDArray
import torch
from torch import Tensor

__all__ = ['Agent']

ERROR_SAMPLES = 256
"""Sequences on which the model's error is measured."""


class Agent:
    """Acts, stores episodes, updates; everything random comes from its own generators."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        settings = config.agent
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        self.interface, self._config, self._action_size = interface, config, k
        self._rng = np.random.default_rng([config.seed, 0])
        weights = torch.Generator().manual_seed(config.seed)
        self.view = View(interface, settings.relative_goal)
        self.actor = Actor(self.view.size, k, settings.hidden, weights)
        self.critic = Critic(self.view.size, k, settings.hidden, weights)
        self._target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self._target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self._actor_optimiser = torch.optim.Adam(
            self.actor.parameters(), lr=settings.actor_learning_rate, fused=True
        )
        self._critic_optimiser = torch.optim.Adam(
            self.critic.parameters(), lr=settings.critic_learning_rate, fused=True
        )
        self.replay = EpisodeReplay(settings.replay, config.schedule.episode_steps, n, k, m)
        self.dynamics: Dynamics | None = None
        if config.relabel.goals in ('virtual', 'mixed'):
            self.dynamics = Dynamics(n, k, config.model, weights)
        self._goals = self._goal_source()
        self.updates = 0
        self._held_action: NDArray[np.float32] = np.zeros(k, np.float32)
        self._hold = 0
        self._losses: dict[str, list[float]] = {}

    @property
    def policy(self) -> Policy:
        """What is evaluated and exported."""
        average = self._config.agent.deploy_average
        return Policy(self.view, self._target_actor if average else self.actor)

    @torch.no_grad()
    def act(self, observation: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[Any]:
        """Return an exploring action (k,): noisy, or now and then uniform."""
        settings, rng = self._config.agent, self._rng
        if self._hold or rng.random() < settings.explore_random:
            return self.random_action()
        features = self.view(
            torch.from_numpy(observation[None].astype(np.float32)),
            torch.from_numpy(goal[None].astype(np.float32)),
        )
        noise = settings.explore_noise * rng.standard_normal(self._action_size)
        return np.clip(self.actor(features)[0].numpy() + noise, -1.0, 1.0).astype(np.float32)

    def random_action(self) -> NDArray[np.float32]:
        """Return a uniform action (k,), the same for ``explore_hold`` steps."""
        if self._hold == 0:
            self._held_action = self._rng.uniform(-1.0, 1.0, self._action_size).astype(np.float32)
            self._hold = self._config.agent.explore_hold
        self._hold -= 1
        return self._held_action

    def store(self, episode: Episode) -> None:
        """Keep an episode and take it into the running statistics."""
        self._hold = 0
        self.replay.add(episode)
        seen = self.replay.sample_latest(self._rng)
        goals = seen.goals
        if self._config.relabel.goals != 'none':
            future = FutureGoals(self.replay, self.interface)
            goals, _ = relabel(seen, future, self._config.relabel.probability, self._rng)
        observations = self.interface.with_goal(seen.observations, goals)
        self.view.update(torch.from_numpy(observations), torch.from_numpy(goals))
        if self.dynamics is not None:
            self.dynamics.see(torch.from_numpy(seen.observations), torch.from_numpy(seen.actions))

    def warm_up_model(self) -> None:
        """Train the model on the random episodes."""
        for _ in range(self._config.model.warmup_fits if self.dynamics else 0):
            self._fit_model(self.replay.sample(self._config.model.warmup_batch, self._rng))

    def update(self) -> None:
        """Do one update of model, critic and actor on one batch."""
        settings = self._config.agent
        batch = self.replay.sample(settings.batch, self._rng)
        if self.dynamics is not None:
            for _ in range(self._config.model.fits_per_update):
                self._fit_model(batch)
        goals, mask = relabel(batch, self._goals, self._config.relabel.probability, self._rng)
        self._learn(batch, goals, mask)
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self._move_targets(1.0 - settings.target_keep)

    def model_errors(self) -> list[float]:
        """Return the model's error after 1..n steps on replayed sequences."""
        if self.dynamics is None:
            return []
        steps = max(1, self._config.relabel.steps)
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
        modules: dict[str, torch.nn.Module] = {
            'view': self.view,
            'actor': self.actor,
            'critic': self.critic,
            'target_actor': self._target_actor,
            'target_critic': self._target_critic,
        }
        return modules if self.dynamics is None else {**modules, 'dynamics': self.dynamics}

    def _optimisers(self) -> list[torch.optim.Optimizer]:
        models = [] if self.dynamics is None else self.dynamics.optimisers
        return [self._actor_optimiser, self._critic_optimiser, *models]

    def _goal_source(self) -> GoalSource | None:
        settings = self._config.relabel
        future = FutureGoals(self.replay, self.interface)
        if settings.goals == 'none':
            return None
        if settings.goals == 'future':
            return future
        assert self.dynamics is not None
        virtual = VirtualGoals(
            self.dynamics,
            self._target_action,
            self.interface,
            settings.steps,
            settings.rollout_noise,
        )
        if settings.goals == 'virtual':
            return virtual
        return MixedGoals(virtual, future, settings.virtual_share)

    def _target_action(self, observations: Tensor, goals: Tensor) -> Tensor:
        action: Tensor = self._target_actor(self.view(observations, goals))
        return action

    def _fit_model(self, batch: Transitions) -> None:
        assert self.dynamics is not None
        loss = self.dynamics.fit(
            torch.from_numpy(batch.observations),
            torch.from_numpy(batch.actions),
            torch.from_numpy(batch.next_observations),
            int(self._rng.integers(self._config.model.members)),
        )
        self._losses.setdefault('model_loss', []).append(loss)

    def _learn(
        self, batch: Transitions, goals: NDArray[np.float32], mask: NDArray[np.bool_]
    ) -> None:
        settings, interface = self._config.agent, self.interface
        reward = interface.reward(interface.achieved_goal(batch.next_observations), goals)
        goal = torch.from_numpy(goals)
        taken = torch.from_numpy(batch.actions)
        features = self.view(
            torch.from_numpy(interface.with_goal(batch.observations, goals)), goal
        )
        with torch.no_grad():
            next_features = self.view(
                torch.from_numpy(interface.with_goal(batch.next_observations, goals)), goal
            )
            next_value = self._target_critic(next_features, self._target_actor(next_features))
            target = one_step_target(
                torch.from_numpy(reward), next_value, settings.gamma, settings.value_ceiling
            )
        critic_loss = (self.critic(features, taken) - target).square().mean()
        critic_gradients = torch.autograd.grad(critic_loss, list(self.critic.parameters()))

        proposed = self.actor(features)
        actor_loss = joint_loss(
            self.critic(features, proposed),
            proposed,
            taken,
            torch.from_numpy(mask.astype(np.float32)),
            self._alpha(),
            settings.action_penalty,
        )
        actor_gradients = torch.autograd.grad(actor_loss, list(self.actor.parameters()))
        # Both gradients are taken before either network moves, as the authors do.
        _step(self._critic_optimiser, critic_gradients)
        _step(self._actor_optimiser, actor_gradients)
        self._losses.setdefault('critic_loss', []).append(float(critic_loss.detach()))
        self._losses.setdefault('actor_loss', []).append(float(actor_loss.detach()))

    def _alpha(self) -> float:
        settings = self._config.agent
        if not settings.alpha_half_life:
            return settings.alpha
        return settings.alpha * 0.5 ** (self.updates / settings.alpha_half_life)

    @torch.no_grad()
    def _move_targets(self, share: float) -> None:
        for target, network in (
            (self._target_actor, self.actor),
            (self._target_critic, self.critic),
        ):
            torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), share)


def _step(optimiser: torch.optim.Optimizer, gradients: tuple[Tensor, ...]) -> None:
    for parameter, gradient in zip(optimiser.param_groups[0]['params'], gradients, strict=True):
        parameter.grad = gradient
    optimiser.step()
