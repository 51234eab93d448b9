"""The demonstration: learn to reach, deploy the policy, draw the results."""

import contextlib
import csv
import os
from pathlib import Path
import shutil
import sys
from typing import Any

from matplotlib.figure import Figure
from mher_ros.files import POLICY, PROGRESS
from mher_ros.options import OptionError, os_errors_as_option_errors
from mher_ros.policy import load
from mher_ros.policy.onnx_policy import OnnxPolicy
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import place_workspace
from mher_ros.ros.bringup.node_process import node_process
from mher_ros.ros.bringup.processes import run_bringup
from mher_ros.ros.deploy.goal_trials import GoalTrial, run_goal_trials
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.tasks import task_class
from mher_ros.tasks.rendering import RenderingError, SceneRenderer
import mujoco
import numpy as np

MARK = '.mher_demo'
"""Empty file that marks the folder of a demonstration, which the next one may remove."""
ROBOT = 'fetch'
TESTED = 40  # goals of an evaluation during training
GOALS = 20  # goals of the deployed arm


def run_demo(folder: Path, seed: int = 0, view: bool = False) -> int:
    """Run the demonstration in ``folder``; return 0 if the deployed policy reaches its goals."""
    # With ``view`` a page shows it; in a terminal, people can then send goals from the page.
    _clear(folder)
    if not view:
        return _run(folder, seed)
    # Training uses the same topics, so that one page shows both.
    with node_process('view_node', {'robot': ROBOT}) as page:
        code = _run(folder, seed)
        if page.poll() is not None:
            print(f'\nthe page has ended early: view_node exited with {page.returncode}')
        elif code == 0 and sys.stdin.isatty():
            _hand_over(folder / POLICY)
    return code


def _run(folder: Path, seed: int) -> int:
    print(
        f'1/3  A simulated Fetch arm learns to reach with MHER (seed {seed}).\n'
        '     The arm and the learner are two ROS nodes, which communicate by topics alone.\n'
        f'     They stop when 95 % of {TESTED} new goals are reached within 2 cm, in two\n'
        '     successive evaluations.',
        flush=True,
    )
    values = {
        'task': 'fetch_reach',
        'preset': 'precise',
        'seed': seed,
        'out': str(folder),
        'set': f'schedule.evaluation_goals={TESTED}',
    }
    code = run_bringup('train_sim', values)
    if code != 0 or not (folder / POLICY).exists():
        print('training has written no policy')
        return code or 1
    print(
        '2/3  The exported policy.onnx moves another Fetch, with simulated drives on its joints.\n'
        f'     It is sent {GOALS} goals, as RViz would send them.',
        flush=True,
    )
    policy = load(folder / POLICY)
    space = place_workspace(policy.interface, load_robot(ROBOT))
    goals = np.random.default_rng(seed).uniform(space.low, space.high, (GOALS, 3))
    threshold = task_class(policy.interface.task).default_options.threshold
    trials = run_goal_trials(ROBOT, folder / POLICY, goals, threshold)
    print('3/3  Drawing the learning curve, the paths of the tool, and the arm.')
    rows = list(csv.DictReader((folder / PROGRESS).read_text().splitlines()))
    written = [folder / POLICY, folder / PROGRESS, folder / 'demo.png']
    _draw(folder / 'demo.png', rows, trials)
    try:
        # The table hides the least of the highest goal.
        highest = max(trials, key=lambda trial: float(trial.goal[2]))
        written.append(_draw_arm(folder / 'arm.png', highest, policy))
    except RenderingError as error:
        print(f'     No picture of the arm: {error}')
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
        print('the policy reaches fewer than 90 % of its goals: it should reach more')
        return 1
    return 0


def _hand_over(policy: Path) -> None:
    """Let people send goals from the page until they press Enter."""
    print('\nDrag the goal on the page to move the arm. Enter ends the demonstration.', flush=True)
    with (
        node_process('sim_node', {'robot': ROBOT}),
        node_process('policy_node', {'robot': ROBOT, 'policy': str(policy)}),
        contextlib.suppress(EOFError, KeyboardInterrupt),
    ):
        input()


def _clear(folder: Path) -> None:
    """Make an empty folder; OptionError if it holds anything but a demonstration."""
    with os_errors_as_option_errors(f'cannot write into the folder {folder}'):
        if (folder / MARK).exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OptionError(f'{folder} is not empty and no demonstration: choose another folder')
        (folder / MARK).touch()


def _draw(path: Path, rows: list[dict[str, str]], trials: list[GoalTrial]) -> None:
    figure = Figure(figsize=(11, 4.5), layout='constrained')
    curve = figure.add_subplot(1, 2, 1)
    steps = [float(row['env_steps']) for row in rows]
    curve.plot(steps, [100.0 * float(row['success_rate']) for row in rows], 'o-')
    curve.set(xlabel='environment steps, warm-up counted', ylabel='goals reached [%]')
    curve.set(ylim=(0, 103), xlim=(0, None), title='Learning')
    curve.grid(alpha=0.3)
    space: Any = figure.add_subplot(1, 2, 2, projection='3d')
    for trial in trials:
        (line,) = space.plot(*trial.tool_path.T, lw=1.5)
        space.scatter(*trial.goal, color=line.get_color(), marker='*', s=70)
    space.set(xlabel='x [m]', ylabel='y [m]', zlabel='z [m]', title='Tool paths to goals')
    figure.savefig(path, dpi=110)


def _draw_arm(path: Path, trial: GoalTrial, policy: OnnxPolicy) -> Path:
    """Draw the arm as it was at the end of a trial."""
    import imageio.v3 as iio

    plant = JointPlant(policy.interface.task)
    renderer = SceneRenderer(plant.model, plant.camera)
    plant.data.qpos[:] = [trial.joints[name] for name in plant.command_names]
    mujoco.mj_forward(plant.model, plant.data)
    picture = renderer.render(plant.data, trial.goal, policy.interface.success_threshold)
    renderer.close()
    iio.imwrite(path, picture)
    return path
