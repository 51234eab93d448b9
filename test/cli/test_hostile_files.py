"""Files with the right hashes and wrong contents: each command that reads one says a sentence."""

import json

from mher_ros.files import CHECKPOINT, EPISODES, POLICY
from mher_ros.learning.run.checkpoint import load_checkpoint, save_checkpoint
from mher_ros.policy.contract import CONTRACT_KEY
from mher_ros.policy.onnx_policy import BLANK, seal, SEAL_KEY
import numpy as np
import onnx
import pytest


@pytest.fixture
def rewritten(policy, tmp_path):
    """Return a function that edits model and contract of a policy and seals it again."""

    def rewrite(edit):
        model = onnx.load(policy)
        entries = {entry.key: entry.value for entry in model.metadata_props}
        contract = json.loads(entries[CONTRACT_KEY])
        edit(model, contract)
        del model.metadata_props[:]
        for key, value in ((CONTRACT_KEY, json.dumps(contract)), (SEAL_KEY, BLANK)):
            model.metadata_props.add(key=key, value=value)
        path = tmp_path / 'other.onnx'
        path.write_bytes(seal(model.SerializeToString()))
        return path

    return rewrite


def endless(model, contract):
    model.graph.node[0].op_type = 'Loop'


def of_another_task(model, contract):
    contract['interface']['task'] = 'flight'


def of_other_options(model, contract):
    contract['training']['config']['task'] = {'threshold': [[1]]}


def of_unknown_options(model, contract):
    contract['training']['config']['task'] = {'\ud800': 1}


def of_another_period(model, contract):
    contract['interface']['control_period'] = 1e-9


@pytest.mark.parametrize(
    'edit', [endless, of_another_task, of_other_options, of_unknown_options, of_another_period]
)
def test_a_policy_sealed_again_is_refused(refused, rewritten, edit):
    assert refused('evaluate', rewritten(edit))


@pytest.mark.parametrize(
    'edit',
    [
        lambda state: state.pop('agent'),
        lambda state: state['agent'].update(modules=[]),
        lambda state: state.update(rows=[{'env_steps': 'many'}]),
    ],
    ids=['no agent', 'no networks', 'no figures'],
)
def test_a_checkpoint_of_wrong_contents_is_refused(refused, run, edit):
    state = load_checkpoint(run / CHECKPOINT)
    edit(state)
    save_checkpoint(run / CHECKPOINT, state)
    task = ('train', 'point2d_large', '--resume', '--out', run, '--steps', '900', '--json')
    assert 'checkpoint' in refused(*task)
    assert 'checkpoint' in refused('export', run, '--out', run / POLICY)


def test_episodes_of_wrong_contents_are_refused(refused, run):
    with np.load(run / EPISODES) as file:
        arrays = dict(file)
    for name in ('joints', 'indices', 'goal_offset_counts'):
        np.savez(run / EPISODES, **{**arrays, name: np.array(['x'])})
        assert EPISODES in refused('view', run)
