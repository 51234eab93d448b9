"""A policy that was exported once, for every test to read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mher_ros.learning.config import AgentConfig
from mher_ros.learning.core.networks import Actor, InputEncoder, Policy
from mher_ros.policy import Contract
from mher_ros.policy.export import export_policy
from mher_ros.policy.onnx_policy import BLANK, seal, SEAL_KEY
from mher_ros.tasks import make
import numpy as np
import onnx
import pytest
import torch


class Exported(NamedTuple):
    path: Path
    policy: Policy
    contract: Contract
    observations: np.ndarray
    goals: np.ndarray


@pytest.fixture(scope='session', autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope='session')
def export_task(tmp_path_factory, one_thread):
    """Return a function that exports an untrained policy for a task, with states it visits."""

    def export(name: str, *, relative: bool, fourier_features: int = 0) -> Exported:
        task = make(name)
        rng = np.random.default_rng(1)
        states = []
        for seed in range(3):
            state, _ = task.reset(seed=seed)
            for _ in range(30):
                states.append(state)
                state, *_ = task.step(rng.uniform(-1, 1, task.action_space.shape))
        observations = np.array([state['observation'] for state in states])
        goals = np.array([state['desired_goal'] for state in states])
        task.close()

        weights = torch.Generator().manual_seed(2)
        view = InputEncoder(
            task.interface,
            AgentConfig(relative_goal=relative, fourier_features=fourier_features),
        )
        view.update(torch.from_numpy(observations), torch.from_numpy(goals))
        actor = Actor(view.size, len(task.interface.action), (48, 48), weights)
        policy = Policy(view, actor)
        contract = Contract(
            task.interface,
            {'algorithm': 'mher', 'seed': 3, 'config': {'hidden': [48, 48], 'rate': 1e-3}},
            {'success_rate': 1.0, 'goals': 100},
        )
        path = tmp_path_factory.mktemp(name) / 'policy.onnx'
        export_policy(policy, contract, path, observations, goals)
        return Exported(path, policy, contract, observations, goals)

    return export


@pytest.fixture(scope='session')
def exported(export_task) -> Exported:
    return export_task('fetch_reach', relative=True)


@pytest.fixture
def rewritten(exported, tmp_path):
    """Return a function that edits the ONNX model, seals it anew and returns the file's path."""

    def rewrite(edit) -> Path:
        model = onnx.load(exported.path)
        entries = {entry.key: entry.value for entry in model.metadata_props}
        del model.metadata_props[:]
        del entries[SEAL_KEY]
        edit(model, entries)
        for key, value in (*entries.items(), (SEAL_KEY, BLANK)):
            model.metadata_props.add(key=key, value=value)
        path = tmp_path / 'rewritten.onnx'
        path.write_bytes(seal(model.SerializeToString()))
        return path

    return rewrite
