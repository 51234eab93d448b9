"""What the critic is trained towards."""

from __future__ import annotations

from torch import Tensor

__all__ = ['one_step_target']


def one_step_target(reward: Tensor, next_value: Tensor, gamma: float, ceiling: float) -> Tensor:
    r"""
    Return :math:`y = \mathrm{clip}(r + \gamma Q'(s', \pi'(s', g'), g'))` (below Eq. 3).

    Rewards lie in [-1, 0] and episodes never terminate, so no value is below
    :math:`-1 / (1 - \gamma)`.
    """
    return (reward + gamma * next_value).clamp(-1.0 / (1.0 - gamma), ceiling)
