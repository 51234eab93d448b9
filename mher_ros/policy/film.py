"""A policy at work, as a film or a picture."""

from __future__ import annotations

from pathlib import Path

from mher_ros.options import OptionError
from mher_ros.policy.evaluation import EVALUATION_STREAM, make_task
from mher_ros.policy.run import OnnxPolicy
from mher_ros.tasks.rollouts import episode_seed
import numpy as np
from numpy.typing import NDArray

__all__ = ['film_policy']

FORMATS = ('.gif', '.mp4', '.png')
SECONDS_PER_GOAL = 2.0
"""Length of the film of one goal; the arm is there long before the episode ends."""
FRAMES_PER_SECOND = 25.0


def film_policy(policy: OnnxPolicy, path: Path, goals: int = 3, seed: int = 0) -> Path:
    """
    Film the policy on a few random goals.

    A .gif or .mp4 shows the motion; a .png shows the arm at the end of each goal, side by side.
    """
    if path.suffix not in FORMATS:
        raise OptionError(f'the film is a {", ".join(FORMATS)} file, got {path.name!r}')
    if not path.parent.is_dir():
        raise OptionError(f'there is no folder {path.parent} to put {path.name} in')
    films = _frames(policy, goals, seed)
    try:
        _write(path, films)
    except OSError as error:
        raise OptionError(f'cannot write {path}: {error.strerror or error}') from error
    return path


def _frames(policy: OnnxPolicy, goals: int, seed: int) -> list[list[NDArray[np.uint8]]]:
    task = make_task(policy, render_mode='rgb_array')
    interface = policy.interface
    steps = min(interface.episode_steps, int(SECONDS_PER_GOAL / interface.control_period))
    every = max(1, round(1.0 / (FRAMES_PER_SECOND * interface.control_period)))
    films = []
    for index in range(goals):
        observation, _ = task.reset(seed=episode_seed(seed, EVALUATION_STREAM, index))
        film = [task.render()]
        for step in range(max(1, steps)):
            action = policy(observation['observation'], observation['desired_goal'])
            observation, *_ = task.step(action)
            if (step + 1) % every == 0 or step + 1 == steps:
                film.append(task.render())
        films.append(film)
    task.close()
    return films


def _write(path: Path, films: list[list[NDArray[np.uint8]]]) -> None:
    import imageio.v3 as iio

    if path.suffix == '.png':
        iio.imwrite(path, np.concatenate([film[-1] for film in films], axis=1))
        return
    frames = np.stack([frame for film in films for frame in film])
    if path.suffix == '.gif':
        iio.imwrite(path, frames[:, ::2, ::2], duration=1000.0 / FRAMES_PER_SECOND, loop=0)
    else:
        iio.imwrite(path, frames, fps=FRAMES_PER_SECOND)
