"""Strategies that propose new goals for transitions in hindsight."""

import abc
import dataclasses
from typing import ClassVar

from mher_ros.interface import TaskInterface
from mher_ros.learning.config import RelabelConfig
from mher_ros.learning.core.replay_buffer import EpisodeReplay, Floats, Transitions
from mher_ros.learning.model import ModelRollouts
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
import torch

Rows = NDArray[np.bool_] | None  # a mask (B,); None: all rows


@dataclasses.dataclass(frozen=True)
class RelabelContext:
    """Objects that a strategy can use."""

    replay: EpisodeReplay
    interface: TaskInterface
    settings: RelabelConfig
    rollouts: ModelRollouts | None  # None if the algorithm has no model


class GoalStrategy(abc.ABC):
    """
    Proposes a goal for each transition of a batch.

    A subclass that implements ``propose`` can be registered with
    ``mher_ros.register_relabelling`` and is then chosen by ``relabel.goals=NAME``.
    """

    needs_model: ClassVar[bool] = False  # whether it uses rollouts of the learnt model

    def __init__(self, replay: EpisodeReplay, interface: TaskInterface) -> None:
        self.replay, self.interface = replay, interface

    @classmethod
    def from_context(cls, context: RelabelContext) -> 'GoalStrategy':
        return cls(context.replay, context.interface)

    @abc.abstractmethod
    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        """Return goals (B, m); only rows of the mask ``wanted`` (B,) are used."""
        # Random numbers are generated for all rows, so that they do not depend on ``wanted``.


class FutureGoals(GoalStrategy):
    """HER's ``future``: achieved later in the same episode (Andrychowicz et al. 2017)."""

    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        return self.interface.achieved_goal(self.replay.sample_future(batch, rng))


class RandomGoals(GoalStrategy):
    """HER's ``random``: achieved anywhere in the replay buffer (Andrychowicz et al. 2017)."""

    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        achieved = self.replay.sample(len(batch.steps), rng)
        return self.interface.achieved_goal(achieved.next_observations)


class UniformGoals(GoalStrategy):
    """Uniform in the box that contains the goals of the task."""

    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        low = np.array(self.interface.goal_low, np.float32)
        high = np.array(self.interface.goal_high, np.float32)
        return low + rng.random(batch.goals.shape, dtype=np.float32) * (high - low)


class VirtualGoals(GoalStrategy):
    r"""Goals achieved on an n-step model rollout from the real :math:`s_{t+1}` (Sec. 4.2)."""

    needs_model = True

    def __init__(self, rollouts: ModelRollouts, steps: int) -> None:
        self._rollouts, self._steps = rollouts, steps

    @classmethod
    def from_context(cls, context: RelabelContext) -> GoalStrategy:
        assert context.rollouts is not None
        return cls(context.rollouts, context.settings.steps)

    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        # A uniform one of the n + 1 states, including the real one. The policy acts for the
        # original goal, so new goals get closer to it as the policy improves (Theorem 2).
        count, interface = len(batch.steps), self._rollouts.interface
        start = torch.from_numpy(interface.with_goal(batch.next_observations, batch.goals))
        noise = self._rollouts.sample_noise(self._steps, count, rng)
        lengths = rng.integers(self._steps + 1, size=count)
        if wanted is not None:
            lengths = np.where(wanted, lengths, 0)
        final = self._rollouts.final_states(start, torch.from_numpy(batch.goals), lengths, noise)
        return interface.achieved_goal(final).numpy()


class MixedGoals(GoalStrategy):
    """Goals of the first strategy with probability ``share``, else of the second."""

    needs_model = True

    def __init__(self, first: GoalStrategy, second: GoalStrategy, share: float) -> None:
        self._first, self._second, self._share = first, second, share

    @classmethod
    def from_context(cls, context: RelabelContext) -> GoalStrategy:
        """Return a mixture of virtual and future goals."""
        virtual, future = (kind.from_context(context) for kind in (VirtualGoals, FutureGoals))
        return cls(virtual, future, context.settings.virtual_share)

    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        pick = rng.random(len(batch.steps)) < self._share
        # The second strategy gets all wanted rows: its random numbers do not depend on ``pick``.
        first = self._first.propose(batch, rng, pick if wanted is None else pick & wanted)
        return np.where(pick[:, None], first, self._second.propose(batch, rng, wanted))


class NoisyGoals(GoalStrategy):
    """Goals of another strategy with Gaussian noise on each entry."""

    def __init__(self, strategy: GoalStrategy, deviation: float) -> None:
        self._strategy, self._deviation = strategy, np.float32(deviation)

    def propose(self, batch: Transitions, rng: Generator, wanted: Rows = None) -> Floats:
        goals = self._strategy.propose(batch, rng, wanted)
        return goals + self._deviation * rng.standard_normal(goals.shape, dtype=np.float32)


def substitute_goals(
    batch: Transitions, source: GoalStrategy, share: float, rng: Generator
) -> Transitions:
    """Return the batch with the original goals of a ``share`` of its rows replaced."""
    # Unlike relabelled rows, they may move away from their goals: the critic learns values of
    # distant goals, and the supervised loss does not use these rows.
    if not share:
        return batch
    pick = rng.random((len(batch.steps), 1)) < share
    goals = np.where(pick, source.propose(batch, rng), batch.goals)
    return dataclasses.replace(batch, goals=goals)


def relabel(
    batch: Transitions, source: GoalStrategy | None, probability: float, rng: Generator
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return goals (B, m) and the mask (B,) of rows that have a new goal of ``source``."""
    mask = rng.random(len(batch.steps)) < probability
    if source is None or not probability:
        return batch.goals, np.zeros_like(mask)
    return np.where(mask[:, None], source.propose(batch, rng, mask), batch.goals), mask
