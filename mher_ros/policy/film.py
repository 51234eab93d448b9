"""A policy at work, as a film or a picture."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from mher_ros.files import write_atomically
from mher_ros.options import OptionError
from mher_ros.policy.evaluation import EVALUATION_STREAM, make_task
from mher_ros.policy.run import OnnxPolicy
from mher_ros.tasks.rollouts import episode_seed
import numpy as np
from numpy.typing import NDArray

__all__ = ['film_policy']

MOST_GOALS = 20
FORMATS = ('.gif', '.mp4', '.png')
SECONDS_PER_GOAL = 2.0
"""Length of the film of one goal; the arm is there long before the episode ends."""
MOST_FRAMES_PER_SECOND = 25.0


def film_policy(policy: OnnxPolicy, path: Path, goals: int = 3, seed: int = 0) -> Path:
    """
    Film the policy on a few random goals.

    A .gif or .mp4 shows the motion at its own speed; a .png shows the arm at the end of each
    goal, side by side.
    """
    if path.suffix.lower() not in FORMATS:
        raise OptionError(f'a film is a file {" or ".join(FORMATS)}, got {path.name!r}')
    if path.suffix.lower() == '.mp4' and importlib.util.find_spec('imageio_ffmpeg') is None:
        raise OptionError(
            'an .mp4 film takes the package imageio-ffmpeg, which is not installed; '
            'a .gif does without'
        )
    if goals > MOST_GOALS:
        raise OptionError(f'a film shows at most {MOST_GOALS} goals, got {goals}')
    if not path.parent.is_dir():
        raise OptionError(f'there is no folder {path.parent} to put {path.name} in')
    period = policy.interface.control_period
    every = max(1, round(1.0 / (MOST_FRAMES_PER_SECOND * period)))
    films = _frames(policy, goals, seed, every)
    try:
        write_atomically(path, _encoded(films, path.suffix.lower(), every * period))
    except OSError as error:
        raise OptionError(f'cannot write {path}: {error.strerror or error}') from error
    return path


def _frames(
    policy: OnnxPolicy, goals: int, seed: int, every: int
) -> list[list[NDArray[np.uint8]]]:
    task = make_task(policy, render_mode='rgb_array')
    interface = policy.interface
    steps = min(interface.episode_steps, int(SECONDS_PER_GOAL / interface.control_period))
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


def _encoded(films: list[list[NDArray[np.uint8]]], suffix: str, seconds: float) -> bytes:
    """Return the file; ``seconds`` lie between two frames."""
    import imageio.v3 as iio

    frames = np.stack([frame for film in films for frame in film])
    how: dict[str, Any] = {'fps': 1.0 / seconds}
    if suffix == '.png':
        frames, how = np.concatenate([film[-1] for film in films], axis=1), {}
    elif suffix == '.gif':
        frames, how = frames[:, ::2, ::2], {'duration': 1000.0 * seconds, 'loop': 0}
    encoded: bytes = iio.imwrite('<bytes>', frames, extension=suffix, **how)
    return encoded
