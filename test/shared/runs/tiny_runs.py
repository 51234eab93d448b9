"""Runs of seconds, and what they leave in their folders."""

import csv

TINY = {
    'agent.hidden': '16,16',
    'model.hidden': '16,16',
    'model.warmup_fits': '5',
    'schedule.episode_steps': '20',
    'schedule.evaluation_goals': '4',
    'schedule.steps': '160',
    'schedule.updates_per_episode': '5',
    'schedule.until': '0',
    'schedule.warmup_episodes': '2',
    'schedule.warmup_updates': '0',
    'task.episode_steps': '20',
}
"""A run of seconds: 8 episodes of 20 steps, and after 4, 6 and 8 of them 4 goals of 20 steps."""


def tiny_config(task='point2d_large', seed=0, **changes):
    from mher_ros.learning.config import make_config

    return make_config(task, seed=seed, changes={**TINY, **changes})


class Run:
    """What a run has left in its folder."""

    def __init__(self, folder):
        self.folder = folder

    def rows(self):
        """Return progress.csv without the one column that no two runs share."""
        with (self.folder / 'progress.csv').open() as file:
            return [
                {key: value for key, value in row.items() if key != 'wall_seconds'}
                for row in csv.DictReader(file)
            ]

    def checkpoint(self):
        from mher_ros.learning.run.checkpoint import load_checkpoint

        return load_checkpoint(self.folder / 'checkpoint')

    def networks(self):
        """Return every number of every network, to the bit."""
        return {
            (name, key): tensor.numpy().tobytes()
            for name, module in self.checkpoint()['agent']['modules'].items()
            for key, tensor in module.items()
        }

    def policy(self):
        return (self.folder / 'policy.onnx').read_bytes()
