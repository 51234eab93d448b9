"""Folders of runs that nobody had to train: choices, a curve, and episodes of random actions."""

import json

from mher_ros.files import EPISODES
from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.learning.run.episodes import EpisodeRecorder
from mher_ros.tasks import make
import numpy as np
from tiny_runs import tiny_config

STEPS = 5
"""Steps of each episode."""
HEAD = 'env_steps,success_rate,final_error,wall_seconds\n'


class RecordedRun:
    """A run's folder, to which more can be added as training does."""

    def __init__(self, folder, task='point2d_large', **changes):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._config = tiny_config(task, **changes)
        self._task = make(task, self._config.task)
        self._recorder = EpisodeRecorder(self._task.interface, self._task.joint_names)
        self._count = 0
        (folder / 'config.json').write_text(json.dumps(self._config.to_dict()))

    @property
    def interface(self):
        return self._task.interface

    def add_episodes(self, count, virtual=3):
        """Do more episodes, each with that many virtual goals, and write them all."""
        for _ in range(count):
            episode, joints = self._episode(self._count)
            goals = np.full((virtual, episode.goal.size), 0.25, np.float32) if virtual else None
            self._recorder.add(self._count, self._count * STEPS, episode, joints)
            self._recorder.record_goal_offsets(goals)
            self._count += 1
        self._recorder.save(self.folder / EPISODES)

    def write_curve(self, *rows):
        """Write rows of steps, success rate and final error."""
        lines = [f'{steps},{success},{error},1.0\n' for steps, success, error in rows]
        (self.folder / 'progress.csv').write_text(HEAD + ''.join(lines))

    def _episode(self, seed):
        task, rng = self._task, np.random.default_rng(seed)
        start, _ = task.reset(seed=seed)
        observations, joints, actions = [start['observation']], [task.joint_state()[0]], []
        for _ in range(STEPS):
            actions.append(rng.uniform(-1.0, 1.0, len(task.interface.action)).astype(np.float32))
            observations.append(task.step(actions[-1])[0]['observation'])
            joints.append(task.joint_state()[0])
        episode = Episode(np.array(observations), np.array(actions), start['desired_goal'])
        return episode, np.array(joints)
