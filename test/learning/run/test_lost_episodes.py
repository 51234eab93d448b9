"""Runs whose arm fails them: whatever happens, it is the same run in the end."""

import csv

from mher_ros.errors import ArmError, EpisodeLostError, StopRequested, TRIES
from mher_ros.files import CHECKPOINT
from mher_ros.learning.run.checkpoint import load_checkpoint
from mher_ros.learning.run.progress import Progress
from mher_ros.learning.run.session import start_training
from mher_ros.learning.run.trainer import StopReason
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluator
import pytest
import torch

WARM_UP, TRAINING, LAST = 7, 65, 160
"""Steps in the middle of a warm-up episode, of a later one, and the last of the run."""


class Arm:
    """
    A real task that raises what it is told to, in place of doing the step of that number.

    A step that is done again has a new number. ``resets`` and ``evaluations`` count likewise.
    """

    def __init__(self, config, steps=None, resets=None, evaluations=None):
        self._task = make(config.task_name, config.task)
        self._evaluator = Evaluator(config.task_name, config.task)
        self.interface, self.joint_names = self._task.interface, self._task.joint_names
        self.joint_state = self._task.joint_state
        self.start_options = self._task.start_options
        self._faults = {'step': steps or {}, 'reset': resets or {}, 'run': evaluations or {}}
        self.done = dict.fromkeys(self._faults, 0)

    def reset(self, **options):
        self._count('reset')
        return self._task.reset(**options)

    def step(self, action):
        self._count('step')
        return self._task.step(action)

    def evaluate(self, policy, seeds):
        self._count('run')
        return self._evaluator.run(policy, seeds)

    def _count(self, what):
        self.done[what] += 1
        fault = self._faults[what].get(self.done[what])
        if fault is not None:
            raise fault


class Notices(Progress):
    def __init__(self):
        self.told, self.warnings = [], []

    def notice(self, text):
        self.told.append(text)

    def warning(self, text):
        self.warnings.append(text)


@pytest.fixture(scope='module')
def whole(tiny, tmp_path_factory):
    """Run once without a fault: 2 warm-up and 6 training episodes of 20 steps, 3 evaluations."""
    config = tiny(seed=4)
    folder = tmp_path_factory.mktemp('whole') / 'run'
    arm = Arm(config)
    assert run(folder, config, arm) is StopReason.STEPS
    assert arm.done == {'step': LAST, 'reset': 8, 'run': 3}
    return folder, config


def run(folder, config, arm=None, displays=(), export=False, **options):
    arm = arm or Arm(config)
    trains_on = (arm, arm.evaluate)
    return start_training(folder, config, displays, arm=trains_on, export=export, **options)[1]


def assert_same_run(one, two):
    tables = []
    for folder in (one, two):
        with (folder / 'progress.csv').open() as file:
            rows = list(csv.DictReader(file))
        tables.append([{k: v for k, v in row.items() if k != 'wall_seconds'} for row in rows])
    assert tables[0] == tables[1]
    first, second = (load_checkpoint(folder / CHECKPOINT)['agent'] for folder in (one, two))
    assert first['rng'] == second['rng']
    for name, module in first['modules'].items():
        for key, tensor in module.items():
            assert torch.equal(tensor, second['modules'][name][key]), (name, key)


# Lost episodes


@pytest.mark.parametrize(
    'faults',
    [
        {'steps': [WARM_UP]},
        {'steps': [TRAINING]},
        {'resets': [5]},
        {'steps': [1, 2, 3, 50, 51, 65, 99, 100, 101], 'resets': [3, 9]},
    ],
    ids=str,
)
def test_lost_episodes_are_done_again_and_leave_no_trace(whole, tmp_path, faults):
    faults = {what: dict.fromkeys(at, EpisodeLostError('lost')) for what, at in faults.items()}
    notices, arm = Notices(), Arm(whole[1], **faults)
    assert run(tmp_path / 'run', whole[1], arm, [notices]) is StopReason.STEPS
    assert_same_run(tmp_path / 'run', whole[0])
    lost = sum(len(at) for at in faults.values())
    assert notices.warnings == ['an episode was dropped and is done again: lost'] * lost
    assert arm.done['reset'] == 8 + lost


def test_an_episode_may_be_lost_often_but_not_for_ever(whole, tmp_path):
    first = TRAINING
    often = {first + k: EpisodeLostError('lost') for k in range(TRIES - 1)}
    assert run(tmp_path / 'often', whole[1], Arm(whole[1], steps=often)) is StopReason.STEPS
    assert_same_run(tmp_path / 'often', whole[0])
    for_ever = {first + k: EpisodeLostError(f'lost at {first + k}') for k in range(TRIES)}
    with pytest.raises(EpisodeLostError, match=f'lost at {first + TRIES - 1}'):
        run(tmp_path / 'run', whole[1], Arm(whole[1], steps=for_ever))
    assert load_checkpoint(tmp_path / 'run' / CHECKPOINT)['env_steps'] == 60
    assert run(tmp_path / 'run', whole[1], resume=True) is StopReason.STEPS
    assert_same_run(tmp_path / 'run', whole[0])


# Stops


@pytest.mark.parametrize(
    'moment',
    [
        {'steps': WARM_UP},
        {'steps': TRAINING},
        {'resets': 1},
        {'resets': 5},  # after an evaluation
        {'evaluations': 1},
        {'evaluations': 3},
    ],
    ids=str,
)
def test_a_run_stopped_at_any_moment_and_resumed_is_the_same_run(whole, tmp_path, moment):
    ((what, at),) = moment.items()
    arm = Arm(whole[1], **{what: {at: StopRequested('stop')}})
    assert run(tmp_path / 'run', whole[1], arm, export=True) is StopReason.REQUESTED
    assert not (tmp_path / 'run' / 'policy.onnx').exists()  # nobody waits for it
    assert run(tmp_path / 'run', whole[1], resume=True) is StopReason.STEPS
    assert_same_run(tmp_path / 'run', whole[0])


@pytest.mark.parametrize('moment', [{'steps': LAST}, {'resets': 2}, {'evaluations': 2}], ids=str)
def test_an_arm_that_fails_leaves_a_checkpoint_from_which_the_run_goes_on(whole, tmp_path, moment):
    ((what, at),) = moment.items()
    arm = Arm(whole[1], **{what: {at: ArmError('silent')}})
    with pytest.raises(ArmError, match='silent'):
        run(tmp_path / 'run', whole[1], arm)
    assert run(tmp_path / 'run', whole[1], resume=True) is StopReason.STEPS
    assert_same_run(tmp_path / 'run', whole[0])


def test_a_checkpoint_is_written_when_asked_for_and_changes_nothing(whole, tmp_path):
    wishes = iter([False, True, *[False] * 10])
    notices = Notices()
    written = []

    def asked_to_stop():
        path = tmp_path / 'run' / CHECKPOINT
        written.append(load_checkpoint(path)['env_steps'] if path.exists() else None)
        return False

    run(
        tmp_path / 'run',
        whole[1],
        displays=[notices],
        asked_to_stop=asked_to_stop,
        asked_to_save=lambda: next(wishes),
    )
    assert notices.told == ['checkpoint written after 20 steps']
    assert notices.warnings == []
    assert list(dict.fromkeys(written))[:2] == [None, 20]
    assert_same_run(tmp_path / 'run', whole[0])
