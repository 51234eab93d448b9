"""Layer normalisation of the critic."""

from mher_ros.learning.config import make_config
from mher_ros.learning.core.agent import Agent
from mher_ros.tasks import make
import pytest
import torch


@pytest.mark.parametrize('layer_norm', [False, True])
def test_only_the_critic_normalises_its_hidden_layers_and_only_if_asked(layer_norm):
    config = make_config('point2d_large', changes={'agent.layer_norm': layer_norm})
    networks = Agent(make('point2d_large', config.task).interface, config).networks
    for name, network in networks.modules().items():
        count = sum(isinstance(part, torch.nn.LayerNorm) for part in network.modules())
        expected = len(config.agent.hidden) if layer_norm and 'critic' in name else 0
        assert count == expected, name
