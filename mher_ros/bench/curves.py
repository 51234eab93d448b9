"""Runs of ``mher bench learning``: success over environment steps, kept in files."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import hashlib
import itertools
import json
import math
from pathlib import Path
import time
from typing import Any, NamedTuple

from mher_ros.bench import algorithms
from mher_ros.bench.algorithms import ALGORITHMS, Problem
from mher_ros.bench.timing import log_progress, PROGRESS_PERIOD
from mher_ros.experiments.provenance import code_digest
from mher_ros.files import write_atomically
from mher_ros.learning.config import RngStream
from mher_ros.learning.run.trainer import Evaluate
from mher_ros.options import OptionError, os_errors_as_option_errors
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
        self._folder, self._problem = folder, problem
        self._facts = {
            'code': code or _code_digest(),
            'limit': limit,
            'robot': _robot_text(problem),
        }
        with os_errors_as_option_errors(f'cannot make the folder {folder}'):
            folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str, seed: int) -> Path:
        """Return the file of a run, whose name has a digest of all that the run depends on."""
        facts = [self._facts, name, self._settings(name)]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        return self._folder / f'{self._problem.name}-{name}-seed{seed}-{digest}.json'

    def read(self, name: str, seed: int) -> Curve | None:
        """Return the curve of a finished run, if there is one."""
        path = self.path(name, seed)
        if not path.exists():
            return None
        try:
            return [Point(*point) for point in json.loads(path.read_text())['curve']]
        except (LookupError, OSError, TypeError, ValueError) as error:
            raise OptionError(f'{path} is not the file of a run: {error!r}') from error

    def write(self, name: str, seed: int, curve: Curve) -> None:
        values = {
            'algorithm': name,
            'seed': seed,
            **self._facts,
            'settings': self._settings(name),
            'columns': Point._fields,
            'curve': curve,
        }
        write_atomically(self.path(name, seed), (json.dumps(values, indent=1) + '\n').encode())

    def _settings(self, name: str) -> Any:
        return ALGORITHMS[name].settings(self._problem)


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


@functools.cache
def _code_digest() -> str:
    digest = hashlib.sha256(code_digest().encode())
    for source in (algorithms.__file__, __file__):
        digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]
