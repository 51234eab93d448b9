"""Which of many relabelled transitions to learn from: curriculum-guided HER."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

__all__ = ['GoalCurriculum']

LOOKED_AT = 3
"""Candidates tried for each pick, drawn at random: a lazier greedy choice."""


class GoalCurriculum:
    r"""
    Picks goals that are diverse early and close to the desired ones later (Fang et al. 2019).

    Of candidates with new goals :math:`g'_i` and desired goals :math:`g_i` it picks a subset A
    for which

    .. math:: F(A) = \sum_j \max_{i \in A} e^{-\|g'_i - g'_j\|^2 / \sigma^2}
              - \lambda \sum_{i \in A} \|g'_i - g_i\|

    is large, greedily. :math:`\sigma` is the mean distance of a candidate to its nearest
    neighbour; :math:`\lambda` begins at ``weight`` and grows by the share ``growth`` an update.
    """

    def __init__(self, weight: float, growth: float) -> None:
        self._weight, self._growth = weight, growth

    def choose(
        self,
        goals: NDArray[np.float32],
        desired: NDArray[np.float32],
        count: int,
        updates: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """Return ``count`` of the rows of ``goals`` (N, m), each once."""
        similar = _similarities(goals)
        # F grows by what a pick covers better than those before it, less its own distance.
        cost = self.weight(updates) * np.linalg.norm(goals - desired, axis=-1)
        covered = np.zeros(len(goals))
        left = list(range(len(goals)))
        picked = []
        for _ in range(count):
            places = rng.choice(len(left), size=min(LOOKED_AT, len(left)), replace=False)
            tried = [left[place] for place in places]
            gains = np.maximum(similar[tried] - covered, 0.0).sum(-1) - cost[tried]
            best = int(np.argmax(gains))
            covered = np.maximum(covered, similar[tried[best]])
            picked.append(tried[best])
            left.pop(places[best])
        return np.array(picked, np.int64)

    def weight(self, updates: int) -> float:
        r"""Return :math:`\lambda` after ``updates`` updates."""
        return self._weight * (1.0 + self._growth) ** updates


def _similarities(goals: NDArray[np.float32]) -> NDArray[np.float64]:
    distances = cdist(goals, goals)
    to_others = distances + np.where(np.eye(len(goals), dtype=bool), np.inf, 0.0)
    width = to_others.min(0).mean() if len(goals) > 1 else 0.0
    return np.exp(-np.square(distances / width)) if width else (distances == 0.0) * 1.0
