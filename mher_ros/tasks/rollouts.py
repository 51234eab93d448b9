"""Evaluation of a policy on many goals, in batches and threads."""

from collections.abc import Callable, Sequence
import concurrent.futures
import dataclasses
import math
import os
from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.tasks import make, task_class
from mher_ros.tasks.task import Array, Task, TaskOptions
import numpy as np
from numpy.typing import NDArray

PolicyFunction = Callable[[Array, Array], NDArray[np.float32]]
"""Observations (B, n) and goals (B, m) to actions (B, k)."""

GOALS_AT_ONCE = 25  # batch size; constant, so that results do not depend on the workers


def episode_seed(*key: int) -> int:
    """Return the reset seed for a key such as (run seed, RngStream, episode)."""
    return int(np.random.SeedSequence(key).generate_state(1)[0])


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Results for each goal; arrays of shape (goals,)."""

    final_errors: Array  # distance to the goal's position at the last step, in its unit
    successes: NDArray[np.bool_]  # whether the last step is within the threshold
    steps_to_reach: Array  # to the first step within the threshold; NaN: never
    motions_at_goal: Array  # diagonal of the bounding box of the last second
    final_angles: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    """Error of the orientation at the last step [rad]; empty: goals have none."""

    @property
    def success_rate(self) -> float:
        return float(self.successes.mean())

    @property
    def final_error(self) -> float:
        return float(self.final_errors.mean())

    def summary(self) -> dict[str, Any]:
        reached = self.steps_to_reach[np.isfinite(self.steps_to_reach)]
        angles: dict[str, Any] = {}
        if self.final_angles.size:
            angles['median_angle'] = float(np.median(self.final_angles))
            angles['p95_angle'] = float(np.percentile(self.final_angles, 95))
        return {
            'goals': len(self.successes),
            'success_rate': self.success_rate,
            'mean_error': self.final_error,
            'median_error': float(np.median(self.final_errors)),
            'p95_error': float(np.percentile(self.final_errors, 95)),
            'median_steps_to_reach': float(np.median(reached)) if len(reached) else None,
            'motion_at_goal': float(np.median(self.motions_at_goal)),
            **angles,
        }


class Evaluator:
    """Runs one episode per seed; success is evaluated at the last step."""

    def __init__(
        self, task: str, options: TaskOptions | None = None, workers: int | None = None
    ) -> None:
        self._task, self._options = task, options
        self._envs: list[list[Task]] = []
        if workers is None:
            workers = len(os.sched_getaffinity(0)) if task_class(task).parallel_stepping else 1
        self._workers = max(1, workers)

    def run(self, policy: PolicyFunction, seeds: Sequence[int]) -> Evaluation:
        # The result is the same, bit for bit, for any number of threads.
        chunks = [
            seeds[start : start + GOALS_AT_ONCE] for start in range(0, len(seeds), GOALS_AT_ONCE)
        ]
        if not chunks:
            raise ValueError('an evaluation needs at least one goal')
        workers = min(self._workers, len(chunks))
        for _ in range(workers - len(self._envs)):
            self._envs.append([make(self._task, self._options) for _ in range(GOALS_AT_ONCE)])

        def run_chunks(worker: int) -> list[Evaluation]:
            envs = self._envs[worker]
            return [_run_chunk(envs, policy, chunk) for chunk in chunks[worker::workers]]

        if workers == 1:
            results = [run_chunks(0)]
        else:
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                results = list(pool.map(run_chunks, range(workers)))
        parts = [results[index % workers][index // workers] for index in range(len(chunks))]
        names = [field.name for field in dataclasses.fields(Evaluation)]
        return Evaluation(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def _run_chunk(envs: list[Task], policy: PolicyFunction, seeds: Sequence[int]) -> Evaluation:
    interface = envs[0].interface
    steps = interface.episode_steps
    starts = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=False)]
    count = len(starts)
    # Rows after the last seed are zero: the batch size of the policy is constant.
    observations = np.zeros((GOALS_AT_ONCE, len(interface.observation)))
    goals = np.zeros((GOALS_AT_ONCE, len(interface.goal)))
    for row, start in enumerate(starts):
        observations[row], goals[row] = start['observation'], start['desired_goal']
    achieved = np.empty((steps, count, goals.shape[1]))
    for step in range(steps):
        actions = policy(observations, goals)
        observations[:count] = type(envs[0]).step_batch(envs[:count], actions[:count])
        achieved[step] = envs[0].judged_goals(observations[:count])
    return judge(interface, achieved, goals[:count])


def judge(interface: TaskInterface, achieved: Array, goals: Array) -> Evaluation:
    """Return the results for goals (count, m) and achieved goals (steps, count, m)."""
    within = interface.is_success(achieved, goals)
    last_second = achieved[-max(2, math.ceil(1.0 / interface.control_period)) :]
    last_second = last_second[..., : interface.position_size]
    turns = bool(interface.orientation_threshold)
    return Evaluation(
        final_errors=interface.position_error(achieved, goals)[-1],
        successes=within[-1],
        steps_to_reach=np.where(within.any(0), within.argmax(0) + 1.0, np.nan),
        motions_at_goal=np.linalg.norm(np.ptp(last_second, axis=0), axis=-1),
        final_angles=interface.angle_error(achieved, goals)[-1] if turns else np.empty(0),
    )
