"""The benchmark of updates: its ratios, that its baseline is alike, and the command."""

import json
import sys

from mher_ros.bench import update
from mher_ros.bench.update import BATCHES, ddpg_her, our_agent, ratios
from mher_ros.cli import main
from mher_ros.errors import explaining_missing_extras, MissingExtraError
import numpy as np
import pytest
import torch

SB3 = 'SB3 DDPG+HER'


def test_ratios_are_those_of_medians_to_sb3():
    seconds = {
        64: {'mher': [3.0, 4.0, 90.0], 'her': [1.0, 1.0, 1.0], SB3: [2.0, 2.0, 70.0]},
        256: {'mher': [5.0], 'her': [8.0], SB3: [10.0]},
    }
    found = ratios(seconds)
    assert {key: value for key, value in found.items() if 'interval' not in key} == {
        'mher_ratio_vs_sb3_batch_64': 2.0,
        'mher_ratio_vs_sb3_batch_256': 0.5,
        'her_ratio_vs_sb3_batch_64': 0.5,
        'her_ratio_vs_sb3_batch_256': 0.8,
    }
    assert found['mher_ratio_vs_sb3_batch_256_interval'] == [0.5, 0.5]
    low, high = found['her_ratio_vs_sb3_batch_64_interval']
    assert low == 1.0 / 70.0 and high == 0.5


def test_without_stable_baselines3_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'stable_baselines3', None)
    with (
        pytest.raises(MissingExtraError, match=r'mher_ros\[bench\]'),
        explaining_missing_extras(),
    ):
        ddpg_her(64)


@pytest.mark.slow
def test_algorithms_have_networks_and_replays_of_the_same_size():
    pytest.importorskip('stable_baselines3')
    agent = our_agent('mher', 64)
    model = ddpg_her(64)
    assert units(agent.networks.actor) == units(model.actor) == [256, 256, 256, 4]
    assert units(agent.networks.critic) == units(model.critic) == [256, 256, 256, 1]
    assert len(agent.replay) == model.replay_buffer.size() == 2000


def test_the_command_tells_ratios_of_its_samples(tmp_path, monkeypatch, capsys):
    pytest.importorskip('stable_baselines3')
    monkeypatch.setattr(update, 'EPISODES', 2)
    monkeypatch.setattr(update, 'UPDATES', 2)
    assert main(['bench', 'update', '--rounds', '1', '--json', '--out', str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    for batch in BATCHES:
        samples = told['samples']['seconds_of_an_update'][f'batch_{batch}']
        for name in ('mher', 'her'):
            ratio = np.median(samples[name]) / np.median(samples[SB3])
            assert told[f'{name}_ratio_vs_sb3_batch_{batch}'] == pytest.approx(ratio)
        table = told['tables'][BATCHES.index(batch)]
        assert table['header'][-1] == f'over {SB3}'


def units(network):
    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    return [layer.out_features for layer in layers]
