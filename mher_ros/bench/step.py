"""How fast a task steps, against the environment it stands in for."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.measured import Measured
from mher_ros.bench.timing import ratio_cell, ratio_figures, Samples, take_turns
from mher_ros.experiments.table import Table
from mher_ros.options import override
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed, Evaluator
import numpy as np
from numpy.typing import NDArray

__all__ = ['measure']

STEPS, GOALS = 1000, 100
SHIPPED = 'FetchReach-v4'
LOOP = f'{SHIPPED} in a loop'
LENGTH = 50
"""Steps of an episode of the shipped one."""


def measure(rounds: int) -> Measured:
    """
    Time fetch_reach against Gymnasium-Robotics' FetchReach-v4, and evaluations of 100 goals.

    Steps are in CPU time. Evaluations are in wall time: the loop takes the shipped environment
    through one goal after the other, as most evaluation code does.
    """
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    shipped: Any = gymnasium.make(SHIPPED, max_episode_steps=10**9).unwrapped
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
        {'fetch_reach': stepping(ours), SHIPPED: stepping(shipped)},
        rounds,
        time.process_time,
    )
    goals = take_turns(
        {
            'all cores': together(None),
            'one core': together(1),
            'fetch_reach in a loop': loop(ours),
            LOOP: loop(shipped),
        },
        rounds,
    )
    figures = {
        **ratio_figures('ratio', samples, SHIPPED, 'fetch_reach'),
        **ratio_figures('evaluation_ratio_vs_loop', goals, LOOP, 'all cores'),
        **ratio_figures(
            'evaluation_ratio_vs_own_loop', goals, 'fetch_reach in a loop', 'all cores'
        ),
        **ratio_figures('evaluation_ratio_vs_one_core', goals, 'one core', 'all cores'),
    }
    tables = (
        _table('Steps', STEPS, 'steps/s of CPU time', samples, SHIPPED),
        _table(f'{GOALS} goals, {LENGTH} steps each', GOALS, 'goals/s', goals, LOOP),
    )
    raw = {'seconds_of_1000_steps': samples, 'seconds_of_100_goals': goals}
    return Measured(figures, tables, raw, ratio_bars(tables))


def _table(title: str, count: int, unit: str, seconds: Samples, base: str) -> Table:
    """Return a row a rival, given the seconds it took to do ``count`` of the things."""
    rows = tuple(
        (name, f'{count / np.median(values):.4g}', ratio_cell(seconds, base, name))
        for name, values in seconds.items()
    )
    return Table(title, ('', f'{unit}, this machine', f'over {base}'), rows)


def _straight(
    observations: NDArray[np.float64], goals: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Go straight at the goal: a policy that costs next to nothing."""
    actions = np.zeros((len(goals), 4), np.float32)
    actions[:, :3] = np.clip(10.0 * (goals - observations[:, :3]), -1.0, 1.0)
    return actions
