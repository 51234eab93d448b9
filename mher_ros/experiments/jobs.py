"""A job: one variant with one seed, how it is run, and where its result is kept."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path
import time
import traceback
from typing import Any

from mher_ros.errors import MherError
from mher_ros.experiments.experiment import Experiment, Variant
from mher_ros.experiments.provenance import code_digest, code_digest_now, library_versions
from mher_ros.files import write_atomically
from mher_ros.learning.config import make_config, TrainConfig
from mher_ros.options import os_errors_as_option_errors

Result = dict[str, Any]
"""Of a run: ``config``, ``rows`` (one per evaluation), ``record``, ``seconds``, ``code``."""


@dataclasses.dataclass(frozen=True)
class Job:
    variant: Variant
    seed: int

    @property
    def config(self) -> TrainConfig:
        variant = self.variant
        return make_config(
            variant.task, variant.algorithm, variant.preset, self.seed, dict(variant.changes)
        )

    @property
    def digest(self) -> str:
        """A hash of all options and of the code."""
        choices = [code_digest(), self.variant.recorder, self.config.to_dict()]
        return hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f'{self.variant.task}, {self.variant.name}, seed {self.seed}'


@dataclasses.dataclass(frozen=True)
class Failure:
    reason: str  # one line
    details: str = ''


@dataclasses.dataclass(frozen=True)
class Lost:
    """The process of a run has ended; the run is started again."""

    reason: str


Event = Lost | Failure | Result  # what happens to a job; a failure or a result is the last event
Events = Generator[tuple[Job, Event], None, None]
Executor = Callable[[Sequence[Job]], Events]

RESULTS = 'results'
RETRIES = 2  # times that a run is started again after its process was lost


def jobs_of(experiment: Experiment, seeds: Sequence[int]) -> list[Job]:
    """Return all jobs, seed by seed, so that an interrupted experiment has tried every variant."""
    return [Job(variant, seed) for seed in seeds for variant in experiment.variants]


def results_of(variant: Variant, results: Mapping[Job, Result]) -> dict[int, Result]:
    """Return the results of a variant by seed."""
    return {job.seed: result for job, result in results.items() if job.variant == variant}


def sweep(jobs: Sequence[Job], folder: Path, execute: Executor) -> Iterator[tuple[Job, Event]]:
    """
    Yield the events of all jobs; results are kept below ``folder`` as they come.

    A job that has a result there (same options, same seed, same code) is not run.
    """
    results = folder / RESULTS
    with os_errors_as_option_errors(f'cannot write into the folder {folder}'):
        results.mkdir(parents=True, exist_ok=True)
    waiting = []
    for job in jobs:
        kept = _kept_result(job, results)
        if kept is None:
            waiting.append(job)
        else:
            yield job, kept
    if not waiting:
        return
    # Closing this generator ends the runs at once.
    with contextlib.closing(execute(waiting)) as events:
        for job, event in events:
            if isinstance(event, dict):
                write_atomically(_path(job, results), json.dumps(event).encode())
            yield job, event


def attempt(job: Job, code: str) -> Result | Failure:
    """
    Do the run; an error is returned, so that other runs continue.

    ``code`` is the digest of the code in the process that asks; the run must use the same code.
    """
    # Computed again: the files may have changed since an earlier run of this process.
    here = code_digest_now()
    if code != here:
        return Failure(
            f'the code here ({here}) differs from that of the process that started the experiment '
            f'({code}): it was changed meanwhile, or differs between machines'
        )
    try:
        return _run(job)
    except Exception as error:
        text = ' '.join(str(error).split())
        reason = text if isinstance(error, MherError) else f'{type(error).__name__}: {text}'
        return Failure(reason, traceback.format_exc())


def _kept_result(job: Job, folder: Path) -> Result | None:
    """Return the result of an earlier run, or that of another experiment, which is copied."""
    path = _path(job, folder)
    if not path.exists():
        others = folder.parent.parent.glob(f'*/{folder.name}/*-{job.digest}.json')
        other = next(others, None)
        if other is None:
            return None
        write_atomically(path, other.read_bytes())
    result: Result = json.loads(path.read_text())
    return result


def _run(job: Job) -> Result:
    # Slow to import, and only needed where runs are done.
    from mher_ros.experiments.recorders import RECORDERS
    from mher_ros.learning.run.session import train_in_memory

    started = time.monotonic()
    config, name = job.config, job.variant.recorder
    recorder = RECORDERS[name](config) if name else None
    rows = train_in_memory(config, [recorder] if recorder else []).rows
    result = {
        'config': config.to_dict(),
        'rows': rows,
        'record': recorder.record if recorder else {},
        'seconds': round(time.monotonic() - started, 3),
        'code': code_digest(),
        'versions': library_versions(),
    }
    # Through JSON, so that a new result equals the same one read from its file.
    return json.loads(json.dumps(result))


def _path(job: Job, folder: Path) -> Path:
    variant = job.variant
    name = '-'.join((variant.task, variant.name, f'seed{job.seed}', job.digest))
    return folder / f'{name.replace(" ", "_").replace("/", "_")}.json'
