"""What the actor is trained to lower."""

from __future__ import annotations

from torch import Tensor

__all__ = ['joint_loss']


def joint_loss(
    value: Tensor,
    proposed: Tensor,
    taken: Tensor,
    relabelled: Tensor,
    alpha: float,
    action_penalty: float,
) -> Tensor:
    r"""
    Return policy gradient, action penalty and supervised loss together (Eq. 7).

    .. math:: -\overline{Q(s, \pi, g')} + c\,\overline{\pi^2}
              + \alpha\,\overline{mask \cdot (a - \pi)^2}

    ``value`` (B,) is the critic's of the ``proposed`` actions (B, k); ``taken`` (B, k) are the
    replayed ones and ``relabelled`` (B,) is 1 on rows that have a new goal. Means run over the
    whole batch, masked rows or not. The paper sums over an action's entries and has no action
    penalty; its code averages and has one.
    """
    loss = -value.mean()
    if action_penalty:
        loss = loss + action_penalty * proposed.square().mean()
    if alpha:
        squared = (taken - proposed).square().mean(-1)
        loss = loss + alpha * (relabelled * squared).mean()
    return loss
