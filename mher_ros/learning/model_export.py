"""Write a learned dynamics model as an ONNX file, and only if the file predicts as it does."""

from __future__ import annotations

import copy
from pathlib import Path

from mher_ros.errors import MherError
from mher_ros.files import write_atomically
from mher_ros.learning.dynamics import Dynamics
from mher_ros.policy.export import TOLERANCE, traced
import numpy as np
from numpy.typing import NDArray
import onnxruntime
import torch
from torch import nn, Tensor

__all__ = ['export_model', 'ModelExportError']


class ModelExportError(MherError, RuntimeError):
    """A file that does not predict what the model does."""


def export_model(
    dynamics: Dynamics,
    path: Path,
    observations: NDArray[np.float32],
    actions: NDArray[np.float32],
) -> None:
    """
    Write the model to ``path``: ``observation`` and ``action`` to ``next_observation``.

    It must predict the same from recorded ``observations`` (N, n) and ``actions`` (N, k), up to
    rounding in standard deviations of the observation.
    """
    module = _Prediction(copy.deepcopy(dynamics))
    inputs = {'observation': observations.shape[1], 'action': actions.shape[1]}
    data = traced(module, inputs, 'next_observation').SerializeToString(deterministic=True)
    session = onnxruntime.InferenceSession(data, providers=['CPUExecutionProvider'])
    predicted = session.run(None, {'observation': observations, 'action': actions})[0]
    expected = dynamics.step(torch.from_numpy(observations), torch.from_numpy(actions)).numpy()
    difference = float(np.abs((predicted - expected) / dynamics.observation.std.numpy()).max())
    if not difference <= TOLERANCE:
        raise ModelExportError(
            f'the exported graph does not predict as the model does: over {len(observations)} '
            f'recorded steps they differ by up to {difference:.2g} standard deviations; expected '
            f'{TOLERANCE:.0e} at most'
        )
    write_atomically(path, data)


class _Prediction(nn.Module):
    def __init__(self, dynamics: Dynamics) -> None:
        super().__init__()
        self._dynamics = dynamics

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        return self._dynamics.step(observation, action)
