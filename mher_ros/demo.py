"""The demonstration: learn to reach, export, try the file, draw what happened."""

from __future__ import annotations

import csv
import os
from pathlib import Path
import shutil
from typing import Any

from mher_ros.learning.run import POLICY, PROGRESS
from mher_ros.options import OptionError
from mher_ros.policy import load
from mher_ros.policy.evaluation import (
    evaluate_policy,
    evaluation_lines,
    EVALUATION_STREAM,
    make_task,
)
from mher_ros.policy.film import film_policy
from mher_ros.policy.run import OnnxPolicy
from mher_ros.ros.bringup.processes import run_system
from mher_ros.tasks.rendering import RenderingError
from mher_ros.tasks.rollouts import episode_seed
import numpy as np

__all__ = ['run_demo']

MARK = '.mher_demo'
"""Empty file that marks the folder as a demonstration's own, which the next one may remove."""
PATHS = 12
"""Goals whose paths are drawn."""
PATH_STEPS = 25
"""Steps of a path that are drawn, one second: the arm is at its goal by then."""


def run_demo(folder: Path, seed: int = 0) -> int:
    """Tell the story in ``folder``; returns 0 if the exported policy reaches its goals."""
    _clear(folder)
    print(
        f'1/4  A simulated Fetch arm learns to reach, from nothing, with MHER (seed {seed}).\n'
        '     The arm and the learner are two ROS nodes, which know each other by topics alone.\n'
        '     They stop once 95 of 100 new goals are reached twice running.',
        flush=True,
    )
    values = {'task': 'fetch_reach', 'seed': seed, 'out': str(folder)}
    code = run_system('train_sim', values)
    if code != 0 or not (folder / POLICY).exists():
        print('there is no policy to show')
        return code or 1
    rows = _rows(folder / PROGRESS)
    print('2/4  The exported policy.onnx, loaded as an arm would, tries 100 goals it never saw.')
    policy = load(folder / POLICY)
    result = evaluate_policy(policy, episodes=100, seed=seed)
    print('3/4  Drawing the learning curve and the ways to some goals.')
    written = [folder / POLICY, folder / PROGRESS, folder / 'demo.png']
    _draw(folder / 'demo.png', rows, policy, seed)
    print('4/4  Filming the arm.')
    try:
        written.append(film_policy(policy, folder / 'reach.gif', goals=3, seed=seed))
    except RenderingError as error:
        print(f'     No film: {error}')
    print()
    steps = int(rows[-1]['env_steps'])
    robot_time = steps * policy.interface.control_period
    print(f'{"learnt in":<28} {steps} steps, {robot_time:.0f} s of robot time')
    print('\n'.join(evaluation_lines(result)))
    print('\nwritten:', *(f'  {os.path.relpath(path)}' for path in written), sep='\n')
    if result['success_rate'] < 0.9:
        print('the policy reaches fewer than 90 of 100 goals: this is not as it should be')
        return 1
    return 0


def _clear(folder: Path) -> None:
    """Make the folder empty if it is missing or an earlier demonstration, and only then."""
    try:
        if (folder / MARK).exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OptionError(f'{folder} holds something else than a demonstration; name another')
        (folder / MARK).touch()
    except OSError as error:
        raise OptionError(f'cannot write into the folder {folder}: {error.strerror}') from error


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def _draw(path: Path, rows: list[dict[str, str]], policy: OnnxPolicy, seed: int) -> None:
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(11, 4.5), layout='constrained')
    curve = figure.add_subplot(1, 2, 1)
    steps = [float(row['env_steps']) for row in rows]
    curve.plot(steps, [100.0 * float(row['success_rate']) for row in rows], 'o-')
    curve.set(xlabel='environment steps, warm-up counted', ylabel='goals reached of 100')
    curve.set(ylim=(0, 103), xlim=(0, None), title='Learning')
    curve.grid(alpha=0.3)
    space: Any = figure.add_subplot(1, 2, 2, projection='3d')
    for way, goal in _ways(policy, seed):
        (line,) = space.plot(*way.T, lw=1.5)
        space.scatter(*goal, color=line.get_color(), marker='*', s=70)
    space.set(
        xlabel='x [m]', ylabel='y [m]', zlabel='z [m]', title='Ways of the tool to its goals'
    )
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _ways(policy: OnnxPolicy, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    task = make_task(policy)
    ways = []
    for index in range(PATHS):
        observation, _ = task.reset(seed=episode_seed(seed, EVALUATION_STREAM, index))
        way = [observation['achieved_goal']]
        for _ in range(PATH_STEPS):
            action = policy(observation['observation'], observation['desired_goal'])
            observation, *_ = task.step(action)
            way.append(observation['achieved_goal'])
        ways.append((np.array(way), observation['desired_goal']))
    return ways
