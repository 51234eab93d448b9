"""PlanGAN: planning with predicted trajectories instead of an actor."""

from collections.abc import Callable
import dataclasses
from typing import Any
import zlib

from mher_ros.interface import TaskInterface
from mher_ros.learning.baselines.plangan_networks import GanEncoder, Gans, Generators, Steps
from mher_ros.learning.config import PlanConfig, RngStream, TrainConfig
from mher_ros.learning.core.learner import Learner
from mher_ros.learning.core.networks import tensor32
from mher_ros.learning.core.replay_buffer import EpisodeReplay, Floats
from mher_ros.learning.model import Dynamics
from mher_ros.tasks.rollouts import PolicyFunction
from mher_ros.tasks.task import Array
import numpy as np
from numpy.random import Generator
import torch
from torch import Tensor

MAX_ROWS = 5000  # states predicted in one call; more do not fit into the processor's cache


class PlanGanAgent(Learner):
    """Plans each action (Charlesworth and Montana 2020)."""

    # An ensemble of GANs learns, from relabelled episodes, steps towards goals; the planner
    # predicts trajectories with them. An action needs thousands of predictions.
    encoder: GanEncoder
    dynamics: Dynamics
    loss_names = ('critic_loss', 'generator_loss', 'model_loss')

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        super().__init__(interface, config)
        self._plan = config.plan
        weights = torch.Generator().manual_seed(config.seed)
        self.encoder = GanEncoder(interface, config.agent)
        n, k = len(interface.observation), len(interface.action)
        self.dynamics = Dynamics(n, k, config.model, weights)
        self.gans = Gans(self.encoder, config.plan, weights)
        self._modules = {'dynamics': self.dynamics, 'gans': self.gans}
        self._optimisers = [*self.dynamics.optimisers, *self.gans.optimisers]
        parts = self.encoder, self.gans.average_generators, self.dynamics
        self._planner = Planner(*parts, config.plan, lambda: self.interrupt())
        self._fits = 0  # gradient steps done in the current update

    def policy_function(self) -> PolicyFunction:
        # The random numbers of a plan depend only on seed, updates and inputs: the result does not
        # depend on the order of calls, and a call does not change the agent.
        key = [self._config.seed, RngStream.PLANNING, self.updates]

        def act(observations: Array, goals: Array) -> Floats:
            inputs = zlib.crc32(goals.tobytes(), zlib.crc32(observations.tobytes()))
            return self._plan_actions(observations, goals, np.random.default_rng([*key, inputs]))

        return act

    def update(self) -> None:
        while self._fits < self._plan.fits_per_update:
            self.interrupt()
            self._fit_model(self.replay.sample(self._plan.batch, self.rng))
            self._fit_gans()
            self._fits += 1
        self._fits = 0
        self.updates += 1

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), 'fits': self._fits}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._fits = int(state.get('fits', 0))

    def _warm_up_fits(self) -> list[Callable[[], None]]:
        return [*super()._warm_up_fits(), *[self._fit_gans] * self._plan.warmup_fits]

    def _greedy_action(self, observation: Array, goal: Array) -> Floats:
        return self._plan_actions(observation[None], goal[None], self.rng)[0]

    def _plan_actions(self, observations: Array, goals: Array, rng: Generator) -> Floats:
        noise = PlanNoise.sample(self._plan, rng)
        return self._planner.plan(tensor32(observations), tensor32(goals), noise).numpy()

    def _fit_gans(self) -> None:
        plan, rng = self._plan, self.rng
        shape = (plan.gans, plan.sequence, plan.batch)
        real, original = sample_steps(self.replay, self.interface, shape, rng)
        self.goal_offsets = (real.goals.numpy() - original).reshape(-1, original.shape[-1])
        latent = torch.from_numpy(rng.standard_normal((*shape, plan.latent), dtype=np.float32))
        for name, loss in self.gans.fit(real, latent, self.dynamics).items():
            self._record_loss(name, loss)


def sample_steps(
    replay: EpisodeReplay, interface: TaskInterface, shape: tuple[int, int, int], rng: Generator
) -> tuple[Steps, Floats]:
    """Sample T relabelled steps of B sequences for E GANs, and original goals (E, 1, B, m)."""
    # The new goal is achieved at a uniform later step of the episode, or by the step itself if
    # that is later. An episode with fewer than T steps repeats its last step.
    networks, steps, count = shape
    held = replay.state_dict()
    slots = rng.integers(replay.episodes_held, size=(networks, 1, count))
    lengths = held['lengths'][slots]
    first = (rng.random(slots.shape) * np.maximum(lengths - steps + 1, 1)).astype(np.int64)
    ahead = 1 + (rng.random(slots.shape) * (lengths - first)).astype(np.int64)
    at = np.minimum(first + np.arange(steps)[:, None], lengths - 1)
    goals = interface.achieved_goal(held['observations'][slots, np.maximum(first + ahead, at + 1)])
    sampled = Steps(
        torch.from_numpy(interface.with_goal(held['observations'][slots, at], goals)),
        torch.from_numpy(held['actions'][slots, at]),
        torch.from_numpy(interface.with_goal(held['observations'][slots, at + 1], goals)),
        torch.from_numpy(goals),
    )
    return sampled, held['goals'][slots].astype(np.float32)


@dataclasses.dataclass(frozen=True)
class PlanNoise:
    """The random numbers of a plan."""

    first_latent: Tensor  # (Q, l)
    latent: Tensor  # (T - 1, R, l)
    order: Tensor  # (T - 1, R): permutation of trajectories over the generators per step

    @classmethod
    def sample(cls, config: PlanConfig, rng: Generator) -> 'PlanNoise':
        # All first actions use the same random numbers, which makes their scores comparable.
        steps, trajectories = config.steps - 1, config.trajectories

        def normal(*shape: int) -> Tensor:
            return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))

        order = rng.permuted(np.tile(np.arange(trajectories), (steps, 1)), axis=1)
        first = normal(config.first_actions, config.latent)
        return cls(first, normal(steps, trajectories, config.latent), torch.from_numpy(order))


@dataclasses.dataclass(frozen=True)
class Planner:
    r"""
    Proposes Q first actions and predicts R trajectories of T steps after each.

    The score of a first action is the fraction of predicted states at the goal,

    .. math:: \frac{1}{R T} \sum_{r=1}^R \sum_{t=1}^T [\, |\phi(s_t^r) - g| \le \epsilon \,]

    where the model predicts :math:`s_1` from the first action. A random generator proposes each
    later action. ``interrupt`` is called before each predicted step and may raise.
    """

    encoder: GanEncoder
    generators: Generators
    dynamics: Dynamics
    config: PlanConfig
    interrupt: Callable[[], None] = lambda: None

    @torch.inference_mode()
    def plan(self, observations: Tensor, goals: Tensor, noise: PlanNoise) -> Tensor:
        """Return actions (B, k) for observations (B, n) and goals (B, m)."""
        config = self.config
        first = self.propose(observations, goals, noise)
        if config.first_actions == 1:
            return first[0]
        together = max(1, MAX_ROWS // (config.first_actions * config.trajectories))
        parts = observations.split(together), goals.split(together), first.split(together, 1)
        scores = torch.cat([self.score(*rows, noise) for rows in zip(*parts, strict=True)], 1)
        if config.choice == 'best':
            return best_action(first, scores)
        return weighted_action(first, scores, config.sharpness)

    @torch.inference_mode()
    def propose(self, observations: Tensor, goals: Tensor, noise: PlanNoise) -> Tensor:
        """Return first actions (Q, B, k), distributed evenly over the generators."""
        features = self.encoder.features(observations, goals)
        states = features.expand(self.config.first_actions, *features.shape)
        return self._generate(states, noise.first_latent)[0]

    @torch.inference_mode()
    def score(
        self, observations: Tensor, goals: Tensor, first_actions: Tensor, noise: PlanNoise
    ) -> Tensor:
        """Return the fraction (Q, B) of predicted states at the goals (B, m)."""
        config, encoder = self.config, self.encoder
        shape = first_actions.shape[:2]
        goals = goals.expand(*shape, -1).flatten(0, 1)
        states = self._model(
            observations.expand(*shape, -1).flatten(0, 1), first_actions.flatten(0, 1), goals
        )
        time_at_goal = self._at_goal(states, goals) * config.trajectories
        states = states.expand(config.trajectories, *states.shape)
        for latent, order in zip(noise.latent, noise.order, strict=True):
            self.interrupt()
            # Only the number of states at the goal counts, so the order is not restored.
            states = states[order]
            actions, changes = self._generate(encoder.features(states, goals), latent)
            if config.next_state == 'model':
                states = self._model(states, actions, goals)
            else:
                states = encoder.next_observations(states, changes, goals)
            time_at_goal += self._at_goal(states, goals).sum(0)
        return time_at_goal.view(shape) / (config.trajectories * config.steps)

    def _generate(self, features: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Distribute rows (C, M, f) with latents (C, l) over the generators; return (C, M, .)."""
        count, generators = len(latent), self.config.gans
        each = -(-count // generators)
        if each * generators > count:
            # Generators need equal numbers of rows: the first rows are repeated.
            padded = torch.arange(each * generators) % count
            features, latent = features[padded], latent[padded]
        features = features.reshape(generators, each, *features.shape[1:])
        actions, changes = self.generators(features, latent.view(generators, each, -1))
        return actions.flatten(0, 1)[:count], changes.flatten(0, 1)[:count]

    def _model(self, states: Tensor, actions: Tensor, goals: Tensor) -> Tensor:
        rows = (tensor.reshape(-1, tensor.shape[-1]) for tensor in (states, actions))
        following = self.dynamics.step(*rows).view(states.shape)
        return self.encoder.interface.with_goal(following, goals)

    def _at_goal(self, states: Tensor, goals: Tensor) -> Tensor:
        interface = self.encoder.interface
        achieved = interface.achieved_goal(states)
        return torch.from_numpy(interface.is_success(achieved.numpy(), goals.numpy())).float()


def best_action(first_actions: Tensor, scores: Tensor) -> Tensor:
    """Return the first action (B, k) of (Q, B, k) with the highest score (Q, B)."""
    return first_actions[scores.argmax(0), torch.arange(scores.shape[1])]


def weighted_action(first_actions: Tensor, scores: Tensor, sharpness: float) -> Tensor:
    r"""
    Return the mean (B, k) of first actions (Q, B, k), weighted by their scores (Q, B).

    .. math:: w_q \propto \exp(\alpha\, (R_q - \bar R) / \sigma_R)
    """
    spread = scores.std(0, correction=0) + 1e-4
    weights = torch.softmax(sharpness * (scores - scores.mean(0)) / spread, 0)
    return (weights[..., None] * first_actions).sum(0)
