"""Whether a simulated arm stays out of contact, with itself and among random obstacles."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import multiprocessing
from pathlib import Path
import signal
import tempfile
import time
from typing import Any

from mher_ros.bench.collision_scenes import CROWD, OBSTACLES
from mher_ros.bench.collision_trials import (
    DURATION,
    GOAL_KINDS,
    MOTION_KINDS,
    RESULTS,
    run_scene,
    SceneResult,
    SceneTrial,
    TASK,
    UNMOVED_FOR,
)
from mher_ros.bench.policies import trained_policy
from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress, PROGRESS_PERIOD
from mher_ros.experiments.provenance import cores
from mher_ros.experiments.tables import Table
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.contacts import TOUCH
import numpy as np
from numpy.typing import NDArray

ON = [(kind, 'on') for kind in (*GOAL_KINDS, *MOTION_KINDS)]
BASELINES = [
    ('straight line', 'off'),
    ('random joints', 'off'),
    ('adversarial', 'off'),
    ('straight line', 'mink'),
]
"""Motions by kind and what avoids collisions; each has the same scenes and goals as the first."""
GOALS_PER_SCENE = 10
CROWDED = 0.2  # share of the motions that are also made in crowded scenes
MANY = 20  # active pairs of a command for which times are reported apart

Results = dict[SceneTrial, SceneResult]


def measure(
    robot: str,
    goals: int,
    output: str,
    seed: int,
    policy: str | None = None,
    workers: int = 0,
    alone: bool = False,
) -> Result:
    """
    Move an arm to goals, straight and by a policy, and by joint velocities at full scale.

    MuJoCo's own contacts, in a simulation with masses and drives, show what the arm touches. Some
    motions are done again with the collision avoidance off, and by mink's own collision limit,
    unless ``alone``. Without ``policy`` one is trained for the robot's task. Scenes are simulated
    by as many processes as there are ``workers``, or cores; the result does not depend on it.
    """
    loaded = load_robot(robot)
    if output == 'robot':
        output = loaded.output if OUTPUTS[loaded.output].of_joints else 'joint_position'
    with tempfile.TemporaryDirectory() as folder:
        task = loaded.simulation_task or TASK
        path = policy or str(trained_policy(task, 'fast', seed, Path(folder) / 'policy'))
        trials = _trials(
            SceneTrial(
                robot=robot,
                output=output,
                kind='',
                avoidance='',
                policy=str(Path(path).resolve()),
                seed=seed,
                scene=0,
                motions=0,
            ),
            ON if alone else ON + BASELINES,
            goals,
        )
        done: Results = {}
        interrupted = False
        try:
            for trial, found in _run(trials, workers or cores()):
                done[trial] = found
        except KeyboardInterrupt:
            interrupted = True
    result = _result(robot, goals, [trial for trial in trials if trial in done], done)
    if interrupted:
        result.figures['interrupted'] = True
    return result


def _trials(
    common: SceneTrial, variants: Sequence[tuple[str, str]], goals: int
) -> list[SceneTrial]:
    """Return the trials of all scenes, scene by scene: an interrupted run has some of each."""
    trials = []
    for scene, begun in enumerate(range(0, goals, GOALS_PER_SCENE)):
        for kind, avoidance in variants:
            if kind == 'crowded' and begun >= max(1.0, CROWDED * goals):
                continue
            trials.append(
                dataclasses.replace(
                    common,
                    kind=kind,
                    avoidance=avoidance,
                    scene=scene,
                    motions=min(GOALS_PER_SCENE, goals - begun),
                )
            )
    return trials


def _run(trials: Sequence[SceneTrial], workers: int) -> Iterator[tuple[SceneTrial, SceneResult]]:
    """Yield results as they come; report progress meanwhile."""
    all_motions, motions, began = sum(trial.motions for trial in trials), 0, time.monotonic()
    context = multiprocessing.get_context('spawn')
    # Ctrl-C reaches all processes of a terminal; only this one handles it. Leaving the context
    # ends the others at once.
    with context.Pool(min(workers, len(trials)), _ignore_interrupts) as pool:
        found = pool.imap_unordered(_do, trials)
        logged = time.monotonic()
        left = len(trials)
        while left:
            try:
                trial, result = found.next(PROGRESS_PERIOD)
            except multiprocessing.TimeoutError:
                pass
            else:
                left, motions = left - 1, motions + trial.motions
                yield trial, result
            if time.monotonic() > logged + PROGRESS_PERIOD:
                logged = time.monotonic()
                log_progress(f'{motions} of {all_motions} motions, {logged - began:.0f} s')


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _do(trial: SceneTrial) -> tuple[SceneTrial, SceneResult]:
    return trial, run_scene(trial)


def _result(robot: str, goals: int, trials: Iterable[SceneTrial], done: Results) -> Result:
    by_variant: dict[tuple[str, str], list[SceneResult]] = {}
    for trial in trials:
        by_variant.setdefault((trial.kind, trial.avoidance), []).append(done[trial])
    samples = {f'{kind}, {how}': _summary(found) for (kind, how), found in by_variant.items()}
    on = [found for (_, how), results in by_variant.items() if how == 'on' for found in results]
    counts = ('penetrations', 'worst_penetration_mm', *RESULTS)
    header = ('motion', 'avoidance', 'motions', 'penetrations', 'deepest [mm]', *RESULTS)
    rows = [
        (kind, how, *(str(samples[f'{kind}, {how}'][key]) for key in ('motions', *counts)))
        for kind, how in by_variant
    ]
    timed = ('commands', 'commands_20', 'ms_median', 'ms_p99', 'ms_median_20', 'ms_p99_20')
    times = [
        (kind, how, *(_cell(samples[f'{kind}, {how}'][key]) for key in timed))
        for kind, how in by_variant
    ]
    title = f'{robot}: {goals} goals or motions of each kind, {OBSTACLES} obstacles, a table'
    tables = (
        Table(title, header, tuple(rows), _explained()),
        Table(
            'CPU time for one command',
            (
                *('motion', 'avoidance', 'commands', f'with {MANY} pairs'),
                *(
                    'median [ms]',
                    'p99 [ms]',
                    f'median, {MANY} pairs [ms]',
                    f'p99, {MANY} pairs [ms]',
                ),
            ),
            tuple(times),
            f'Of the safety filter; of mink: of its solve_ik. With {MANY} pairs: commands for '
            f'which at least {MANY} pairs of parts limited the QP.',
        ),
    )
    return Result(_summary(on), tables, samples)


def _explained() -> str:
    return (
        'A penetration is a motion with a contact deeper than 1 mm, as MuJoCo finds it. Refused '
        'goals and stuck motions have the code of a refusal or of the status that stopped the '
        'arm. Slow: still moving when the goal was too old. Unnamed: the tool did not move by '
        f'1 mm for {UNMOVED_FOR:g} s, and no status said so. Completed: a motion without a goal '
        f'that was not stopped for {DURATION:g} s; crowded: such motions by random joint '
        f'velocities among {CROWD} small obstacles. Off: with the other limits of the filter. '
        'mink: its limits of collision, position and velocity instead of the filter; it refuses '
        'no goal and has no status, so stuck only means that it made no progress for 2 s.'
    )


def _summary(results: Sequence[SceneResult]) -> dict[str, Any]:
    """Return the figures of all motions in some scenes."""
    outcomes = [one for result in results for one in result.outcomes]
    counts = Counter(one.result for one in outcomes)
    reasons = Counter(f'{one.result}: {one.reason}' for one in outcomes if one.reason)
    hits = [one for one in outcomes if one.depth > TOUCH]
    times = 1e3 * np.concatenate([np.empty(0), *(one.times for one in results)])
    pairs = np.concatenate([np.empty(0, np.int_), *(one.pairs for one in results)])
    many = times[pairs >= MANY]
    return {
        'motions': len(outcomes),
        'penetrations': len(hits),
        'worst_penetration_mm': round(1e3 * max((one.depth for one in outcomes), default=0.0), 2),
        **{key: counts[key] for key in RESULTS},
        'commands': len(times),
        'commands_20': len(many),
        'ms_median': _percentile(times, 50),
        'ms_p99': _percentile(times, 99),
        'ms_median_20': _percentile(many, 50),
        'ms_p99_20': _percentile(many, 99),
        'reasons': dict(sorted(reasons.items())),
        'touched': dict(Counter(one.touched for one in hits).most_common(10)),
    }


def _percentile(times: NDArray[np.float64], share: float) -> float | None:
    return round(float(np.percentile(times, share)), 3) if len(times) else None


def _cell(value: float | None) -> str:
    return '' if value is None else str(value)
