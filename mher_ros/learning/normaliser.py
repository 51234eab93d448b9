"""Running mean and standard deviation that travel inside the network."""

from __future__ import annotations

import torch
from torch import nn, Tensor

__all__ = ['Normaliser']


class Normaliser(nn.Module):
    """
    Cumulative mean and standard deviation of every vector it was shown.

    The sums are kept in double precision; what ``forward`` uses is single, as the networks are.
    With ``hide_still`` an entry that never varied (its deviation is at the floor) reads 0
    whatever its value: a network that learnt nothing of it must not be moved by it. Entries that
    are pinned have a mean and a deviation that were known beforehand.
    """

    mean: Tensor
    std: Tensor
    total: Tensor
    total_of_squares: Tensor
    count: Tensor
    varies: Tensor

    def __init__(
        self, size: int, *, floor: float = 1e-4, clip: float = 0.0, hide_still: bool = False
    ) -> None:
        super().__init__()
        self._floor, self._clip, self._hide_still = floor, clip, hide_still
        self._pins: list[tuple[slice, Tensor, Tensor]] = []
        self.register_buffer('mean', torch.zeros(size))
        self.register_buffer('std', torch.ones(size))
        self.register_buffer('varies', torch.ones(size))
        self.register_buffer('total', torch.zeros(size, dtype=torch.float64))
        self.register_buffer('total_of_squares', torch.zeros(size, dtype=torch.float64))
        self.register_buffer('count', torch.zeros(1, dtype=torch.float64))

    def forward(self, value: Tensor) -> Tensor:
        """Return ``(value - mean) / std``, clipped if a clip was given."""
        normalised = (value - self.mean) / self.std
        if self._hide_still:
            normalised = normalised * self.varies
        return normalised.clamp(-self._clip, self._clip) if self._clip else normalised

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Take in values of shape ``(B, size)``."""
        wide = values.double()
        self.total += wide.sum(0)
        self.total_of_squares += wide.square().sum(0)
        self.count += len(wide)
        mean = self.total / self.count
        variance = self.total_of_squares / self.count - mean.square()
        self.mean.copy_(mean)
        self.std.copy_(variance.clamp_min(self._floor**2).sqrt())
        self.varies.copy_(variance > self._floor**2)
        for pin in self._pins:
            self._hold(*pin)

    def pin(self, entries: slice, mean: Tensor, std: Tensor) -> None:
        """Keep mean and deviation of some entries at given values, whatever they are shown."""
        self._pins.append((entries, mean, std.clamp_min(self._floor)))
        self._hold(*self._pins[-1])

    def _hold(self, entries: slice, mean: Tensor, std: Tensor) -> None:
        self.mean[entries], self.std[entries] = mean, std
