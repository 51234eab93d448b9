"""The demonstration: learn to reach, deploy what was learnt, draw what happened."""

from __future__ import annotations

import contextlib
import csv
import os
from pathlib import Path
import shutil
import sys
from typing import Any

from mher_ros.learning.run_folder import POLICY, PROGRESS
from mher_ros.options import OptionError
from mher_ros.policy import load
from mher_ros.policy.run import OnnxPolicy
from mher_ros.ros.bringup.processes import run_system
from mher_ros.ros.deployed_arm import deployed_workspace, reach_goals, Trial
from mher_ros.ros.node_process import node_process
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.tasks import task_class
from mher_ros.tasks.rendering import RenderingError, SceneRenderer
import mujoco
import numpy as np

__all__ = ['run_demo']

MARK = '.mher_demo'
"""Empty file that marks the folder as a demonstration's own, which the next one may remove."""
ROBOT = 'fetch'
TESTED = 40
"""Goals in an evaluation while it learns."""
GOALS = 20
"""Goals that the deployed arm is sent to."""


def run_demo(folder: Path, seed: int = 0, view: bool = False) -> int:
    """
    Tell the story in ``folder``; returns 0 if the deployed policy reaches its goals.

    With ``view`` a page in the browser follows it. Who started it from a terminal can then lead
    the arm from there.
    """
    _clear(folder)
    if not view:
        return _tell(folder, seed)
    # Its topics are those of training, too, so that one page sees both.
    with node_process('view_node', {'robot': ROBOT}) as page:
        code = _tell(folder, seed)
        if page.poll() is not None:
            print(f'\nthe page was not there to the end: view_node ended with {page.returncode}')
        elif code == 0 and sys.stdin.isatty():
            _hand_over(folder / POLICY)
    return code


def _tell(folder: Path, seed: int) -> int:
    print(
        f'1/3  A simulated Fetch arm learns to reach, from nothing, with MHER (seed {seed}).\n'
        '     The arm and the learner are two ROS nodes, which know each other by topics alone.\n'
        f'     They stop once 95 % of {TESTED} new goals are reached within 2 cm, twice running.',
        flush=True,
    )
    values = {
        'task': 'fetch_reach',
        'preset': 'precise',
        'seed': seed,
        'out': str(folder),
        'set': f'schedule.evaluation_goals={TESTED}',
    }
    code = run_system('train_sim', values)
    if code != 0 or not (folder / POLICY).exists():
        print('there is no policy to show')
        return code or 1
    print(
        '2/3  The exported policy.onnx leads another Fetch: one whose joints are driven as the\n'
        f'     real ones are. It is sent to {GOALS} goals, as RViz would send it.',
        flush=True,
    )
    policy = load(folder / POLICY)
    space = deployed_workspace(policy.interface, ROBOT)
    goals = np.random.default_rng(seed).uniform(space.low, space.high, (GOALS, 3))
    threshold = task_class(policy.interface.task).default_options.threshold
    trials = reach_goals(ROBOT, folder / POLICY, goals, threshold)
    print('3/3  Drawing the learning curve, the ways of the tool, and the arm.')
    rows = _rows(folder / PROGRESS)
    written = [folder / POLICY, folder / PROGRESS, folder / 'demo.png']
    _draw(folder / 'demo.png', rows, trials)
    try:
        written.append(_draw_arm(folder / 'arm.png', max(trials, key=_height), policy))
    except RenderingError as error:
        print(f'     No picture of the arm: {error}')
    print('\n'.join(_table(trials)))
    steps = int(rows[-1]['env_steps'])
    robot_time = steps * policy.interface.control_period
    reached = sum(trial.error <= threshold for trial in trials)
    middle = float(np.median([trial.error for trial in trials]))
    print(f'\nlearnt in   {steps} steps, {robot_time:.0f} s of robot time')
    print(
        f'reached     {reached} of {GOALS} goals within {1000.0 * threshold:.0f} mm, '
        f'median error {1000.0 * middle:.1f} mm'
    )
    print('\nwritten:', *(f'  {os.path.relpath(path)}' for path in written), sep='\n')
    print(f'\nnext: mher up deploy_sim policy:={os.path.relpath(folder / POLICY)}')
    if reached < 0.9 * GOALS:
        print('the policy reaches fewer than 90 % of its goals: this is not as it should be')
        return 1
    return 0


def _hand_over(policy: Path) -> None:
    """Let people lead the arm in the browser until they press Enter."""
    print('\nThe arm is yours: drag the goal on the page. Enter ends it.', flush=True)
    with (
        node_process('sim_node', {'robot': ROBOT}),
        node_process('policy_node', {'robot': ROBOT, 'policy': str(policy)}),
        contextlib.suppress(EOFError, KeyboardInterrupt),
    ):
        input()


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


def _table(trials: list[Trial]) -> list[str]:
    lines = ['', 'goal    x [m]   y [m]   z [m]   time [s]   error [mm]   motion [mm]']
    for number, trial in enumerate(trials, 1):
        x, y, z = trial.goal
        lines.append(
            f'{number:4d}  {x:7.3f} {y:7.3f} {z:7.3f} {trial.seconds:10.2f} '
            f'{1000.0 * trial.error:12.1f} {1000.0 * trial.motion:13.2f}'
        )
    return lines


def _draw(path: Path, rows: list[dict[str, str]], trials: list[Trial]) -> None:
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(11, 4.5), layout='constrained')
    curve = figure.add_subplot(1, 2, 1)
    steps = [float(row['env_steps']) for row in rows]
    curve.plot(steps, [100.0 * float(row['success_rate']) for row in rows], 'o-')
    curve.set(xlabel='environment steps, warm-up counted', ylabel='goals reached [%]')
    curve.set(ylim=(0, 103), xlim=(0, None), title='Learning')
    curve.grid(alpha=0.3)
    space: Any = figure.add_subplot(1, 2, 2, projection='3d')
    for trial in trials:
        (line,) = space.plot(*trial.way.T, lw=1.5)
        space.scatter(*trial.goal, color=line.get_color(), marker='*', s=70)
    space.set(
        xlabel='x [m]', ylabel='y [m]', zlabel='z [m]', title='Ways of the tool to its goals'
    )
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _height(trial: Trial) -> float:
    """Return how high a goal is: the table hides little of a high one."""
    return float(trial.goal[2])


def _draw_arm(path: Path, trial: Trial, policy: OnnxPolicy) -> Path:
    """Draw the arm as it was at the end of a trial."""
    import imageio.v3 as iio

    plant = JointPlant(policy.interface.task)
    renderer = SceneRenderer(plant.model, plant.camera)
    plant.data.qpos[:] = [trial.joints[name] for name in plant.command_names]
    mujoco.mj_forward(plant.model, plant.data)
    picture = renderer.draw(plant.data, trial.goal, policy.interface.success_threshold)
    renderer.close()
    iio.imwrite(path, picture)
    return path
