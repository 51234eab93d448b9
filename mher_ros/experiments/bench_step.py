"""How fast a task steps, against the environment it stands in for, in one run."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed, Evaluator
import numpy as np
from numpy.typing import NDArray

__all__ = ['bench_lines', 'bench_step']

STEPS, ROUNDS, GOALS = 1000, 5, 100


def bench_step() -> dict[str, Any]:
    """
    Time fetch_reach against Gymnasium-Robotics' FetchReach-v4, and an evaluation on threads.

    The rivals take turns, ``ROUNDS`` times; ratios are of medians. Steps are in CPU time,
    evaluations in wall time.
    """
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    shipped = gymnasium.make('FetchReach-v4', max_episode_steps=10**9).unwrapped
    ours = make('fetch_reach')
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, 4)).astype(np.float32)

    def stepping(env: Any) -> Callable[[], object]:
        def run() -> None:
            env.reset(seed=0)
            for action in actions:
                env.step(action)

        return run

    def evaluating(workers: int | None) -> Callable[[], object]:
        evaluator = Evaluator('fetch_reach', workers=workers)
        seeds = [episode_seed(0, index) for index in range(GOALS)]
        return lambda: evaluator.run(_straight, seeds)

    rivals = {
        'shipped_steps': (stepping(shipped), time.process_time),
        'steps': (stepping(ours), time.process_time),
        'evaluation_one_thread': (evaluating(1), time.perf_counter),
        'evaluation': (evaluating(None), time.perf_counter),
    }
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(ROUNDS):
        for name, (run, clock) in rivals.items():
            started = clock()
            run()
            seconds[name].append(clock() - started)
    median = {name: float(np.median(samples)) for name, samples in seconds.items()}
    return {
        'steps_per_second': STEPS / median['steps'],
        'shipped_steps_per_second': STEPS / median['shipped_steps'],
        'ratio': median['shipped_steps'] / median['steps'],
        'evaluation_seconds': median['evaluation'],
        'evaluation_ratio_vs_one_thread': median['evaluation_one_thread'] / median['evaluation'],
        'seconds': seconds,
    }


def bench_lines(result: dict[str, Any]) -> list[str]:
    """Return the figures of ``bench_step`` as lines for people."""
    return [
        f'fetch_reach steps/s (CPU, this machine)   {result["steps_per_second"]:.0f}',
        f'FetchReach-v4 steps/s (the same)          {result["shipped_steps_per_second"]:.0f}',
        f'ratio                                     {result["ratio"]:.2f}',
        f'100 goals evaluated, all cores [s]        {result["evaluation_seconds"]:.2f}',
        f'ratio to one thread                       '
        f'{result["evaluation_ratio_vs_one_thread"]:.2f}',
    ]


def _straight(
    observations: NDArray[np.float64], goals: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Go straight at the goal: a policy that costs next to nothing."""
    actions = np.zeros((len(goals), 4), np.float32)
    actions[:, :3] = np.clip(10.0 * (goals - observations[:, :3]), -1.0, 1.0)
    return actions
