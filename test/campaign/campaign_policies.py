"""The policies of the campaign, as files: one that goes to its goals, and one that goes wild."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[1] / 'shared' / 'arms'))

from mher_ros.tasks import make
import numpy as np
from proportional_policy import write_proportional_policy

WIDTHS = (64, 64, 64)
STEEP = 10.0
"""What comes before the last tanh of the wild policy varies by so much over the workspace."""

AGAINST = 4000.0
"""Gain with which it acts against its own velocity, so that it never comes to rest [1/m]."""


def write_wild_policy(path, task='fetch_reach', seed=7):
    """Write a policy whose actions change completely within centimetres."""
    # Not above: torch takes its time, and the other policy needs none.
    from mher_ros.policy import Contract
    from mher_ros.policy.export import export_policy
    import torch
    from torch import nn

    env = make(task)
    interface = env.interface
    env.close()
    rng = np.random.default_rng(seed)
    goals = rng.uniform(interface.goal_low, interface.goal_high, (2, 1000, len(interface.goal)))
    observations = np.zeros((1000, len(interface.observation)))
    observations[:, list(interface.achieved_index)] = goals[0]

    names = [field.name for field in interface.observation]
    velocities = [names.index(f'tool_velocity_{axis}') for axis in 'xyz']

    class Wild(nn.Module):
        """Random layers, each scaled so that all of its units vary over the workspace."""

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList()
            against = torch.zeros(len(interface.action), observations.shape[1])
            for axis, column in enumerate(velocities):
                against[axis, column] = -AGAINST
            values = np.concatenate((observations, goals[1]), 1)
            for width in (*WIDTHS, len(interface.action)):
                weights = rng.standard_normal((values.shape[1], width))
                scale = (STEEP if len(self.layers) == len(WIDTHS) else 1.0) / np.std(
                    values @ weights, 0
                )
                middle = np.mean(values @ weights, 0)
                layer = nn.Linear(*weights.shape)
                layer.weight.data = torch.tensor((weights * scale).T, dtype=torch.float32)
                layer.bias.data = torch.tensor(-middle * scale, dtype=torch.float32)
                self.layers.append(layer)
                values = np.maximum(0.0, (values @ weights - middle) * scale)
            # In one layer with the last: a policy file has no operator that adds.
            last = self.layers[-1]
            last.weight.data = torch.cat((last.weight.data, against), 1)

        def forward(self, observation, desired_goal):
            features = torch.cat((observation, desired_goal), -1)
            for layer in self.layers[:-1]:
                features = torch.relu(layer(features))
            return torch.tanh(self.layers[-1](torch.cat((features, observation), -1)))

    contract = Contract(interface, {'algorithm': 'random weights'})
    export_policy(Wild(), contract, path, observations[:10], goals[1][:10])


if __name__ == '__main__':
    folder, *names = sys.argv[1:]
    writers = {'proportional': write_proportional_policy, 'wild': write_wild_policy}
    for name in names:
        writers[name](Path(folder) / f'{name}.onnx')
