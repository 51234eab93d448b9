"""The pictures of the demonstration: learning curve, paths of the tools, and a film."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from mher_ros.robots.robot import Robot
from mher_ros.ros.deploy.goal_trials import GoalTrial
from mher_ros.simulation.reach import Reach
from mher_ros.tasks.mujoco_task import joint_name
from mher_ros.tasks.rendering import SceneRenderer
import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Trials = Mapping[str, Sequence[GoalTrial]]
"""By controller, with the same goals."""
FILMED = 4  # goals of the film: the first ones that no controller refused
RATE = 6.0  # pictures per second
REST = 1.0  # time for which the end of a motion is shown [s]
MOVED = 0.005  # displacement of the tool after which a motion is shown [m]
SIZE = (320, 240)  # of one arm [pixels]
COLOURS = 64
CAMERA = {'lookat': (1.3, 0.75, 0.62), 'distance': 1.15, 'azimuth': 115.0, 'elevation': -14.0}


def draw_curve_and_paths(
    path: Path, rows: Sequence[Mapping[str, str]], trials: Trials, robot: Robot
) -> None:
    """Draw success over the rows of a run's progress, and the paths of the tools from the side."""
    figure = Figure(figsize=(13, 4), layout='constrained')
    curve, *views = figure.subplots(1, 1 + len(trials))
    steps = [float(row['env_steps']) for row in rows]
    curve.plot(steps, [100.0 * float(row['success_rate']) for row in rows], 'o-')
    curve.set(xlabel='environment steps, warm-up counted', ylabel='goals reached [%]')
    curve.set(ylim=(0, 103), xlim=(0, None), title='Learning')
    curve.grid(alpha=0.3)
    for view, (name, found) in zip(views, trials.items(), strict=True):
        for obstacle in robot.scene:
            (x, _, z), (width, _, height) = obstacle.position, obstacle.size
            low = (x - width / 2.0, z - height / 2.0)
            view.add_patch(Rectangle(low, width, height, color='0.6'))
        for trial in found:
            (line,) = view.plot(trial.tool_path[:, 0], trial.tool_path[:, 2], lw=1.2)
            view.plot(trial.goal[0], trial.goal[2], '*', color=line.get_color(), ms=9)
        view.set(xlabel='x [m]', ylabel='z [m]', title=f'Tool paths, {name.replace("_", " ")}')
        view.set_aspect('equal')
        view.sharex(views[0])
        view.sharey(views[0])
        assert robot.box is not None
        view.set_ylim(robot.box.low[2] - 0.02, robot.box.high[2] + 0.02)
    figure.savefig(path, dpi=110)


def film_motions(path: Path, trials: Trials, task: Reach) -> None:
    """Write a film of some motions, with one arm per controller, beside each other."""
    model, data, _ = task.scene()
    joints = {joint_name(model.joint(index).name): index for index in range(model.njnt)}
    renderer, radius = SceneRenderer(model, CAMERA), task.interface.success_threshold

    def picture(name: str, trial: GoalTrial, moment: float) -> NDArray[np.uint8]:
        row = min(int(np.searchsorted(trial.times, moment)), len(trial.times) - 1)
        for joint, position in trial.joints[row].items():
            if joint in joints:
                data.qpos[model.jnt_qposadr[joints[joint]]] = position
        mujoco.mj_forward(model, data)
        drawn = Image.fromarray(renderer.render(data, trial.goal, radius))
        image = drawn.resize(SIZE, Image.Resampling.LANCZOS)
        text = f'{name.replace("_", " ")}, {100.0 * _distance(trial, row):.0f} cm from the goal'
        ImageDraw.Draw(image).text((6, 4), text, fill=(255, 255, 255))
        return np.asarray(image)

    pictures, waits = [], []
    pairs = zip(*trials.values(), strict=True)
    for motions in [found for found in pairs if all(one.accepted for one in found)][:FILMED]:
        begins = [_begin(trial) for trial in motions]
        length = max(_end(trial) - begin for trial, begin in zip(motions, begins, strict=True))
        count = int(np.ceil(RATE * length)) + 1
        for index in range(count):
            both = zip(trials, motions, begins, strict=True)
            shown = [picture(name, one, begin + index / RATE) for name, one, begin in both]
            pictures.append(Image.fromarray(np.hstack(shown)))
            waits.append(round(1e3 * (REST if index == count - 1 else 1.0 / RATE)))
    renderer.close()
    # One palette, so that what stands still is not stored again.
    palette = pictures[0].quantize(COLOURS)
    first, *others = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    first.save(path, save_all=True, append_images=others, duration=waits, loop=0, optimize=True)


def _distance(trial: GoalTrial, row: int) -> float:
    return float(np.linalg.norm(trial.tool_path[row] - trial.goal))


def _begin(trial: GoalTrial) -> float:
    """Return the time at which the tool begins to move [s]."""
    distances = np.linalg.norm(trial.tool_path - trial.tool_path[0], axis=1)
    return float(trial.times[int(np.argmax(distances > MOVED))])


def _end(trial: GoalTrial) -> float:
    """Return the time at which the tool comes to rest [s]."""
    distances = np.linalg.norm(trial.tool_path - trial.tool_path[-1], axis=1)
    return (
        float(trial.times[int(np.flatnonzero(distances > MOVED)[-1])])
        if distances.max() > MOVED
        else 0.0
    )
