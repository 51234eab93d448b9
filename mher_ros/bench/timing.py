"""Contestants timed in turn, so that whatever slows the machine down slows all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import math
import os
import subprocess
import sys
import time
from typing import Any

from mher_ros.experiments.metrics import DRAWS, interval, SEED
from mher_ros.experiments.provenance import cores
import numpy as np

Samples = Mapping[str, Sequence[float]]  # one value per round, by contestant

# Ends with its parent even if that is killed.
BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
PROGRESS_PERIOD = 2.0  # least time between two lines of progress [s]


def take_turns(
    contestants: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Call each once per round; return the CPU seconds of its calls, without the first one."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    logged = time.monotonic()
    for number in range(rounds + 1):
        for name, run in contestants.items():
            started = clock()
            run()
            if number:
                seconds[name].append(clock() - started)
        if number and time.monotonic() > logged + PROGRESS_PERIOD:
            log_progress(f'round {number} of {rounds}')
            logged = time.monotonic()
    return seconds


def median_ratio(samples: Samples, one: str, other: str) -> float:
    return float(np.median(samples[one]) / np.median(samples[other]))


def ratio_interval(samples: Samples, one: str, other: str) -> tuple[float, float]:
    """Return the bootstrapped 95 % interval of ``median_ratio``."""
    # Rounds are resampled in pairs, because a load slows both contestants of a round. Samples may
    # be infinite (never), and then so may the interval.
    both = np.array([samples[one], samples[other]], float)
    rounds = both.shape[1]
    drawn = np.random.default_rng(SEED).integers(rounds, size=(DRAWS, rounds))
    ours, theirs = np.median(both[:, drawn], axis=2)
    with np.errstate(invalid='ignore'):
        return interval(np.where(np.isinf(ours), np.inf, ours / theirs))


def ratio_figures(key: str, samples: Samples, one: str, other: str) -> dict[str, Any]:
    """Return JSON values of the ratio and its interval, in which infinity is None."""
    ends = [end if math.isfinite(end) else None for end in ratio_interval(samples, one, other)]
    return {key: median_ratio(samples, one, other), f'{key}_interval': ends}


def ratio_cell(samples: Samples, one: str, other: str) -> str:
    """Return the ratio of medians and its interval for a table; only 1.00 for one to itself."""
    ratio = f'{median_ratio(samples, one, other):.2f}'
    if one == other:
        return ratio
    low, high = ratio_interval(samples, one, other)
    return f'{ratio} [{low:.2f}, {high:.2f}]'


def log_progress(text: str) -> None:
    """Print a line to stderr; stdout holds the result alone."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def busy_cores() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run one busy process for each core that this process may use, and end them all."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(cores()):
            processes.append(subprocess.Popen([sys.executable, '-c', BUSY, str(os.getpid())]))
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
