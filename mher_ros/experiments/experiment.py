"""An experiment: variants of a training run, each over several seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
from pathlib import Path
import tempfile
import threading
from typing import Any

import mher_ros
from mher_ros.files import write_atomically
from mher_ros.learning.config import make_config
from mher_ros.learning.progress import Row
from mher_ros.learning.run import start_training
from mher_ros.options import OptionError

__all__ = ['Experiment', 'run_experiment', 'Variant']

Rows = list[Row]


@dataclasses.dataclass(frozen=True)
class Variant:
    """One line of an experiment's table."""

    name: str
    task: str
    algorithm: str = 'mher'
    preset: str = 'fast'
    changes: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What is compared, and which figure of the runs is looked at."""

    name: str
    question: str
    variants: tuple[Variant, ...]
    measures: tuple[str, ...]
    """Names of figures, see ``tables.MEASURES``; each makes a table."""


def run_experiment(
    experiment: Experiment, seeds: Sequence[int], folder: Path, processes: int | None = None
) -> Iterator[tuple[Variant, int, Rows]]:
    """
    Yield the rows of every run as it ends.

    A run that is already in ``folder`` is read from there, so an interrupted experiment goes on
    where it was.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f'cannot write into the folder {folder}: {error.strerror}') from error
    waiting = []
    for seed in seeds:
        for variant in experiment.variants:
            path = _result_path(folder, variant, seed)
            if path.exists():
                yield variant, seed, json.loads(path.read_text())['rows']
            else:
                waiting.append((variant, seed))
    if not waiting:
        return
    context = multiprocessing.get_context('spawn')
    workers = processes or len(os.sched_getaffinity(0))
    with concurrent.futures.ProcessPoolExecutor(
        workers, mp_context=context, initializer=_end_with_parent
    ) as pool:
        running = {
            pool.submit(_run_once, variant, seed, folder): (variant, seed)
            for variant, seed in waiting
        }
        try:
            for done in concurrent.futures.as_completed(running):
                variant, seed = running[done]
                yield variant, seed, done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _end_with_parent() -> None:
    """Leave no run behind when the experiment is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_once(variant: Variant, seed: int, folder: Path) -> Rows:
    config = make_config(
        variant.task, variant.algorithm, variant.preset, seed, dict(variant.changes)
    )
    with tempfile.TemporaryDirectory() as scratch:
        trainer, _ = start_training(Path(scratch) / 'run', config, workers=1, export=False)
    result = {'variant': variant.name, 'config': config.to_dict(), 'rows': trainer.rows}
    write_atomically(_result_path(folder, variant, seed), json.dumps(result).encode())
    return trainer.rows


def _result_path(folder: Path, variant: Variant, seed: int) -> Path:
    """Return where the run's result lies: the name changes with its choices and with the code."""
    config = make_config(
        variant.task, variant.algorithm, variant.preset, seed, dict(variant.changes)
    )
    choices = json.dumps(config.to_dict(), sort_keys=True).encode()
    digest = hashlib.sha256(_code_digest() + choices).hexdigest()[:12]
    return folder / f'{variant.name.replace(" ", "_").replace("/", "_")}-seed{seed}-{digest}.json'


@functools.cache
def _code_digest() -> bytes:
    """Return a hash of all source that a run depends on."""
    root = Path(mher_ros.__file__).parent
    sources = [root / 'interface.py']
    for folder in ('control', 'learning', 'tasks'):
        sources += sorted((root / folder).glob('*.py'))
    return hashlib.sha256(b''.join(path.read_bytes() for path in sources)).digest()
