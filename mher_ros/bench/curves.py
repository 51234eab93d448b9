"""Runs of ``mher bench learning``: success over environment steps, kept in files."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import math
from pathlib import Path
import time
from typing import Any, NamedTuple

from mher_ros.bench import algorithms
from mher_ros.bench.algorithms import ALGORITHMS, Problem
from mher_ros.bench.kept import KeptResults
from mher_ros.bench.timing import log_progress, PROGRESS_PERIOD
from mher_ros.learning.config import RngStream
from mher_ros.learning.run.trainer import Evaluate
from mher_ros.robots.robot import load_robot
from mher_ros.tasks.rollouts import episode_seed, GOALS_AT_ONCE, PolicyFunction
import numpy as np

GOALS, SUCCESS = 100, 0.95
Spacings = tuple[tuple[float, int], ...]
SPACINGS: Spacings = ((500, 25), (1000, 50), (5000, 100), (math.inf, 500))
"""(Steps, spacing of evaluations up to there); from 250 steps on at most a tenth of the steps."""
SPACINGS_OF: Mapping[str, Spacings] = {
    'reach': ((2000, 100), (5000, 200), (10_000, 500), (math.inf, 1000)),
}
"""Of tasks whose evaluations take long; from 1,000 steps on at most a tenth of the steps."""


class Point(NamedTuple):
    """An evaluation, and the cost of learning up to it."""

    steps: float
    success_rate: float
    goals: int  # number of goals tried
    wall_seconds: float
    cpu_seconds: float


Curve = list[Point]


class KeptRuns:
    """Finished runs in a folder, one file each; several processes may use it."""

    def __init__(self, folder: Path, problem: Problem, limit: int, code: str = '') -> None:
        """``code``: version of the code; empty: a digest of it."""
        self._kept = KeptResults(folder, code, (algorithms.__file__, __file__))
        self._problem, self._limit, self._robot = problem, limit, _robot_text(problem)

    def read(self, name: str, seed: int) -> Curve | None:
        """Return the curve of a finished run, if there is one."""
        found = self._kept.read(*self._key(name, seed))
        return None if found is None else [Point(*point) for point in found]

    def write(self, name: str, seed: int, curve: Curve) -> None:
        self._kept.write(*self._key(name, seed), curve)

    def _key(self, name: str, seed: int) -> tuple[str, dict[str, Any]]:
        """Return the name of a run, and all that it depends on."""
        settings = ALGORITHMS[name].settings(self._problem)
        return f'{self._problem.name}-{name}-seed{seed}', {
            'algorithm': name,
            'seed': seed,
            'limit': self._limit,
            'robot': self._robot,
            'settings': settings,
        }


def run(name: str, problem: Problem, seed: int, limit: int, evaluate: Evaluate) -> Curve:
    """Learn until the success rate is held, or for ``limit`` steps."""
    learner = ALGORITHMS[name].begin(problem, seed, limit)
    wall = cpu = 0.0
    curve: Curve = []
    logged = -math.inf
    for steps in evaluation_points(limit, problem.task):
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
    return curve


def ending_text(curve: Sequence[Point]) -> str:
    found = reached(curve)
    what = f'learnt after {found.steps}' if found else f'not learnt after {curve[-1].steps}'
    return f'{what} steps'


def evaluation_points(limit: int, task: str = algorithms.TASK) -> list[int]:
    """Return the numbers of steps after which a policy is evaluated."""
    spacings, points = SPACINGS_OF.get(task, SPACINGS), [0]
    while points[-1] <= limit:
        points.append(points[-1] + next(by for end, by in spacings if points[-1] < end))
    return points[1:-1]


def spacings_text(task: str) -> str:
    """Return a sentence for people, such as: every 25 steps up to 500, then every 50."""
    *first, (_, last) = SPACINGS_OF.get(task, SPACINGS)
    listed = [f'every {by} up to {end:,.0f}' for end, by in first]
    return f'{", ".join(listed)}, then every {last}'.replace(' up', ' steps up', 1)


def reached(curve: Sequence[Point]) -> Point | None:
    """Return the first of two successive evaluations with enough success, if there is one."""
    for one, next_one in itertools.pairwise(curve):
        if min(one.success_rate, next_one.success_rate) >= SUCCESS:
            return one
    return None


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


def _robot_text(problem: Problem) -> str:
    """Return the content of the robot file; empty for tasks without one."""
    name = problem.robot
    return repr(dataclasses.replace(load_robot(name), folder=Path())) if name else ''
