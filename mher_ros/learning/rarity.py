"""Which episodes to replay more often: maximum entropy-based prioritisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import rankdata

__all__ = ['GaussianMixture', 'rarity_weights']

COMPONENTS = 3
ROUNDS = 25
FLOOR = 1e-6
"""Least variance of an entry."""


def rarity_weights(paths: NDArray[np.floating], rng: np.random.Generator) -> NDArray[np.float64]:
    """
    Return how often to replay each of E episodes (E,), summing to 1 (Zhao et al. 2019).

    ``paths`` (E, T, m) are the goals each achieved. A mixture of Gaussians is fitted to whole
    paths; the weight of an episode is its rank by how improbable it is, the most common one's
    being 0. Episodes that are equally improbable share a rank; if all are, so do the weights.
    """
    flat = paths.reshape(len(paths), -1).astype(np.float64)
    density = GaussianMixture(flat, COMPONENTS, rng).log_density(flat)
    ranks = rankdata(-density, method='dense') - 1.0
    return ranks / ranks.sum() if ranks.any() else np.full(len(ranks), 1.0 / len(ranks))


class GaussianMixture:
    """
    Gaussians with diagonal covariances, fitted by expectation-maximisation.

    Few values of many entries would let a Gaussian close in on a single one of them, which then
    passed for the most common of all. So each variance is drawn to that of all values, with the
    weight of as many values as they have entries, and a Gaussian left with fewer than two values
    is dropped.
    """

    def __init__(
        self, values: NDArray[np.float64], components: int, rng: np.random.Generator
    ) -> None:
        count = min(components, len(values))
        self._means = values[rng.choice(len(values), size=count, replace=False)]
        self._overall = np.maximum(values.var(0), FLOOR)
        self._variances = np.tile(self._overall, (count, 1))
        self._shares = np.full(count, 1.0 / count)
        for _ in range(ROUNDS):
            self._improve(values)

    def log_density(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of the density at values (N, d) as (N,)."""
        density: NDArray[np.float64] = logsumexp(self._log_parts(values), axis=-1)
        return density

    def _improve(self, values: NDArray[np.float64]) -> None:
        parts = self._log_parts(values)
        belongs = np.exp(parts - logsumexp(parts, axis=-1, keepdims=True))
        weight = belongs.sum(0)
        alive = weight >= min(2.0, weight.max())
        belongs, weight = belongs[:, alive], weight[alive]
        self._shares = weight / weight.sum()
        self._means = belongs.T @ values / weight[:, None]
        spread = belongs.T @ values**2 / weight[:, None] - self._means**2
        share = (weight / (weight + values.shape[1]))[:, None]
        self._variances = np.maximum(share * spread + (1.0 - share) * self._overall, FLOOR)

    def _log_parts(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N, components): the logarithm of each component's share of the density."""
        off = values[:, None] - self._means
        exponent = (off**2 / self._variances).sum(-1)
        width = np.log(2.0 * np.pi * self._variances).sum(-1)
        parts: NDArray[np.float64] = np.log(self._shares) - 0.5 * (exponent + width)
        return parts
