"""Networks, models and goals simple enough to work out by hand what comes of them."""

import dataclasses

from mher_ros.learning.config import AgentConfig, ModelConfig
from mher_ros.learning.core.networks import InputEncoder, Networks
from mher_ros.learning.model import Dynamics
from mher_ros.learning.relabel.samplers import Batch
from mher_ros.learning.relabel.strategies import GoalStrategy
import numpy as np
import torch


class FixedGoals(GoalStrategy):
    def __init__(self, value):
        self.value = value

    def propose(self, batch, rng, wanted=None):
        return np.full_like(batch.goals, self.value)


class KnownDynamics(Dynamics):
    """Adds the action to x, y and counts steps in the third entry."""

    def __init__(self):
        super().__init__(3, 2, ModelConfig(hidden=(4,), members=1), torch.Generator())

    def step(self, observations, actions):
        return observations + torch.cat((actions, torch.ones(len(actions), 1)), -1)


def fixed_networks(interface, value, proposed=None):
    """Return networks whose critics always give ``value`` and whose actors ``proposed``."""
    critic = lambda features, action: value  # noqa: E731
    actor = lambda features: proposed  # noqa: E731
    return Networks(InputEncoder(interface, AgentConfig()), actor, critic, actor, critic)


def batch_of(count, **tensors):
    names = (field.name for field in dataclasses.fields(Batch))
    tensors = {'threshold_factor': 1.0, **tensors}
    return Batch(**{name: tensors.get(name, torch.zeros(count, 3)) for name in names})
