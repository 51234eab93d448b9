"""How much experience and time it takes to learn fetch_reach, against stable-baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import itertools
import math
import time
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from mher_ros.bench.learners import FAST, HER, SYSTEMS, TASK
from mher_ros.bench.measured import BenchError, Measured
from mher_ros.bench.timing import ratio_cell, ratio_figures, Samples, tell, TELL_EVERY
from mher_ros.experiments.plots.style import band, panels
from mher_ros.experiments.table import Table
from mher_ros.learning import streams
from mher_ros.tasks.rollouts import (
    episode_seed,
    Evaluation,
    Evaluator,
    GOALS_AT_ONCE,
    PolicyFunction,
)
import numpy as np
from numpy.typing import NDArray
import torch

__all__ = ['evaluation_points', 'findings', 'measure', 'Point', 'reached', 'try_goals']

GOALS, SUCCESS = 100, 0.95
SPACINGS = ((500, 25), (1000, 50), (5000, 100), (math.inf, 500))
"""Steps between two evaluations up to a number of steps: from 250 on at most a tenth of it."""
NEVER = math.inf

EXPLAINED = (
    f'Median cost of {100 * SUCCESS:.0f} % success with {GOALS} goals, held over two evaluations '
    'in succession, of which the first counts; the range of the seeds in brackets. Every system '
    'learns in one thread on the same fetch_reach, ours, so that no part of the comparison is the '
    'speed of an environment. All are evaluated after the same numbers of steps, with the same '
    'goals, without exploration: every 25 steps up to 500, every 50 up to 1,000, every 100 up to '
    '5,000, then every 500; goals are tried by 25, and no more once too many are missed. Times '
    'are those of acting, stepping and learning; evaluations do not count. The systems of SB3, '
    'stable-baselines3, have the settings of rl-baselines3-zoo for FetchReach; at *our pace* they '
    'have the updates a step, those on the warm-up, its length, batch and length of episodes of '
    'mher fast instead. The '
    'preset fast was chosen on this task, on other seeds; the settings of SB3 were not. Ratios '
    "are those of mher fast's medians to the row's, with 95 % intervals made by drawing the seeds "
    'again.'
)
INTERRUPTED = 'Interrupted: not all of the seeds asked for.'


class Point(NamedTuple):
    """An evaluation, and what it has cost to get there."""

    steps: int
    success_rate: float
    goals: int
    """How many were tried."""
    wall_seconds: float
    cpu_seconds: float


Evaluate = Callable[[PolicyFunction, Sequence[int]], Evaluation]


def measure(seeds: Sequence[int], limit: int, systems: Sequence[str] | None = None) -> Measured:
    """Let each system learn in turn, once a seed, for ``limit`` steps at most."""
    chosen = list(SYSTEMS) if systems is None else list(dict.fromkeys(systems))
    for name in chosen:
        if name not in SYSTEMS:
            raise BenchError(f'there is no system {name!r}; there are {", ".join(SYSTEMS)}')
    torch.set_num_threads(1)
    for name in chosen:
        # Not measured: what is loaded and set up only once would count against whoever is first.
        learner = SYSTEMS[name].begin(seeds[0], limit)
        if learner.learns_from > limit:
            raise BenchError(
                f'{name} has learnt nothing before step {learner.learns_from}; '
                f'the limit must be at least that, got {limit}'
            )
        learner.learn_until(learner.learns_from)
    evaluator = Evaluator(TASK)
    curves: dict[str, dict[int, list[Point]]] = {name: {} for name in chosen}
    interrupted = False
    try:
        for seed, name in itertools.product(seeds, chosen):
            curves[name][seed] = _run(name, seed, limit, evaluator.run)
    except KeyboardInterrupt:
        interrupted = True
        whole = [seed for seed in seeds if all(seed in curves[name] for name in chosen)]
        if not whole:
            raise
        tell(f'interrupted: what follows is of seed {", ".join(map(str, whole))} alone')
        curves = {name: {seed: curves[name][seed] for seed in whole} for name in chosen}
    return findings(curves, interrupted)


def evaluation_points(limit: int) -> list[int]:
    """Return the numbers of steps after which all are evaluated."""
    points: list[int] = []
    steps = 0
    while True:
        steps += next(spacing for end, spacing in SPACINGS if steps < end)
        if steps > limit:
            return points
        points.append(steps)


def reached(curve: Sequence[Point]) -> Point | None:
    """Return the first of two successive evaluations that are good enough."""
    for one, next_one in itertools.pairwise(curve):
        if min(one.success_rate, next_one.success_rate) >= SUCCESS:
            return one
    return None


def findings(
    curves: Mapping[str, Mapping[int, Sequence[Point]]], interrupted: bool = False
) -> Measured:
    """Return what evaluations of each system and seed show; of all the same seeds."""
    costs = {name: _costs(list(by_seed.values())) for name, by_seed in curves.items()}
    rivals = [name for name in curves if SYSTEMS[name].is_sb3]
    figures: dict[str, Any] = {'interrupted': interrupted}
    for column, quantity in enumerate(('steps', 'wall', 'cpu')):
        samples = {name: values[:, column].tolist() for name, values in costs.items()}
        medians = {name: float(np.median(values)) for name, values in samples.items()}
        best = min(rivals, key=medians.__getitem__, default=None)
        figures |= _ratio(f'{quantity}_ratio_vs_best_sb3', samples, best)
        figures |= _ratio(f'{quantity}_ratio_vs_her_fast', samples, HER)
        figures[f'best_sb3_in_{quantity}'] = best if best and medians[best] < NEVER else None
        figures[f'median_{quantity}'] = {name: _plain(value) for name, value in medians.items()}
    raw = {
        'columns': Point._fields,
        'curves': {
            name: {str(seed): list(curve) for seed, curve in by_seed.items()}
            for name, by_seed in curves.items()
        },
        'steps_wall_cpu': {
            name: {
                str(seed): [_plain(value) for value in row]
                for seed, row in zip(by_seed, costs[name], strict=True)
            }
            for name, by_seed in curves.items()
        },
    }
    return Measured(figures, (_table(costs, interrupted),), raw, _picture(curves))


def _run(name: str, seed: int, limit: int, evaluate: Evaluate) -> list[Point]:
    learner = SYSTEMS[name].begin(seed, limit)
    wall = cpu = 0.0
    curve: list[Point] = []
    told = -math.inf
    for steps in evaluation_points(limit):
        if steps < learner.learns_from:
            continue
        started = time.perf_counter(), time.process_time()
        learner.learn_until(steps)
        wall += time.perf_counter() - started[0]
        cpu += time.process_time() - started[1]
        goals = [episode_seed(seed, streams.TEST, steps, index) for index in range(GOALS)]
        reached_goals = try_goals(evaluate, learner.policy(), goals)
        rate = float(np.mean(reached_goals))
        tried = len(reached_goals)
        curve.append(Point(learner.steps, rate, tried, round(wall, 4), round(cpu, 4)))
        if time.monotonic() > told + TELL_EVERY:
            tell(f'seed {seed}, {name}: success {rate:.2f} after {learner.steps} steps')
            told = time.monotonic()
        if reached(curve) is not None:
            break
    found = reached(curve)
    where = f'there after {found.steps}' if found else f'not there after {learner.steps}'
    tell(f'seed {seed}, {name}: {where} steps')
    return curve


def try_goals(evaluate: Evaluate, policy: PolicyFunction, goals: Sequence[int]) -> list[bool]:
    """Return which goals are reached, tried by 25, and no more once too many have failed."""
    bearable = round((1.0 - SUCCESS) * len(goals))
    successes: list[bool] = []
    for start in range(0, len(goals), GOALS_AT_ONCE):
        part = evaluate(policy, goals[start : start + GOALS_AT_ONCE])
        successes += part.successes.tolist()
        if successes.count(False) > bearable:
            break
    return successes


def _costs(curves: Sequence[Sequence[Point]]) -> NDArray[np.float64]:
    """Return steps, wall and CPU seconds of each run (runs, 3)."""
    found = [reached(curve) for curve in curves]
    return np.array(
        [
            (NEVER,) * 3 if point is None else (point.steps, point.wall_seconds, point.cpu_seconds)
            for point in found
        ]
    )


def _plain(value: float) -> float | None:
    return float(value) if value < NEVER else None


def _ratio(key: str, samples: Samples, other: str | None) -> dict[str, Any]:
    """Return that of mher fast to another, and its interval; None where one has no median."""
    if other is None or not _comparable(samples, other):
        return {key: None, f'{key}_interval': None}
    found = ratio_figures(key, samples, FAST, other)
    return {**found, f'{key}_interval': [_plain(end) for end in found[f'{key}_interval']]}


def _comparable(samples: Samples, other: str) -> bool:
    return all(name in samples and np.median(samples[name]) < NEVER for name in (FAST, other))


def _table(costs: Mapping[str, NDArray[np.float64]], interrupted: bool) -> Table:
    rows = []
    columns = [
        {name: values[:, column].tolist() for name, values in costs.items()} for column in range(3)
    ]
    for name, values in costs.items():
        medians = np.median(values, axis=0)
        steps = values[:, 0]
        ratios = [
            ratio_cell(samples, FAST, name) if _comparable(samples, name) else ''
            for samples in columns
        ]
        rows.append(
            (
                SYSTEMS[name].title,
                f'{int((steps < NEVER).sum())} of {len(steps)}',
                f'{_cell(medians[0], ".0f")} [{_cell(steps.min(), ".0f")}, '
                f'{_cell(steps.max(), ".0f")}]',
                _cell(medians[1], '.3g'),
                _cell(medians[2], '.3g'),
                *ratios,
            )
        )
    header = (
        '',
        'seeds that got there',
        'steps',
        'wall time [s], this machine',
        'CPU time [s], this machine',
        'mher fast over it: steps',
        'wall time',
        'CPU time',
    )
    explained = f'{INTERRUPTED} {EXPLAINED}' if interrupted else EXPLAINED
    return Table('', header, tuple(rows), explained)


def _cell(value: float, form: str) -> str:
    return f'{value:{form}}' if value < NEVER else 'never'


def _picture(curves: Mapping[str, Mapping[int, Sequence[Point]]]) -> Figure:
    with panels([f'Success with up to {GOALS} test goals'], size=(7.0, 4.2)) as (figure, (ax,)):
        for name, by_seed in curves.items():
            runs = [
                ([point.steps for point in curve], [point.success_rate for point in curve])
                for curve in by_seed.values()
            ]
            band(ax, runs, SYSTEMS[name].title, SYSTEMS[name].look)
        ax.axhline(SUCCESS, color='#BBBBBB', linewidth=0.8, zorder=0)
        ax.set_xscale('log')
        ax.set_xlabel('environment steps')
        ax.set_ylim(-0.02, 1.02)
    return figure
