"""A policy file at work."""

import subprocess
import sys

from mher_ros.policy import load
import numpy as np
import pytest

WITHOUT_LEARNING = """
import sys

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {'gymnasium', 'mujoco', 'onnx', 'torch'}:
            raise ImportError(f'{name} must not be needed')

sys.meta_path.insert(0, Refusal())

import numpy as np
from mher_ros.policy import load

states = np.load(sys.argv[2])
policy = load(sys.argv[1])
actions = [policy(*state) for state in zip(states['observations'], states['goals'])]
np.savez(sys.argv[3], actions=actions, batch=policy(states['observations'], states['goals']))
"""


@pytest.fixture(scope='module')
def policy(exported):
    return load(exported.path)


def test_contract_in_the_file_is_the_one_exported(policy, exported):
    assert policy.contract == exported.contract
    assert policy.interface == exported.contract.interface


def test_single_state_gives_one_action(policy, exported):
    action = policy(exported.observations[0], exported.goals[0])
    assert action.shape == (4,)
    assert action.dtype == np.float32


def test_lists_do(policy, exported):
    action = policy(exported.observations[0].tolist(), exported.goals[0].tolist())
    assert np.array_equal(action, policy(exported.observations[0], exported.goals[0]))


@pytest.mark.parametrize('count', [0, 1, 2, 90])
def test_batch_gives_the_actions_of_its_states(policy, exported, count):
    observations, goals = exported.observations[:count], exported.goals[:count]
    actions = policy(observations, goals)
    assert actions.shape == (count, 4)
    for observation, goal, action in zip(observations, goals, actions, strict=True):
        assert np.allclose(policy(observation, goal), action, rtol=0, atol=1e-6)


def test_arrays_need_not_be_contiguous(policy, exported):
    observations = np.asfortranarray(exported.observations, np.float32)
    goals = np.repeat(exported.goals, 2, axis=1).astype(np.float32)[:, ::2]
    expected = policy(exported.observations, exported.goals)
    assert np.array_equal(policy(observations, goals), expected)
    alone = policy(exported.observations[3], exported.goals[3])
    assert np.array_equal(policy(observations[3], goals[3]), alone)


def test_inputs_are_left_as_they_were(policy, exported):
    observation = np.full(10, 1e4, np.float32)
    policy(observation, np.float32([1, 2, 3]))
    assert np.array_equal(observation, np.full(10, 1e4))


@pytest.mark.parametrize(
    ('observation', 'goal', 'message'),
    [
        (np.zeros(9), np.zeros(3), r'observation \(10,\) or \(B, 10\), got \(9,\)'),
        (np.zeros(10), np.zeros(4), r'goal \(3,\) or \(B, 3\), got \(4,\)'),
        (np.zeros((2, 11)), np.zeros((2, 3)), r'observation .*, got \(2, 11\)'),
        (np.zeros((1, 2, 10)), np.zeros((1, 2, 3)), r'observation .*, got \(1, 2, 10\)'),
        (0.0, np.zeros(3), r'observation .*, got \(\)'),
        (np.zeros((2, 10)), np.zeros((3, 3)), r'observations \(2, 10\) and goals \(3, 3\)'),
        (np.zeros((2, 10)), np.zeros(3), r'observations \(2, 10\) and goals \(3,\)'),
        (np.zeros(10), np.zeros((1, 3)), r'observations \(10,\) and goals \(1, 3\)'),
        (np.full(10, np.nan), np.zeros(3), 'finite numbers in observation, got .*nan'),
        (np.zeros(10), [0, 0, np.inf], 'finite numbers in goal, got .*inf'),
        (np.zeros(10), [0, 0, -1e300], 'finite numbers in goal, got .*-inf'),
    ],
)
def test_input_that_does_not_fit_is_refused(policy, observation, goal, message):
    with np.errstate(over='ignore'), pytest.raises(ValueError, match=f'expected .*{message}'):
        policy(observation, goal)


def test_policy_runs_where_there_is_no_torch(policy, exported, tmp_path):
    states, answers = tmp_path / 'states.npz', tmp_path / 'answers.npz'
    np.savez(states, observations=exported.observations, goals=exported.goals)
    done = subprocess.run(
        [sys.executable, '-c', WITHOUT_LEARNING, exported.path, states, answers],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with np.load(answers) as answer:
        pairs = zip(exported.observations, exported.goals, strict=True)
        assert np.array_equal(answer['actions'], [policy(*pair) for pair in pairs])
        assert np.array_equal(answer['batch'], policy(exported.observations, exported.goals))
