"""Environment steps and time to learn fetch_reach, against stable-baselines3."""

from collections.abc import Mapping, Sequence
import itertools
import math
import time
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from mher_ros.bench.algorithms import ALGORITHMS, FAST, HER, TASK
from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress, PROGRESS_PERIOD, ratio_cell, ratio_figures, Samples
from mher_ros.experiments.metrics import NEVER
from mher_ros.experiments.plots import band, panels
from mher_ros.experiments.tables import number_text, Table
from mher_ros.learning.config import RngStream
from mher_ros.learning.run.trainer import Evaluate
from mher_ros.options import OptionError
from mher_ros.tasks.rollouts import episode_seed, Evaluator, GOALS_AT_ONCE, PolicyFunction
import numpy as np
from numpy.typing import NDArray
import torch

GOALS, SUCCESS = 100, 0.95
SPACINGS = ((500, 25), (1000, 50), (5000, 100), (math.inf, 500))
"""(Steps, spacing of evaluations up to there); from 250 steps on at most a tenth of the steps."""

NOTE = (
    f'Median cost until {100 * SUCCESS:.0f} % of {GOALS} goals are reached in two successive '
    'evaluations, of which the first counts; the range of the seeds is in brackets. Every '
    'algorithm learns in one thread on our fetch_reach, so that the speed of the environment is '
    'the same for all. All are evaluated after the same numbers of steps, with the same goals, '
    'without exploration: every 25 steps up to 500, every 50 up to 1,000, every 100 up to 5,000, '
    'then every 500. Goals are tried in groups of 25, and an evaluation ends when too many are '
    'missed. Times include acting, stepping and learning, but not evaluations. SB3 is '
    'stable-baselines3 with the settings of rl-baselines3-zoo for FetchReach; at *our pace* it '
    'has the warm-up, updates per step, batch size and episode length of mher fast instead. The '
    'preset fast was chosen on this task, with other seeds; the settings of SB3 were not. Ratios '
    'are medians of mher fast over those of the row, with bootstrapped 95 % intervals over seeds.'
)
INTERRUPTED = 'Interrupted: not all of the seeds were run.'


class Point(NamedTuple):
    """An evaluation, and the cost of learning up to it."""

    steps: float
    success_rate: float
    goals: int  # number of goals tried
    wall_seconds: float
    cpu_seconds: float


def measure(seeds: Sequence[int], limit: int, algorithms: Sequence[str] | None = None) -> Result:
    """Run each algorithm once per seed, in turn, for at most ``limit`` steps."""
    chosen = list(ALGORITHMS) if algorithms is None else list(dict.fromkeys(algorithms))
    for name in chosen:
        if name not in ALGORITHMS:
            raise OptionError(f'unknown algorithm {name!r}; known: {", ".join(ALGORITHMS)}')
    torch.set_num_threads(1)
    for name in chosen:
        # Warm up: one-time imports and setup must not count against the algorithm that is first.
        learner = ALGORITHMS[name].begin(seeds[0], limit)
        if learner.learns_from > limit:
            raise OptionError(
                f'limit: expected at least {learner.learns_from}, the first step at which {name} '
                f'learns; got {limit}'
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
        log_progress(f'interrupted: the result is of seed {", ".join(map(str, whole))} only')
        curves = {name: {seed: curves[name][seed] for seed in whole} for name in chosen}
    return result_of(curves, interrupted)


def evaluation_points(limit: int) -> list[int]:
    points = [0]
    while points[-1] <= limit:
        points.append(points[-1] + next(by for end, by in SPACINGS if points[-1] < end))
    return points[1:-1]


def reached(curve: Sequence[Point]) -> Point | None:
    """Return the first of two successive evaluations with enough success, if there is one."""
    for one, next_one in itertools.pairwise(curve):
        if min(one.success_rate, next_one.success_rate) >= SUCCESS:
            return one
    return None


def result_of(
    curves: Mapping[str, Mapping[int, Sequence[Point]]], interrupted: bool = False
) -> Result:
    """Return the result from the curve of each algorithm and seed; all have the same seeds."""
    costs = {name: _costs(list(by_seed.values())) for name, by_seed in curves.items()}
    columns = [
        {name: values[:, column].tolist() for name, values in costs.items()} for column in range(3)
    ]
    baselines = [name for name in curves if ALGORITHMS[name].is_sb3]
    figures: dict[str, Any] = {'interrupted': interrupted}
    for quantity, samples in zip(('steps', 'wall', 'cpu'), columns, strict=True):
        medians = {name: float(np.median(values)) for name, values in samples.items()}
        best = min(baselines, key=medians.__getitem__, default=None)
        for key, other in (('best_sb3', best), ('her_fast', HER)):
            ratio = f'{quantity}_ratio_vs_{key}'
            figures |= {ratio: None, f'{ratio}_interval': None}
            if other and _comparable(samples, other):
                figures |= ratio_figures(ratio, samples, FAST, other)
        figures[f'best_sb3_in_{quantity}'] = best if best and medians[best] < NEVER else None
        figures[f'median_{quantity}'] = {
            name: value if value < NEVER else None for name, value in medians.items()
        }
    raw = {
        'columns': Point._fields,
        'curves': {
            name: {str(seed): list(curve) for seed, curve in by_seed.items()}
            for name, by_seed in curves.items()
        },
    }
    return Result(figures, (_table(columns, interrupted),), raw, _picture(curves))


def _run(name: str, seed: int, limit: int, evaluate: Evaluate) -> list[Point]:
    learner = ALGORITHMS[name].begin(seed, limit)
    wall = cpu = 0.0
    curve: list[Point] = []
    logged = -math.inf
    for steps in evaluation_points(limit):
        if steps < learner.learns_from:
            continue
        started = time.perf_counter(), time.process_time()
        learner.learn_until(steps)
        wall += time.perf_counter() - started[0]
        cpu += time.process_time() - started[1]
        goals = [episode_seed(seed, RngStream.TEST, steps, index) for index in range(GOALS)]
        tried = try_goals(evaluate, learner.policy(), goals)
        rate = float(np.mean(tried))
        curve.append(Point(learner.steps, rate, len(tried), round(wall, 4), round(cpu, 4)))
        if time.monotonic() > logged + PROGRESS_PERIOD:
            log_progress(f'seed {seed}, {name}: success {rate:.2f} after {learner.steps} steps')
            logged = time.monotonic()
        if reached(curve) is not None:
            break
    found = reached(curve)
    what = f'learnt after {found.steps}' if found else f'not learnt after {learner.steps}'
    log_progress(f'seed {seed}, {name}: {what} steps')
    return curve


def try_goals(evaluate: Evaluate, policy: PolicyFunction, goals: Sequence[int]) -> list[bool]:
    """Return the successes; goals are tried in groups of 25, until too many are missed."""
    allowed = round((1.0 - SUCCESS) * len(goals))
    successes: list[bool] = []
    for start in range(0, len(goals), GOALS_AT_ONCE):
        part = evaluate(policy, goals[start : start + GOALS_AT_ONCE])
        successes += part.successes.tolist()
        if successes.count(False) > allowed:
            break
    return successes


def _costs(curves: Sequence[Sequence[Point]]) -> NDArray[np.float64]:
    """Return steps, wall and CPU seconds of each run (runs, 3)."""
    found = [reached(curve) or Point(NEVER, 0.0, 0, NEVER, NEVER) for curve in curves]
    return np.array([(point.steps, point.wall_seconds, point.cpu_seconds) for point in found])


def _comparable(samples: Samples, other: str) -> bool:
    """Return whether mher fast and another algorithm both have a finite median."""
    return all(name in samples and np.median(samples[name]) < NEVER for name in (FAST, other))


def _table(columns: Sequence[Samples], interrupted: bool) -> Table:
    """Return one row per algorithm, given steps, wall and CPU seconds of its runs."""
    rows = []
    for name, steps in columns[0].items():
        wall, cpu = (number_text(np.median(samples[name]), '.3g') for samples in columns[1:])
        middle, low, high = (number_text(f(steps), '.0f') for f in (np.median, np.min, np.max))
        learnt = f'{int((np.array(steps) < NEVER).sum())} of {len(steps)}'
        ratios = [
            ratio_cell(samples, FAST, name) if _comparable(samples, name) else ''
            for samples in columns
        ]
        title = ALGORITHMS[name].title
        rows.append((title, learnt, f'{middle} [{low}, {high}]', wall, cpu, *ratios))
    header = (
        *('', 'seeds that learnt', 'steps'),
        *('wall time [s], this machine', 'CPU time [s], this machine'),
        *('mher fast over it: steps', 'wall time', 'CPU time'),
    )
    note = f'{INTERRUPTED} {NOTE}' if interrupted else NOTE
    return Table('', header, tuple(rows), note)


def _picture(curves: Mapping[str, Mapping[int, Sequence[Point]]]) -> Figure:
    with panels([f'Success with up to {GOALS} test goals'], size=(7.0, 4.2)) as (figure, (ax,)):
        for name, by_seed in curves.items():
            runs = [
                ([point.steps for point in curve], [point.success_rate for point in curve])
                for curve in by_seed.values()
            ]
            band(ax, runs, ALGORITHMS[name].title, ALGORITHMS[name].look)
        ax.axhline(SUCCESS, color='#BBBBBB', linewidth=0.8, zorder=0)
        ax.set_xscale('log')
        ax.set_xlabel('environment steps')
        ax.set_ylim(-0.02, 1.02)
    return figure
