"""The demonstration: learn to reach around a wall, deploy the policy, compare, draw."""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import csv
import os
from pathlib import Path
import shutil
import sys

from mher_ros.bench.skill_scenes import draw_goals, is_blocked
from mher_ros.demo_pictures import draw_curve_and_paths, film_motions
from mher_ros.experiments.tables import markdown, Table
from mher_ros.files import POLICY, PROGRESS
from mher_ros.interface import Vector
from mher_ros.learning.config import make_config
from mher_ros.options import OptionError, os_errors_as_option_errors
from mher_ros.ros.bringup.node_process import node_process
from mher_ros.ros.bringup.processes import run_bringup
from mher_ros.ros.deploy.goal_trials import GoalTrial, run_goal_trials
from mher_ros.simulation.reach import Reach
from mher_ros.tasks import make
from mher_ros.tasks.rendering import RenderingError
import numpy as np

MARK = '.mher_demo'
"""Empty file that marks the folder of a demonstration, which the next one may remove."""
ROBOT = 'fetch_wall'
STEPS = 4000  # environment steps of training
TESTED = 40  # goals of an evaluation
EPISODES = 30  # between two evaluations, which take longer than these
BEHIND, OTHERS = 10, 10  # numbers of goals of the deployed arm
WANTED = 0.9  # share of the goals that the policy should reach
LINE = 'straight_line'


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
        f'1/3  A simulated Fetch arm learns to reach over a wall with MHER (seed {seed}).\n'
        '     Actions move its seven joints. The arm and the learner are two ROS nodes, which\n'
        f'     communicate by topics alone. They stop after {STEPS} steps; the policy with the\n'
        f'     best evaluation, on {TESTED} new goals, is kept.',
        flush=True,
    )
    values = {
        'robot': ROBOT,
        'seed': seed,
        'steps': STEPS,
        'until': 0.0,  # all steps: success at two evaluations of few goals may be luck
        'out': str(folder),
        'set': f'schedule.evaluation_goals={TESTED} schedule.episodes_per_epoch={EPISODES}',
    }
    code = run_bringup('train_sim', values)
    if code != 0 or not (folder / POLICY).exists():
        print('training has written no policy')
        return code or 1
    goals = BEHIND + OTHERS
    print(
        '2/3  The exported policy.onnx moves a simulated Fetch in real time. Beside it, another\n'
        '     one moves straight to the same goals, through the same safety filter.\n'
        f'     Each is sent {goals} goals, as RViz would send them, {BEHIND} of them behind the '
        'wall.',
        flush=True,
    )
    task = _task()
    behind, others = draw_goals(task, seed, BEHIND, OTHERS)
    trials = _move(folder / POLICY, np.concatenate((behind, others)), task)
    print('3/3  Drawing the learning curve, the paths of the tools, and a film.', flush=True)
    rows = list(csv.DictReader((folder / PROGRESS).read_text().splitlines()))
    written = [folder / POLICY, folder / PROGRESS, folder / 'demo.png']
    draw_curve_and_paths(folder / 'demo.png', rows, trials, task.robot)
    try:
        film_motions(folder / 'demo.gif', trials, task)
        written.append(folder / 'demo.gif')
    except RenderingError as error:
        print(f'     No film of the arms: {error}')
    steps = int(rows[-1]['env_steps'])
    robot_time = steps * task.interface.control_period
    print(f'\nlearnt in {steps} steps, {robot_time:.0f} s of robot time\n')
    print(markdown(_table(trials, task)))
    print('\nwritten:', *(f'  {os.path.relpath(path)}' for path in written), sep='\n')
    where = os.path.relpath(folder / POLICY)
    print(f'\nnext: mher up deploy_sim robot:={ROBOT} policy:={where}')
    if sum(_reached(trial, task) for trial in trials['policy']) < WANTED * goals:
        print(
            f'the policy reaches fewer than {100.0 * WANTED:.0f} % of its goals: it should '
            'reach more'
        )
        return 1
    return 0


def _task() -> Reach:
    """Return the task that is trained; its goals are those of the deployed arms."""
    task = make('reach', make_config('reach', changes={'task.robot': ROBOT}).task)
    assert isinstance(task, Reach)
    return task


def _move(policy: Path, goals: Vector, task: Reach) -> dict[str, list[GoalTrial]]:
    """Send goals (g, 3) [m] to two arms at once, with the policy and straight, each from home."""

    def run(controller: str) -> list[GoalTrial]:
        # The page shows the nodes without a namespace.
        namespace = '' if controller == 'policy' else f'/{controller}'
        return run_goal_trials(
            ROBOT,
            policy,
            goals,
            task.interface.success_threshold,
            controller=controller,
            from_home=True,
            namespace=namespace,
        )

    names = ('policy', LINE)
    with ThreadPoolExecutor(len(names)) as threads:
        return dict(zip(names, threads.map(run, names), strict=True))


def _reached(trial: GoalTrial, task: Reach) -> bool:
    """Return whether the tool is at its goal, and on the same side of the wall."""
    is_near = trial.error <= task.interface.success_threshold
    return is_near and not is_blocked(task.arm, trial.tool_path[-1], trial.goal)


def _table(trials: dict[str, list[GoalTrial]], task: Reach) -> Table:
    """Return what each controller reached and touched; goals behind the wall come first."""
    rows = []
    for name, found in trials.items():
        reached = [_reached(trial, task) for trial in found]
        errors = [
            1e3 * trial.error for trial, is_there in zip(found, reached, strict=True) if is_there
        ]
        rows.append(
            (
                name.replace('_', ' '),
                f'{sum(reached[:BEHIND])} of {BEHIND}',
                f'{sum(reached[BEHIND:])} of {len(found) - BEHIND}',
                str(sum(not trial.accepted for trial in found)),
                str(sum(trial.contacts or 0 for trial in found)),
                f'{np.median(errors):.1f} mm' if errors else '',
            )
        )
    header = ('controller', 'behind the wall', 'others', 'refused', 'contacts', 'median error')
    return Table('', header, tuple(rows))


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
