"""Runs in this process, and what they leave in their folders."""

import csv

from mher_ros.learning.checkpoint import load_checkpoint
from mher_ros.learning.run import start_training
from mher_ros.learning.train import CHECKPOINT
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
import torch


def run(folder, config, export=False, **options):
    return start_training(folder, config, export=export, **options)


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


def tensorboard_errors(folder):
    """Return the final errors that TensorBoard shows, by environment steps."""
    events = EventAccumulator(str(folder / 'tensorboard'))
    events.Reload()
    return {event.step: event.value for event in events.Scalars('final_error')}


def stop_after(cycles):
    """Return a function that wants to stop when asked for the ``cycles + 1``-th time."""
    asked = iter(range(10_000))
    return lambda: next(asked) >= cycles
