"""Runs in this process, and what they leave in their folders."""

import csv

from mher_ros.files import CHECKPOINT, EPISODES
from mher_ros.learning.run.checkpoint import load_checkpoint
from mher_ros.learning.run.progress import Progress
from mher_ros.learning.run.session import start_training
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
import torch


def run(folder, config, export=False, displays=(), asked_to_stop=lambda: False, **options):
    if isinstance(asked_to_stop, StopAfter):
        displays = [*displays, asked_to_stop]
    return start_training(
        folder, config, displays, export=export, asked_to_stop=asked_to_stop, **options
    )


def rows(folder):
    """Return progress.csv without the one column that no two runs share."""
    with (folder / 'progress.csv').open() as file:
        return [
            {key: value for key, value in row.items() if key != 'wall_seconds'}
            for row in csv.DictReader(file)
        ]


def same_policy(one, two):
    """Compare every network in both checkpoints, bit by bit."""
    first, second = (
        load_checkpoint(folder / CHECKPOINT)['agent']['modules'] for folder in (one, two)
    )
    return all(
        torch.equal(tensor, second[name][key])
        for name, module in first.items()
        for key, tensor in module.items()
    )


def same_episodes(one, two):
    """Compare the episodes that both kept."""
    first, second = ((folder / EPISODES).read_bytes() for folder in (one, two))
    return first == second


def tensorboard_errors(folder):
    """Return the final errors that TensorBoard shows, by environment steps."""
    events = EventAccumulator(str(folder / 'tensorboard'))
    events.Reload()
    return {event.step: event.value for event in events.Scalars('final_error')}


class StopAfter(Progress):
    """Wants to stop as soon as an episode begins that follows so many."""

    def __init__(self, cycles):
        self._left = cycles

    def activity(self, text, env_steps, updates):
        self._left -= text in ('warm-up', 'collecting')

    def __call__(self):
        return self._left < 0


def stop_after(cycles):
    """Return what has ``run`` stop after so many episodes and what follows them."""
    return StopAfter(cycles)


class StopAtCall:
    """Wants to stop from the n-th time on that it is asked."""

    def __init__(self, number):
        self._left = number

    def __call__(self):
        self._left -= 1
        return self._left <= 0
