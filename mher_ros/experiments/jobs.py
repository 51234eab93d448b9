"""A job: one variant with one seed, how it is run, and where its result is kept."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path
import time
import traceback
from typing import Any

import mher_ros
from mher_ros.errors import MherError
from mher_ros.experiments.experiment import Variant
from mher_ros.experiments.recorders import make_recorder
from mher_ros.files import write_atomically
from mher_ros.learning.config import make_config, TrainConfig

__all__ = [
    'attempt',
    'code_digest',
    'Failure',
    'Job',
    'keep',
    'kept_result',
    'library_versions',
    'Lost',
    'News',
    'Result',
    'RETRIES',
    'Runner',
    'Started',
    'Telling',
]

Result = dict[str, Any]
"""Of a run: ``config``, ``rows`` (one an evaluation), ``record``, ``seconds``, ``code``."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A run that is to be done."""

    variant: Variant
    seed: int

    @property
    def config(self) -> TrainConfig:
        """Every choice of the run."""
        variant = self.variant
        return make_config(
            variant.task, variant.algorithm, variant.preset, self.seed, dict(variant.changes)
        )

    @property
    def digest(self) -> str:
        """What changes with any choice, and with the code."""
        choices = [code_digest(), self.variant.recorder, self.config.to_dict()]
        return hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        """Return what people call it."""
        return f'{self.variant.task}, {self.variant.name}, seed {self.seed}'


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a run has no result."""

    reason: str
    """One line."""
    details: str = ''


@dataclasses.dataclass(frozen=True)
class Started:
    """A run has begun."""


@dataclasses.dataclass(frozen=True)
class Lost:
    """The process that did a run is gone; the run is begun again."""

    reason: str


News = Started | Lost | Failure | Result
"""What is heard of a job; a failure or a result is the last of it."""
Telling = Generator[tuple[Job, News], None, None]
Runner = Callable[[Sequence[Job]], Telling]

LIBRARIES = (
    *('numpy', 'scipy', 'torch', 'mujoco', 'gymnasium'),
    # The arms are theirs.
    *('gymnasium-robotics', 'metaworld'),
)
RETRIES = 2
"""Times that a run is begun again after its process was lost."""


def attempt(job: Job, code: str) -> Result | Failure:
    """
    Do the run; what goes wrong in it is returned, so that it sinks no other.

    ``code`` is the digest of the code that asks: other code would do another run.
    """
    # Read anew: this process may have done other runs before the files were changed.
    here = _digest_now()
    if code != here:
        return Failure(
            f'here is other code ({here}) than where it was asked for ({code}): it was '
            'changed meanwhile, or differs between machines'
        )
    try:
        return _run(job)
    except Exception as error:
        text = ' '.join(str(error).split())
        reason = text if isinstance(error, MherError) else f'{type(error).__name__}: {text}'
        return Failure(reason, traceback.format_exc())


def kept_result(job: Job, folder: Path) -> Result | None:
    """
    Return the result of a run that was done before, if there is one.

    One that a neighbouring experiment has kept will do as well, and is copied: many experiments
    share variants.
    """
    path = _path(job, folder)
    if not path.exists():
        for neighbour in folder.parent.parent.glob(f'*/{folder.name}/*-{job.digest}.json'):
            write_atomically(path, neighbour.read_bytes())
            break
        else:
            return None
    result: Result = json.loads(path.read_text())
    return result


def keep(job: Job, result: Result, folder: Path) -> None:
    """Write the result of a run where ``kept_result`` finds it."""
    write_atomically(_path(job, folder), json.dumps(result).encode())


@functools.cache
def code_digest() -> str:
    """Return a hash of what a run depends on, source and libraries, as it was at first asking."""
    return _digest_now()


def _digest_now() -> str:
    root = Path(mher_ros.__file__).parent
    sources = [root / 'interface.py', root / 'options.py']
    for folder in ('control', 'experiments/recorders', 'learning', 'tasks'):
        sources += sorted((root / folder).rglob('*.py'))
    digest = hashlib.sha256(library_versions().encode())
    for path in sources:
        digest.update(f'{path.relative_to(root).as_posix()}\0'.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def library_versions() -> str:
    """Return what decides the bits of a run beside its source."""
    return ', '.join(f'{name} {importlib.metadata.version(name)}' for name in LIBRARIES)


def _run(job: Job) -> Result:
    # Torch is imported where runs are done, not where they are counted.
    from mher_ros.learning.run import train_unkept

    started = time.monotonic()
    config = job.config
    if job.variant.recorder:
        recorder = make_recorder(job.variant.recorder, config)
        rows = train_unkept(config, [recorder], recorder.watch).rows
        record = recorder.record
    else:
        rows, record = train_unkept(config).rows, {}
    # As JSON would have it, so that a run just done equals the same one read from its file.
    return json.loads(
        json.dumps(
            {
                'config': config.to_dict(),
                'rows': rows,
                'record': record,
                'seconds': round(time.monotonic() - started, 3),
                'code': code_digest(),
                'versions': library_versions(),
            }
        )
    )


def _path(job: Job, folder: Path) -> Path:
    variant = job.variant
    name = '-'.join((variant.task, variant.name, f'seed{job.seed}', job.digest))
    return folder / f'{name.replace(" ", "_").replace("/", "_")}.json'
