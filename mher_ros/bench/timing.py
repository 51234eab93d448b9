"""Rivals timed in turn, so that whatever slows the machine down slows all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import sys
import time
from typing import Any

from mher_ros.experiments.bootstrap import CONFIDENCE, DRAWS, SEED
import numpy as np

__all__ = [
    'median_ratio',
    'ratio_cell',
    'ratio_figures',
    'ratio_interval',
    'Samples',
    'take_turns',
    'tell',
]

Samples = Mapping[str, Sequence[float]]
"""Of each rival, one a round."""

TELL_EVERY = 2.0
"""Seconds between two words on how far it is."""


def take_turns(
    rivals: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Call each rival once a round and return the seconds of its calls; one call each is free."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    told = time.monotonic()
    for number in range(rounds + 1):
        for name, run in rivals.items():
            started = clock()
            run()
            if number:
                seconds[name].append(clock() - started)
        if number and time.monotonic() > told + TELL_EVERY:
            tell(f'round {number} of {rounds}')
            told = time.monotonic()
    return seconds


def median_ratio(samples: Samples, one: str, other: str) -> float:
    """Return the median of ``one`` over that of ``other``."""
    return float(np.median(samples[one]) / np.median(samples[other]))


def ratio_interval(samples: Samples, one: str, other: str) -> tuple[float, float]:
    """
    Return the 95 % interval of ``median_ratio``, made by drawing the rounds again.

    A draw has both samples of a round, which what slowed one down may have slowed down, too.
    Samples may be infinite (never): then so may the interval.
    """
    both = np.array([samples[one], samples[other]], float)
    rounds = both.shape[1]
    drawn = np.random.default_rng(SEED).integers(rounds, size=(DRAWS, rounds))
    ours, theirs = np.median(both[:, drawn], axis=2)
    with np.errstate(invalid='ignore'):
        ratios = np.where(np.isinf(ours), np.inf, ours / theirs)
    ratios.sort()
    outside = int((1.0 - CONFIDENCE) / 2.0 * DRAWS)
    return float(ratios[outside]), float(ratios[-1 - outside])


def ratio_figures(key: str, samples: Samples, one: str, other: str) -> dict[str, Any]:
    """Return the ratio of medians under ``key``, and its interval."""
    return {
        key: median_ratio(samples, one, other),
        f'{key}_interval': list(ratio_interval(samples, one, other)),
    }


def ratio_cell(samples: Samples, one: str, other: str) -> str:
    """Return the ratio of medians for a table, with its interval unless it is that to itself."""
    ratio = f'{median_ratio(samples, one, other):.2f}'
    if one == other:
        return ratio
    low, high = ratio_interval(samples, one, other)
    return f'{ratio} [{low:.2f}, {high:.2f}]'


def tell(text: str) -> None:
    """Say how far it is, beside what the benchmark prints."""
    print(text, file=sys.stderr, flush=True)
