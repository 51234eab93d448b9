"""Reaching without calibration: a policy learnt on an arm against straight lines of its model."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
import time
from typing import Any

from mher_ros.bench import learning
from mher_ros.bench.algorithms import FAST, Problem
from mher_ros.bench.curves import reached, SUCCESS
from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress, PROGRESS_PERIOD
from mher_ros.bench.uncalibrated_lines import final_errors, LINES, SECONDS
from mher_ros.experiments.tables import number_text, Table
from mher_ros.interface import Vector
from mher_ros.learning.config import RngStream
from mher_ros.options import read_changes
from mher_ros.simulation.reach import Reach
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed
import numpy as np

MARKER, LINK_ERROR = '0,0.06,0.08', 0.03
"""Place of the marker on the tool, 10 cm away, and displacement of each link [m]."""
HEADER = (
    'camera turned by',
    'controller',
    'reached',
    'median error [mm]',
    'steps until learnt',
    'seeds that learnt',
)
TITLES = {'straight_line': 'straight line, nominal model', 'visual_servo': 'visual servoing'}
NOTE = (
    'The frame of the camera is turned about the vertical axis and the centre of the workspace; '
    f'the marker is 10 cm from the tool of the model; each link is {100 * LINK_ERROR:.0f} cm off '
    'in a random direction, the same for all rows. The filter knows none of this. The policy is '
    f'learnt on that arm, until {100 * SUCCESS:.0f} % of 100 goals are reached in two successive '
    'evaluations, of which the first counts: median, and the range of the seeds; *reached* is the '
    'mean of the last evaluations. *straight line, nominal model* takes the frame of the camera '
    'for the base frame, and moves the tool of the model to the goal. *visual servoing* '
    'moves the tool along the measured vector to the goal, as if the axes of the camera were '
    f'those of the base. Both have {SECONDS:g} s for each goal. All errors are those of the '
    'true marker.'
)


def measure(
    robot: str,
    turns: Sequence[int],
    seeds: Sequence[int],
    limit: int,
    goals: int,
    set: Sequence[str] = (),  # noqa: A002  (the name of the flag)
    fresh: bool = False,
    code: str = '',
    folder: Path | None = None,
) -> Result:
    """
    Learn once per turn of the camera [deg] and seed, and try the lines with the same errors.

    ``limit``: steps after which a run ends; ``goals``: number of goals of each line. The other
    arguments are those of ``learning.measure``.
    """
    figures: dict[str, Any] = {'robot': robot, 'interrupted': False, 'turns': {}}
    samples: dict[str, Any] = {}
    rows: list[tuple[str, ...]] = []
    for turn in turns:
        changes = [
            'task.tool_pose=topic',
            f'task.tracker.camera_turn=0,0,{turn}',
            f'task.tracker.tool_offset_error={MARKER}',
            f'task.tracker.link_error={LINK_ERROR}',
            *set,
        ]
        try:
            errors = _try_lines(robot, changes, turn, seeds[0], goals)
            log_progress(f'turn of {turn} degrees: learning')
            learnt = learning.measure(
                seeds, limit, [FAST], 'reach', robot, changes, fresh, code, folder
            )
        except KeyboardInterrupt:
            if not rows:
                raise
            figures['interrupted'] = True
            break
        found = _figures(learnt, errors, make('reach', _problem(robot, changes).options))
        figures['turns'][str(turn)] = found
        samples[str(turn)] = {
            'final_errors': {name: values.round(6).tolist() for name, values in errors.items()},
            'learning': learnt.samples,
        }
        rows += _rows(turn, found)
        if learnt.figures['interrupted']:
            figures['interrupted'] = True
            break
    note = f'{learning.INTERRUPTED} {NOTE}' if figures['interrupted'] else NOTE
    return Result(figures, (Table('', HEADER, tuple(rows), note),), samples)


def _problem(robot: str, changes: Sequence[str]) -> Problem:
    return Problem('reach', {**read_changes(changes, '--set'), 'task.robot': robot})


def _try_lines(
    robot: str, changes: Sequence[str], turn: int, seed: int, goals: int
) -> dict[str, Vector]:
    """Return the final errors (goals,) [m] by line."""
    task = make('reach', _problem(robot, changes).options)
    assert isinstance(task, Reach)
    chosen = [episode_seed(seed, RngStream.TEST, 0, goal) for goal in range(goals)]
    errors = {}
    for name, make_line in LINES.items():
        report = partial(_report, f'turn of {turn} degrees, {TITLES[name]}', goals, [0.0])
        errors[name] = final_errors(task, make_line, chosen, report)
    return errors


def _report(what: str, goals: int, logged: list[float], done: int) -> None:
    if time.monotonic() > logged[0] + PROGRESS_PERIOD:
        log_progress(f'{what}: goal {done + 1} of {goals}')
        logged[0] = time.monotonic()


def _figures(learnt: Result, errors: dict[str, Vector], task: Any) -> dict[str, Any]:
    threshold = task.interface.success_threshold
    curves = list(learnt.samples['curves'][FAST].values())
    steps = [reached(curve) for curve in curves]
    found = [point.steps for point in steps if point is not None]
    return {
        'policy': {
            'reached': float(np.mean([curve[-1].success_rate for curve in curves])),
            'median_steps': learnt.figures['median_steps'][FAST],
            'steps': found,
            'seeds': len(curves),
        },
        **{
            name: {
                'reached': float((values <= threshold).mean()),
                'median_error': float(np.median(values)),
            }
            for name, values in errors.items()
        },
    }


def _rows(turn: int, found: dict[str, Any]) -> list[tuple[str, ...]]:
    policy, steps = found['policy'], found['policy']['steps']
    middle = policy['median_steps']
    spread = f' [{min(steps)}, {max(steps)}]' if steps else ''
    rows: list[tuple[str, ...]] = [
        (
            f'{turn} degrees',
            'policy learnt on this arm',
            f'{100 * policy["reached"]:.0f} %',
            '',
            ('not learnt' if middle is None else number_text(middle, '.0f')) + spread,
            f'{len(steps)} of {policy["seeds"]}',
        )
    ]
    for name, title in TITLES.items():
        one = found[name]
        error = f'{1000 * one["median_error"]:.0f}'
        rows.append(('', title, f'{100 * one["reached"]:.0f} %', error, '', ''))
    return rows
