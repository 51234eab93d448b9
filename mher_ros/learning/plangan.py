"""PlanGAN: plans with imagined trajectories instead of learning a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
import zlib

from mher_ros.interface import TaskInterface
from mher_ros.learning import streams
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.learner import Learner
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


class PlanGanAgent(Learner):
    """
    Plans where others have a policy.

    An ensemble of GANs learns, from episodes relabelled in hindsight, steps that lead towards
    goals; the planner imagines with them (Charlesworth and Montana 2020). There is no policy
    network: an action costs thousands of predictions.
    """

    dynamics: Dynamics
    loss_names = ('critic_loss', 'generator_loss', 'model_loss')

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        super().__init__(interface, config)
        settings, plan = config.agent, config.plan
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        weights = torch.Generator().manual_seed(config.seed)
        self.replay = EpisodeReplay(settings.replay, config.schedule.episode_steps, n, k, m)
        self.space = Space(interface, settings.relative_goal, settings.hide_still)
        self.dynamics = Dynamics(n, k, config.model, weights)
        self.gans = Gans(self.space, plan, weights)
        self._plan = plan
        self._planner = Planner(
            self.space, self.gans.slow_generators, self.dynamics, plan, lambda: self.interrupt()
        )
        self._fits = 0
        """Done of the update under way."""
        self._offsets: NDArray[np.float32] | None = None

    @property
    def policy(self) -> None:
        """None: each action is planned anew."""
        return None

    def policy_function(self) -> PolicyFunction:
        """
        Return the planner, without noise on its actions, as a function of arrays.

        What is random in a plan follows from the seed, the updates done and what is asked, so
        the function gives the same answer whoever asks in whatever order, and asking changes
        nothing in the run.
        """
        key = [self._config.seed, streams.PLANS, self.updates]

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

    def update(self) -> None:
        """Do one update: some fits of the model and of every GAN."""
        while self._fits < self._plan.fits_per_update:
            self.interrupt()
            self._fit_model(self.replay.sample(self._plan.batch, self._rng))
            self._fit_gans()
            self._fits += 1
        self._fits = 0
        self.updates += 1

    def state(self) -> dict[str, Any]:
        """Return all that ``load_state`` needs, also in the middle of an update."""
        return {**super().state(), 'fits': self._fits}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().load_state(state)
        self._fits = state.get('fits', 0)

    def _warm_up_fits(self) -> list[Callable[[], None]]:
        return [*super()._warm_up_fits(), *[self._fit_gans] * self._plan.warmup_fits]

    @property
    def virtual_offsets(self) -> NDArray[np.float32] | None:
        """From the goals of sequences that the GANs last learnt from to those in hindsight."""
        return self._offsets

    def _modules(self) -> dict[str, nn.Module]:
        return {'dynamics': self.dynamics, 'gans': self.gans}

    def _optimisers(self) -> list[torch.optim.Optimizer]:
        return [*self.dynamics.optimisers, *self.gans.optimisers]

    def _best_action(
        self, observation: NDArray[np.float64], goal: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        best: NDArray[np.float32] = self._planned(observation[None], goal[None], self._rng)[0]
        return best

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

    def _fit_gans(self) -> None:
        plan, rng = self._plan, self._rng
        shape = (plan.gans, plan.sequence, plan.batch)
        real, own_goals = sample_steps(self.replay, self.interface, shape, rng)
        self._offsets = (real.goals.numpy() - own_goals).reshape(-1, own_goals.shape[-1])
        latent = torch.from_numpy(rng.standard_normal((*shape, plan.latent), dtype=np.float32))
        for name, loss in self.gans.fit(real, latent, self.dynamics).items():
            self._note_loss(name, loss)


def sample_steps(
    replay: EpisodeReplay,
    interface: TaskInterface,
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> tuple[Steps, NDArray[np.float32]]:
    """
    Draw, for E GANs, T steps of B sequences, relabelled with goals of the same episode.

    Their own goals are (E, 1, B, m).

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
    drawn = Steps(
        torch.from_numpy(interface.with_goal(held['observations'][slots, at], goals)),
        torch.from_numpy(held['actions'][slots, at]),
        torch.from_numpy(interface.with_goal(held['observations'][slots, at + 1], goals)),
        torch.from_numpy(goals),
    )
    return drawn, held['goals'][slots].astype(np.float32)
