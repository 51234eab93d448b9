"""Rivals timed in turn, so that whatever slows the machine down slows all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import sys
import time

import numpy as np

__all__ = ['median_ratio', 'take_turns', 'tell']

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


def median_ratio(samples: Mapping[str, list[float]], one: str, other: str) -> float:
    """Return the median of ``one`` over that of ``other``."""
    return float(np.median(samples[one]) / np.median(samples[other]))


def tell(text: str) -> None:
    """Say how far it is, beside what the benchmark prints."""
    print(text, file=sys.stderr, flush=True)
