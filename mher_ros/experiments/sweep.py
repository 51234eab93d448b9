"""All jobs of an experiment: those done before are read, the others are run and kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
from pathlib import Path

from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import (
    Job,
    keep,
    kept_result,
    News,
    Runner,
)
from mher_ros.options import OptionError

__all__ = ['jobs_of', 'RESULTS', 'sweep']

RESULTS = 'results'


def jobs_of(experiment: Experiment, seeds: Sequence[int]) -> list[Job]:
    """Return every job, seed by seed, so that an interrupted experiment has seen them all."""
    return [Job(variant, seed) for seed in seeds for variant in experiment.variants]


def sweep(jobs: Sequence[Job], folder: Path, run: Runner) -> Iterator[tuple[Job, News]]:
    """
    Tell what comes of every job; results are kept below ``folder`` as they come.

    A job whose result is there already (same choices, same seed, same code) is not run.
    """
    results = folder / RESULTS
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f'cannot write into the folder {folder}: {error.strerror}') from error
    waiting = []
    for job in jobs:
        kept = kept_result(job, results)
        if kept is None:
            waiting.append(job)
        else:
            yield job, kept
    if not waiting:
        return
    # Whoever stops listening ends the runs at once.
    with contextlib.closing(run(waiting)) as told:
        for job, news in told:
            if isinstance(news, dict):
                keep(job, news, results)
            yield job, news
