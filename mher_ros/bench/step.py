"""How fast a task steps, against the environment it stands in for."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.measured import Measured
from mher_ros.bench.timing import median_ratio, take_turns
from mher_ros.experiments.table import Table
from mher_ros.options import override
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed, Evaluator
import numpy as np
from numpy.typing import NDArray

__all__ = ['measure']

STEPS, ROUNDS, GOALS = 1000, 5, 100
LENGTH = 50
"""Steps of an episode of the shipped one."""


def measure() -> Measured:
    """
    Time fetch_reach against Gymnasium-Robotics' FetchReach-v4, and evaluations of 100 goals.

    Steps are in CPU time. Evaluations are in wall time: the loop takes the shipped environment
    through one goal after the other, as most evaluation code does.
    """
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    shipped: Any = gymnasium.make('FetchReach-v4', max_episode_steps=10**9).unwrapped
    ours = make('fetch_reach')
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, 4)).astype(np.float32)
    seeds = [episode_seed(0, index) for index in range(GOALS)]
    options = override(ours.options, {'episode_steps': LENGTH})

    def stepping(env: Any) -> Callable[[], object]:
        def run() -> None:
            env.reset(seed=0)
            for action in actions:
                env.step(action)

        return run

    def loop(env: Any) -> Callable[[], object]:
        def run() -> None:
            for seed in seeds:
                state, _ = env.reset(seed=seed)
                for _ in range(LENGTH):
                    action = _straight(state['observation'][None], state['desired_goal'][None])[0]
                    state, *_ = env.step(action)

        return run

    def together(workers: int | None) -> Callable[[], object]:
        evaluator = Evaluator('fetch_reach', options, workers)
        return lambda: evaluator.run(_straight, seeds)

    samples = take_turns(
        {'fetch_reach': stepping(ours), 'FetchReach-v4': stepping(shipped)},
        ROUNDS,
        time.process_time,
    )
    goals = take_turns(
        {
            'all cores': together(None),
            'one core': together(1),
            'loop over fetch_reach': loop(ours),
            'loop over FetchReach-v4': loop(shipped),
        },
        ROUNDS,
    )
    figures = {
        'ratio': median_ratio(samples, 'FetchReach-v4', 'fetch_reach'),
        'evaluation_ratio_vs_loop': median_ratio(goals, 'loop over FetchReach-v4', 'all cores'),
        'evaluation_ratio_vs_own_loop': median_ratio(goals, 'loop over fetch_reach', 'all cores'),
        'evaluation_ratio_vs_one_core': median_ratio(goals, 'one core', 'all cores'),
    }
    tables = (
        _table(
            'Steps', 'steps/s of CPU time', {n: STEPS / np.array(s) for n, s in samples.items()}
        ),
        _table(
            f'{GOALS} goals, {LENGTH} steps each',
            'goals/s',
            {n: GOALS / np.array(s) for n, s in goals.items()},
        ),
    )
    raw = {'seconds_of_1000_steps': samples, 'seconds_of_100_goals': goals}
    return Measured(figures, tables, raw, ratio_bars(tables))


def _table(title: str, unit: str, rates: dict[str, NDArray[np.float64]]) -> Table:
    medians = {name: float(np.median(values)) for name, values in rates.items()}
    slowest = min(medians.values())
    rows = tuple(
        (name, f'{value:.4g}', f'{value / slowest:.2f}') for name, value in medians.items()
    )
    return Table(title, ('', f'{unit}, this machine', 'ratio'), rows)


def _straight(
    observations: NDArray[np.float64], goals: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Go straight at the goal: a policy that costs next to nothing."""
    actions = np.zeros((len(goals), 4), np.float32)
    actions[:, :3] = np.clip(10.0 * (goals - observations[:, :3]), -1.0, 1.0)
    return actions
