"""Many goals tried with one policy, in lockstep and over threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import concurrent.futures
import dataclasses
import math
import os
from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.tasks import make, task_class
from mher_ros.tasks.task import Task, TaskOptions
import numpy as np
from numpy.typing import NDArray

__all__ = ['GOALS_AT_ONCE', 'Evaluation', 'Evaluator', 'PolicyFunction', 'episode_seed', 'judge']

PolicyFunction = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float32]]
"""Observations (B, n) and goals (B, m) to actions (B, k)."""

GOALS_AT_ONCE = 25
"""Goals that share a policy call. Fixed, so that a result does not depend on the workers."""


def episode_seed(*key: int) -> int:
    """Return a reset seed for the episode named by a few numbers (run seed, stream, index)."""
    return int(np.random.SeedSequence(key).generate_state(1)[0])


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What came of each goal; arrays of shape (goals,)."""

    final_errors: NDArray[np.float64]
    """Distance to the goal at the last step, in the goal's unit."""
    successes: NDArray[np.bool_]
    """Whether that distance is within the threshold."""
    steps_to_reach: NDArray[np.float64]
    """Steps until the distance first was within the threshold; NaN where it never was."""
    motions_at_goal: NDArray[np.float64]
    """Diagonal of the box that holds the tool's path over the last second."""

    @property
    def success_rate(self) -> float:
        """Share of goals reached at the last step."""
        return float(self.successes.mean())

    @property
    def final_error(self) -> float:
        """Mean distance to the goal at the last step."""
        return float(self.final_errors.mean())

    def summary(self) -> dict[str, Any]:
        """Return the figures people ask for, in the goal's unit."""
        reached = self.steps_to_reach[np.isfinite(self.steps_to_reach)]
        return {
            'goals': len(self.successes),
            'success_rate': self.success_rate,
            'mean_error': self.final_error,
            'median_error': float(np.median(self.final_errors)),
            'p95_error': float(np.percentile(self.final_errors, 95)),
            'median_steps_to_reach': float(np.median(reached)) if len(reached) else None,
            'motion_at_goal': float(np.median(self.motions_at_goal)),
        }


class Evaluator:
    """
    Runs one episode for each seed and judges it at its last step.

    Threads, by default one a core where they pay, share the goals; the result is the same to the
    bit for any number of them.
    """

    def __init__(
        self, task: str, options: TaskOptions | None = None, workers: int | None = None
    ) -> None:
        self._task, self._options = task, options
        self._envs: list[list[Task]] = []
        self._workers = workers

    def run(self, policy: PolicyFunction, seeds: Sequence[int]) -> Evaluation:
        """Try the policy from the resets that ``seeds`` stand for."""
        chunks = [
            seeds[start : start + GOALS_AT_ONCE] for start in range(0, len(seeds), GOALS_AT_ONCE)
        ]
        if not chunks:
            raise ValueError('an evaluation needs at least one goal')
        workers = min(self._worker_count(), len(chunks))
        for _ in range(workers - len(self._envs)):
            self._envs.append([make(self._task, self._options) for _ in range(GOALS_AT_ONCE)])
        if workers == 1:
            parts = [_run_chunk(self._envs[0], policy, chunk) for chunk in chunks]
        else:
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                shares = pool.map(
                    lambda worker: [
                        _run_chunk(self._envs[worker], policy, chunk)
                        for chunk in chunks[worker::workers]
                    ],
                    range(workers),
                )
                dealt = list(shares)
            parts = [dealt[index % workers][index // workers] for index in range(len(chunks))]
        return Evaluation(
            **{
                field.name: np.concatenate([getattr(part, field.name) for part in parts])
                for field in dataclasses.fields(Evaluation)
            }
        )

    def _worker_count(self) -> int:
        if self._workers is not None:
            return max(1, self._workers)
        return len(os.sched_getaffinity(0)) if task_class(self._task).threads_pay else 1


def _run_chunk(envs: list[Task], policy: PolicyFunction, seeds: Sequence[int]) -> Evaluation:
    interface = envs[0].interface
    steps = interface.episode_steps
    starts = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=False)]
    count = len(starts)
    # Rows past the last seed are left at zero: the policy always sees GOALS_AT_ONCE rows.
    observations = np.zeros((GOALS_AT_ONCE, len(interface.observation)))
    goals = np.zeros((GOALS_AT_ONCE, len(interface.goal)))
    for row, start in enumerate(starts):
        observations[row], goals[row] = start['observation'], start['desired_goal']
    achieved = np.empty((steps, count, goals.shape[1]))
    for step in range(steps):
        actions = policy(observations, goals)
        observations[:count] = type(envs[0]).step_together(envs[:count], actions[:count])
        achieved[step] = interface.achieved_goal(observations[:count])
    return judge(interface, achieved, goals[:count])


def judge(
    interface: TaskInterface, achieved: NDArray[np.float64], goals: NDArray[np.float64]
) -> Evaluation:
    """Return what came of goals (count, m), given where each step led (steps, count, m)."""
    distances = interface.distance(achieved, goals)
    within = distances <= interface.success_threshold
    last_second = achieved[-max(2, math.ceil(1.0 / interface.control_period)) :]
    return Evaluation(
        final_errors=distances[-1],
        successes=within[-1],
        steps_to_reach=np.where(within.any(0), within.argmax(0) + 1.0, np.nan),
        motions_at_goal=np.linalg.norm(np.ptp(last_second, axis=0), axis=-1),
    )
