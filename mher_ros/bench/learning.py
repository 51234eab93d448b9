"""Environment steps and time to learn fetch_reach, against stable-baselines3."""

from collections.abc import Mapping, Sequence
import hashlib
import itertools
import json
from pathlib import Path
import tempfile
from typing import Any

from matplotlib.figure import Figure
from mher_ros.bench.algorithms import ALGORITHMS, default_algorithms, FAST, HER, Problem, TASK
from mher_ros.bench.curves import (
    Curve,
    ending_text,
    GOALS,
    KeptRuns,
    Point,
    reached,
    run,
    spacings_text,
    SUCCESS,
)
from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress, ratio_cell, ratio_figures, Samples
from mher_ros.experiments.metrics import Estimate, NEVER, probability_of_improvement
from mher_ros.experiments.plots import band, panels
from mher_ros.experiments.tables import number_text, Table
from mher_ros.options import OptionError, read_changes
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
from numpy.typing import NDArray
import torch

INTERRUPTED = 'Interrupted: not all of the seeds were run.'

Curves = dict[str, dict[int, Curve]]
"""By algorithm and seed."""


def measure(
    seeds: Sequence[int],
    limit: int,
    algorithms: Sequence[str] | None = None,
    task: str = TASK,
    robot: str | None = None,
    set: Sequence[str] = (),  # noqa: A002  (the name of the flag)
    fresh: bool = False,
    code: str = '',
    folder: Path | None = None,
) -> Result:
    """
    Run each algorithm once per seed, in turn, for at most ``limit`` steps.

    ``set``: changes of our options and the task's, such as ``agent.batch=64``. ``folder`` keeps
    finished runs; those of the same settings and ``code`` (empty: the source files) that are in
    it are not run again, unless ``fresh``.
    """
    changes: dict[str, Any] = {**read_changes(set, '--set')}
    if robot:
        changes['task.robot'] = robot
    problem = Problem(task, changes)
    # Made before all runs: wrong settings are refused at once.
    period = make(task, problem.options).interface.control_period
    chosen = default_algorithms(task) if algorithms is None else list(dict.fromkeys(algorithms))
    for name in chosen:
        if name not in ALGORITHMS:
            raise OptionError(f'unknown algorithm {name!r}; known: {", ".join(ALGORITHMS)}')
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        kept = KeptRuns(folder or Path(temporary), problem, limit, code)
        curves: Curves = {name: {} for name in chosen}
        waiting = []
        for seed, name in itertools.product(seeds, chosen):
            curve = None if fresh else kept.read(name, seed)
            if curve is None:
                waiting.append((seed, name))
                continue
            curves[name][seed] = curve
            log_progress(f'seed {seed}, {name}: {ending_text(curve)}, as an earlier run found')
        reused = sum(map(len, curves.values()))
        interrupted = False
        try:
            _run_all(waiting, problem, limit, kept, curves)
        except KeyboardInterrupt:
            interrupted = True
            whole = [seed for seed in seeds if all(seed in curves[name] for name in chosen)]
            if folder is not None:
                log_progress(f'interrupted: finished runs are kept in {folder}')
            if not whole:
                raise
            log_progress(f'the result is of seed {", ".join(map(str, whole))} only')
            curves = {name: {seed: curves[name][seed] for seed in whole} for name in chosen}
    return result_of(curves, problem, period, interrupted, reused)


def _run_all(
    waiting: Sequence[tuple[int, str]],
    problem: Problem,
    limit: int,
    kept: KeptRuns,
    curves: Curves,
) -> None:
    """Run algorithms with their seeds; each curve is kept, and put into ``curves``."""
    for name in dict.fromkeys(name for _, name in waiting):
        # Warm up: one-time imports and setup must not count against the algorithm that is first.
        learner = ALGORITHMS[name].begin(problem, waiting[0][0], limit)
        if learner.learns_from > limit:
            raise OptionError(
                f'limit: expected at least {learner.learns_from}, the first step at which {name} '
                f'learns; got {limit}'
            )
        learner.learn_until(learner.learns_from)
    evaluator = Evaluator(problem.task, problem.options)
    for seed, name in waiting:
        curve = run(name, problem, seed, limit, evaluator.run)
        kept.write(name, seed, curve)
        curves[name][seed] = curve
        log_progress(f'seed {seed}, {name}: {ending_text(curve)}')


def result_of(
    curves: Mapping[str, Mapping[int, Sequence[Point]]],
    problem: Problem,
    period: float,
    interrupted: bool = False,
    reused: int = 0,
) -> Result:
    """
    Return the result from the curve of each algorithm and seed; all have the same seeds.

    ``period``: control period of the task [s]; ``reused``: number of curves of earlier runs.
    """
    costs = {name: _costs(list(by_seed.values())) for name, by_seed in curves.items()}
    columns = [
        {name: values[:, column].tolist() for name, values in costs.items()} for column in range(3)
    ]
    baselines = [name for name in curves if ALGORITHMS[name].is_sb3]
    figures: dict[str, Any] = {
        'task': problem.task,
        'robot': problem.robot,
        'interrupted': interrupted,
        'reused_runs': reused,
    }
    better = _improvements(columns[0])
    for name, estimate in better.items():
        key = f'probability_of_improvement_vs_{name}'
        figures |= {key: estimate.value, f'{key}_interval': [estimate.low, estimate.high]}
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
    figures['median_robot_seconds'] = {
        name: None if steps is None else round(steps * period, 3)
        for name, steps in figures['median_steps'].items()
    }
    note = _note(problem)
    if reused:
        note = f'{reused} runs are of earlier calls, and so are their times. {note}'
    if interrupted:
        note = f'{INTERRUPTED} {note}'
    table = Table('', HEADER, _rows(columns, better, period), note)
    return Result(figures, (table,), raw, _picture(curves), _variant(problem))


def _costs(curves: Sequence[Sequence[Point]]) -> NDArray[np.float64]:
    """Return steps, wall and CPU seconds of each run (runs, 3)."""
    found = [reached(curve) or Point(NEVER, 0.0, 0, NEVER, NEVER) for curve in curves]
    return np.array([(point.steps, point.wall_seconds, point.cpu_seconds) for point in found])


def _comparable(samples: Samples, other: str) -> bool:
    """Return whether mher fast and another algorithm both have a finite median."""
    return all(name in samples and np.median(samples[name]) < NEVER for name in (FAST, other))


def _improvements(steps: Samples) -> dict[str, Estimate]:
    """Return the probability that mher fast needs fewer steps than each other algorithm."""
    ours = steps.get(FAST)
    if ours is None:
        return {}
    return {
        name: probability_of_improvement(ours, theirs)
        for name, theirs in steps.items()
        if name != FAST
    }


HEADER = (
    *('', 'seeds that learnt', 'steps', 'robot time [s]'),
    *('wall time [s], this machine', 'CPU time [s], this machine'),
    *('mher fast over it: steps', 'wall time', 'CPU time', 'P(mher fast needs fewer steps)'),
)


def _rows(
    columns: Sequence[Samples], better: Mapping[str, Estimate], period: float
) -> tuple[tuple[str, ...], ...]:
    """Return one row per algorithm, given steps, wall and CPU seconds of its runs."""
    rows = []
    for name, steps in columns[0].items():
        wall, cpu = (number_text(np.median(samples[name]), '.3g') for samples in columns[1:])
        middle, low, high = (number_text(f(steps), '.0f') for f in (np.median, np.min, np.max))
        robot = number_text(period * np.median(steps), '.0f')
        learnt = f'{int((np.array(steps) < NEVER).sum())} of {len(steps)}'
        ratios = [
            ratio_cell(samples, FAST, name) if _comparable(samples, name) else ''
            for samples in columns
        ]
        one = better.get(name)
        chance = f'{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]' if one else ''
        title = ALGORITHMS[name].title
        rows.append(
            (title, learnt, f'{middle} [{low}, {high}]', robot, wall, cpu, *ratios, chance)
        )
    return tuple(rows)


def _note(problem: Problem) -> str:
    """Explain the table."""
    task = f'our {problem.task}'
    if problem.robot:
        task += f' with the robot {problem.robot}'
    changed = ', '.join(f'{key}={value}' for key, value in _changes(problem).items())
    return (
        f'Median cost until {100 * SUCCESS:.0f} % of {GOALS} goals are reached in two successive '
        'evaluations, of which the first counts; the range of the seeds is in brackets. Robot '
        'time: steps times the control period. Every '
        f'algorithm learns in one thread on {task}, so that the speed of the environment is '
        'the same for all. All are evaluated after the same numbers of steps, with the same '
        f'goals, without exploration: {spacings_text(problem.task)}. Goals are tried in groups of '
        '25, and an evaluation ends when too many are missed. Times include acting, stepping and '
        'learning, but not evaluations. her fast has the options of mher fast but for those that '
        'make it HER. SB3 is stable-baselines3 with the settings of rl-baselines3-zoo for '
        'FetchReach; at *our pace* it has the warm-up, updates per step, batch size and episode '
        'length of mher fast instead, and for tasks that the zoo does not have also its discount '
        'and the sizes of its networks. The preset fast was chosen with other seeds; the settings '
        'of SB3 were not. Ratios are medians of mher fast over those of the row, with '
        'bootstrapped 95 % intervals over seeds. P: share of the pairs of runs in which mher fast '
        'needs fewer steps; a tie counts as half, and a run that does not learn as infinitely '
        'long.' + (f' Changed options: {changed}.' if changed else '')
    )


def _changes(problem: Problem) -> dict[str, Any]:
    """Return the changed options, but for the robot."""
    return {key: value for key, value in problem.changes.items() if key != 'task.robot'}


def _variant(problem: Problem) -> str:
    """Return what sets the file of the result apart; empty for the task of the zoo as it is."""
    if problem == Problem():
        return ''
    changes = _changes(problem)
    text = json.dumps(changes, sort_keys=True)
    digest = f'-{hashlib.sha256(text.encode()).hexdigest()[:8]}' if changes else ''
    return f'-{problem.name}{digest}'


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
