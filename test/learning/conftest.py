"""Small pieces that the learner's tests share."""

from mher_ros.interface import Field, TaskInterface
from mher_ros.learning.config import AgentConfig, make_config
from mher_ros.learning.core.networks import InputEncoder
from mher_ros.learning.core.replay_buffer import Episode, EpisodeReplay
from mher_ros.learning.relabel.samplers import BatchSampler
from mher_ros.learning.run.trainer import StopReason
import numpy as np
import pytest
import torch
from training_runs import run

torch.set_num_threads(1)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def interface():
    """Observation (x, y, speed), goal (x, y), action (x, y), threshold 0.5."""
    return TaskInterface(
        task='plane',
        observation=(Field('x', 'm'), Field('y', 'm'), Field('speed', 'm/s')),
        goal=(Field('x', 'm'), Field('y', 'm')),
        action=(Field('dx', 'm'), Field('dy', 'm')),
        action_meaning='displacement',
        frame='world',
        control_period=0.1,
        episode_steps=4,
        goal_low=(-9.0, -9.0),
        goal_high=(9.0, 9.0),
        success_threshold=0.5,
        achieved_index=(0, 1),
    )


@pytest.fixture
def counted_replay():
    """Three episodes of 4, 4 and 2 steps; x counts 100 * episode + step."""
    replay = EpisodeReplay(capacity=40, episode_steps=4, observation=3, action=2, goal=2)
    for number, steps in enumerate((4, 4, 2)):
        x = 100.0 * number + np.arange(steps + 1)
        observations = np.stack((x, -x, np.zeros(steps + 1)), axis=1)
        actions = np.stack((x[:-1], x[:-1]), axis=1).astype(np.float32)
        replay.add(Episode(observations, actions, np.array((1000.0 + number, 0.0))))
    return replay


@pytest.fixture
def batches(counted_replay, interface):
    """Return a function that makes batches of 4 rows from the counted replay."""

    def build(kind=BatchSampler, source=None, probability=0.8, **parts):
        return kind(
            replay=counted_replay,
            encoder=InputEncoder(interface, AgentConfig()),
            interface=interface,
            source=source,
            probability=probability,
            size=4,
            **parts,
        )

    return build


@pytest.fixture(scope='session')
def tiny():
    """Return a function that makes the configuration of a run of seconds."""

    def make(algorithm='mher', seed=0, task='point2d_large', **changes):
        values = {
            'agent.hidden': (32, 32),
            'model.hidden': (32,),
            'model.warmup_fits': 5,
            'schedule.warmup_episodes': 2,
            'schedule.episode_steps': 20,
            'schedule.updates_per_episode': 4,
            'schedule.episodes_per_epoch': 2,
            'schedule.evaluation_goals': 5,
            'schedule.steps': 160,
            'task.episode_steps': 20,
        }
        values.update({key.replace('__', '.'): value for key, value in changes.items()})
        return make_config(task, algorithm, 'paper', seed, values)

    return make


@pytest.fixture(scope='session')
def whole(tiny, tmp_path_factory):
    """Run once without a break: 2 warm-up and 6 training episodes, 3 evaluations."""
    config = tiny(seed=4)
    folder = tmp_path_factory.mktemp('whole') / 'run'
    _, ending = run(folder, config, export=True)
    assert ending is StopReason.STEPS
    return folder, config
