"""The way from a torch policy to a policy file."""

import copy
import dataclasses
import resource
import stat
import subprocess
import sys

from mher_ros.policy import Contract, load, PolicyFileError
from mher_ros.policy.export import export_policy, TOLERANCE
import numpy as np
import onnx
import pytest
import torch
from torch import nn

QUIET_EXPORT = """
import sys
from mher_ros.learning.config import AgentConfig
from mher_ros.learning.core.networks import Actor, Policy, InputEncoder
from mher_ros.policy import Contract
from mher_ros.policy.export import export_policy
from mher_ros.interface import Field, TaskInterface
import numpy as np
import torch

axes = tuple(Field(axis, 'm') for axis in 'xy')
low, high, index = (0.0, 0.0), (1.0, 1.0), (0, 1)
interface = TaskInterface(
    'plane', axes, axes, axes, 'displacement', 'world', 0.1, 50, low, high, 0.1, index
)
view = InputEncoder(interface, AgentConfig())
actor = Actor(view.size, 2, (8,), torch.Generator().manual_seed(0))
export_policy(
    Policy(view, actor), Contract(interface, {}), sys.argv[1], np.zeros((1, 2)), np.ones((1, 2))
)
"""


class ActsOtherwiseOnceTraced(nn.Module):
    """A policy whose graph is not what it computes."""

    def __init__(self, policy):
        super().__init__()
        self.policy = policy

    def forward(self, observation, desired_goal):
        goal = desired_goal * 0.999 if torch.onnx.is_in_onnx_export() else desired_goal
        return self.policy(observation, goal)


class Scaled(nn.Module):
    """A policy whose actions are multiplied."""

    def __init__(self, policy, factor):
        super().__init__()
        self.policy, self.factor = policy, factor

    def forward(self, observation, desired_goal):
        return self.factor * self.policy(observation, desired_goal)


def largest_difference(exported, observations, goals):
    """Return how far the file is from the policy, the states taken together and one by one."""
    policy = load(exported.path)
    with torch.no_grad():
        expected = exported.policy(*map(torch.from_numpy, (observations, goals))).numpy()
    pairs = zip(observations, goals, strict=True)
    actions = policy(observations, goals), np.stack([policy(*pair) for pair in pairs])
    return max(np.abs(action - expected).max() for action in actions)


@pytest.mark.parametrize(
    ('name', 'relative', 'fourier_features'),
    [
        ('fetch_reach', True, 0),
        ('fetch_reach', False, 0),
        ('reacher', True, 0),
        ('point2d_large', False, 0),
        ('point2d_four_room', True, 2),
    ],
)
def test_file_acts_as_the_policy_does_on_recorded_and_on_far_states(
    export_task, exported, name, relative, fourier_features
):
    shared = name == 'fetch_reach' and relative
    made = (
        exported
        if shared
        else export_task(name, relative=relative, fourier_features=fourier_features)
    )
    observations, goals = (
        np.asarray(array, np.float32) for array in (made.observations, made.goals)
    )
    assert largest_difference(made, observations, goals) <= TOLERANCE
    rng = np.random.default_rng(5)
    for scale in (1e-3, 1.0, 1e3, 1e30):
        far = [np.float32(scale * rng.normal(size=array.shape)) for array in (observations, goals)]
        assert largest_difference(made, *far) <= TOLERANCE


def test_normalisers_are_in_the_graph(exported):
    names = {tensor.name for tensor in onnx.load(exported.path).graph.initializer}
    parts = 'observation', 'goal', 'displacement'
    statistics = {f'encoder.{part}.{of}' for part in parts for of in ('mean', 'std')}
    assert statistics <= names


def test_file_is_small_and_says_nothing_of_the_machine_it_was_made_on(exported):
    weights = sum(4 * weight.numel() for weight in exported.policy.parameters())
    content = exported.path.read_bytes()
    assert len(content) < weights + len(exported.contract.to_json()) + 4000
    assert b'.py' not in content
    assert str(exported.path.parent).encode() not in content


def test_file_can_be_read_by_all_users_the_umask_lets_read(exported):
    assert stat.S_IMODE(exported.path.stat().st_mode) & 0o400
    beside = exported.path.with_name('beside')
    beside.touch()
    assert beside.stat().st_mode == exported.path.stat().st_mode


def test_same_policy_gives_the_same_bytes_and_goes_on_training(exported, tmp_path):
    policy = copy.deepcopy(exported.policy).train()
    before = copy.deepcopy(policy.state_dict())
    path = tmp_path / 'policy.onnx'
    export_policy(policy, exported.contract, path, exported.observations, exported.goals)
    assert path.read_bytes() == exported.path.read_bytes()
    assert policy.training
    assert all(torch.equal(before[key], value) for key, value in policy.state_dict().items())


def test_policy_so_steep_that_rounding_shows_on_recorded_states_is_refused(exported, tmp_path):
    policy = copy.deepcopy(exported.policy)
    with torch.no_grad():
        for weight in policy.actor.parameters():
            weight *= 12
    with pytest.raises(PolicyFileError, match=r'recorded.*1e-05'):
        export_policy(
            policy,
            exported.contract,
            tmp_path / 'policy.onnx',
            exported.observations,
            exported.goals,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('spoil', 'message'),
    [
        (
            ActsOtherwiseOnceTraced,
            'over 90 recorded states, as a batch',
        ),
        (lambda policy: Scaled(policy, 1e4), r'expected actions in \[-1, 1\], the policy gives'),
        (lambda policy: Scaled(policy, float('nan')), r'expected actions in .* gives \[nan'),
    ],
    ids=['another graph', 'outside', 'nan'],
)
def test_policy_that_would_act_wrongly_leaves_the_older_file(exported, tmp_path, spoil, message):
    path = tmp_path / 'policy.onnx'
    path.write_bytes(exported.path.read_bytes())
    with pytest.raises(PolicyFileError, match=message):
        export_policy(
            spoil(exported.policy), exported.contract, path, exported.observations, exported.goals
        )
    assert path.read_bytes() == exported.path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_contract_that_does_not_fit_the_network_is_not_written(exported, tmp_path):
    interface = exported.contract.interface
    shorter = dataclasses.replace(interface, action=interface.action[:3])
    with pytest.raises(PolicyFileError, match=r"'action': 3}; got {'action': 4}"):
        export_policy(
            exported.policy,
            Contract(shorter, {}),
            tmp_path / 'policy.onnx',
            exported.observations,
            exported.goals,
        )
    assert not list(tmp_path.iterdir())


def test_contract_that_is_wrong_is_not_written(exported, tmp_path):
    interface = dataclasses.replace(exported.contract.interface, control_period=-1.0)
    with pytest.raises(PolicyFileError, match='control_period: expected a number above 0'):
        export_policy(
            exported.policy,
            Contract(interface, {}),
            tmp_path / 'policy.onnx',
            exported.observations,
            exported.goals,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('observations', 'goals', 'message'),
    [
        (np.zeros((0, 10)), np.zeros((0, 3)), r'expected observations \(N, 10\), got \(0, 10\)'),
        (np.zeros((2, 9)), np.zeros((2, 3)), r'expected observations \(N, 10\), got \(2, 9\)'),
        (np.zeros((2, 10)), np.zeros(3), r'expected goals \(N, 3\), got \(3,\)'),
    ],
)
def test_recorded_states_of_another_shape_are_refused(
    exported, tmp_path, observations, goals, message
):
    with pytest.raises(ValueError, match=message):
        export_policy(
            exported.policy, exported.contract, tmp_path / 'policy.onnx', observations, goals
        )


def test_folder_that_cannot_be_written_is_named(exported, tmp_path):
    (tmp_path / 'folder.onnx').mkdir()
    states = exported.observations[:2], exported.goals[:2]
    for path, why in (
        (tmp_path / 'missing' / 'policy.onnx', 'No such file'),
        (tmp_path / 'folder.onnx', 'Is a directory'),
        ('/proc/policy.onnx', ''),  # not even root may write there
    ):
        with pytest.raises(PolicyFileError, match=f'^{path}: cannot be written: {why}'):
            export_policy(exported.policy, exported.contract, path, *states)
    assert list(tmp_path.rglob('*')) == [tmp_path / 'folder.onnx']


def test_disk_that_fills_up_leaves_the_older_file(exported, tmp_path):
    path = tmp_path / 'policy.onnx'
    path.write_bytes(exported.path.read_bytes())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(PolicyFileError, match='cannot be written: File too large'):
            export_policy(
                exported.policy, exported.contract, path, exported.observations, exported.goals
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == exported.path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_export_prints_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, '-c', QUIET_EXPORT, tmp_path / 'policy.onnx'],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
