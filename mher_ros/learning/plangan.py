"""PlanGAN: plans with imagined trajectories instead of learning a policy."""

from __future__ import annotations

import json
import math
from typing import Any
import zlib

from mher_ros.interface import TaskInterface
from mher_ros.learning.agent import DivergedError
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.plangan_config import PlanConfig
from mher_ros.learning.plangan_networks import Gans, Space, Steps
from mher_ros.learning.plangan_planner import Chances, Planner
from mher_ros.learning.relabel import FutureGoals, relabel
from mher_ros.learning.replay import Episode, EpisodeReplay
from mher_ros.tasks.rollouts import PolicyFunction
import numpy as np
from numpy.typing import NDArray
import torch
from torch import nn

__all__ = ['PlanGanAgent', 'sample_steps']

ERROR_SAMPLES = 256
"""Sequences on which the model's error is measured."""
MODEL_STREAM, PLAN_STREAM = 3, 4
"""Second number of the seed of what is random without being part of the run."""


class PlanGanAgent:
    """
    Plans, stores episodes, updates; everything random comes from its own generators.

    An ensemble of GANs learns, from episodes relabelled in hindsight, steps that lead towards
    goals; the planner imagines with them (Charlesworth and Montana 2020). There is no policy
    network: an action costs thousands of predictions.
    """

    def __init__(self, interface: TaskInterface, config: TrainConfig, plan: PlanConfig) -> None:
        settings = config.agent
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        self.interface, self._config, self._plan, self._action_size = interface, config, plan, k
        self._rng = np.random.default_rng([config.seed, 0])
        weights = torch.Generator().manual_seed(config.seed)
        self.replay = EpisodeReplay(settings.replay, config.schedule.episode_steps, n, k, m)
        self.space = Space(interface, settings.relative_goal, settings.hide_still)
        self.dynamics = Dynamics(n, k, config.model, weights)
        self.gans = Gans(self.space, plan, weights)
        self._planner = Planner(self.space, self.gans.slow_generators, self.dynamics, plan)
        self.updates = 0
        self._losses: dict[str, list[float]] = {}

    @property
    def chance(self) -> dict[str, Any]:
        """State of the generator behind all that is random; may be set back."""
        return dict(self._rng.bit_generator.state)

    @chance.setter
    def chance(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state

    def act(self, observation: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[Any]:
        """Return an exploring action (k,): planned and noisy, or now and then uniform."""
        settings, rng = self._config.agent, self._rng
        if rng.random() < settings.explore_random:
            return self.random_action()
        planned = self._planned(observation[None], goal[None], rng)[0]
        noise = settings.explore_noise * rng.standard_normal(self._action_size)
        return np.clip(planned + noise, -1.0, 1.0).astype(np.float32)

    def random_action(self) -> NDArray[np.float32]:
        """Return a uniform action (k,)."""
        return self._rng.uniform(-1.0, 1.0, self._action_size).astype(np.float32)

    def policy_function(self) -> PolicyFunction:
        """
        Return the planner, without noise on its actions, as a function of arrays.

        What is random in a plan follows from the seed, the updates done and what is asked, so
        the function gives the same answer whoever asks in whatever order, and asking changes
        nothing in the run.
        """
        key = [self._config.seed, PLAN_STREAM, self.updates]

        def act(
            observations: NDArray[np.float64], goals: NDArray[np.float64]
        ) -> NDArray[np.float32]:
            asked = zlib.crc32(goals.tobytes(), zlib.crc32(observations.tobytes()))
            return self._planned(observations, goals, np.random.default_rng([*key, asked]))

        return act

    def store(self, episode: Episode) -> None:
        """Keep an episode and take it into the running statistics."""
        self.replay.add(episode)
        seen = self.replay.sample_latest(self._rng)
        future = FutureGoals(self.replay, self.interface)
        goals, _ = relabel(seen, future, self._config.relabel.probability, self._rng)
        observations = torch.from_numpy(seen.observations)
        following = torch.from_numpy(seen.next_observations)
        self.space.see(observations, following, torch.from_numpy(goals))
        self.dynamics.see(observations, torch.from_numpy(seen.actions))

    def warm_up_model(self) -> None:
        """Train model and GANs on the random episodes."""
        for _ in range(self._config.model.warmup_fits):
            self._fit_model(self._config.model.warmup_batch)
        for _ in range(self._plan.warmup_fits):
            self._fit_gans()

    def update(self) -> None:
        """Do one update: some fits of the model and of every GAN."""
        for _ in range(self._plan.fits_per_update):
            self._fit_model(self._plan.batch)
            self._fit_gans()
        self.updates += 1

    def model_errors(self) -> list[float]:
        """Return the model's error after 1..n steps on replayed sequences."""
        steps = max(1, min(self._config.relabel.steps, self._config.schedule.episode_steps))
        # A generator of its own, so that looking at the model changes nothing in the run.
        rng = np.random.default_rng([self._config.seed, MODEL_STREAM, self.updates])
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

    def _modules(self) -> dict[str, nn.Module]:
        return {'dynamics': self.dynamics, 'gans': self.gans}

    def _optimisers(self) -> list[torch.optim.Optimizer]:
        return [*self.dynamics.optimisers, *self.gans.optimisers]

    def _planned(
        self,
        observations: NDArray[np.float64],
        goals: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.float32]:
        actions: NDArray[np.float32] = self._planner.plan(
            torch.from_numpy(observations.astype(np.float32)),
            torch.from_numpy(goals.astype(np.float32)),
            Chances.draw(self._plan, rng),
        ).numpy()
        return actions

    def _fit_model(self, count: int) -> None:
        batch = self.replay.sample(count, self._rng)
        loss = self.dynamics.fit(
            torch.from_numpy(batch.observations),
            torch.from_numpy(batch.actions),
            torch.from_numpy(batch.next_observations),
            int(self._rng.integers(self._config.model.members)),
        )
        self._note_loss('model_loss', loss)

    def _fit_gans(self) -> None:
        plan, rng = self._plan, self._rng
        shape = (plan.gans, plan.sequence, plan.batch)
        real = sample_steps(self.replay, self.interface, shape, rng)
        latent = torch.from_numpy(rng.standard_normal((*shape, plan.latent), dtype=np.float32))
        for name, loss in self.gans.fit(real, latent, self.dynamics).items():
            self._note_loss(name, loss)

    def _note_loss(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise DivergedError(
                f'the run has diverged: {name} is {value} after {self.updates} updates; smaller '
                'weights or learning rates may help'
            )
        self._losses.setdefault(name, []).append(value)


def sample_steps(
    replay: EpisodeReplay,
    interface: TaskInterface,
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> Steps:
    """
    Draw, for E GANs, T steps of B sequences, relabelled with goals of the same episode.

    The goal is what a uniformly drawn later step of the episode achieves; a step that has come
    past it takes what it achieves itself instead. An episode of fewer than T steps repeats its
    last.
    """
    networks, steps, count = shape
    held = replay.state()
    slots = rng.integers(replay.episodes_held, size=(networks, 1, count))
    lengths = held['lengths'][slots]
    first = (rng.random(slots.shape) * np.maximum(lengths - steps + 1, 1)).astype(np.int64)
    ahead = 1 + (rng.random(slots.shape) * (lengths - first)).astype(np.int64)
    at = np.minimum(first + np.arange(steps)[:, None], lengths - 1)
    goals = interface.achieved_goal(held['observations'][slots, np.maximum(first + ahead, at + 1)])
    return Steps(
        torch.from_numpy(interface.with_goal(held['observations'][slots, at], goals)),
        torch.from_numpy(held['actions'][slots, at]),
        torch.from_numpy(interface.with_goal(held['observations'][slots, at + 1], goals)),
        torch.from_numpy(goals),
    )
