"""Jobs over a Ray cluster, or over a small one that lives as long as the experiment."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
import contextlib
import importlib
import logging
import os
import socket
from typing import Any

from mher_ros.experiments.jobs import (
    attempt,
    code_digest,
    Failure,
    Job,
    News,
    RETRIES,
    Started,
    Telling,
)
from mher_ros.experiments.local import cores
from mher_ros.options import OptionError

__all__ = ['run_on_ray']

OBJECT_STORE = 100 * 1024**2
"""Bytes; a result is some hundred kilobytes."""
ANSWERS_WITHIN = 10.0
"""Seconds."""
EMBEDDED = {
    # Ray's name for it; on Linux, too, it keeps all of a cluster on the loopback interface.
    'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER': '0',
    'RAY_USAGE_STATS_ENABLED': '0',
}


def run_on_ray(
    jobs: Sequence[Job], address: str | None = None, processes: int | None = None
) -> Telling:
    """
    Do the jobs on the cluster at ``address``, or on one of this machine's cores.

    Every node needs the same mher_ros, and nothing else in common: results come back through Ray.
    A job whose worker dies is begun again by Ray itself.
    """
    if address is not None and processes is not None:
        raise OptionError('a cluster of its own decides how many runs are done at once')
    with _cluster(address, processes) as ray:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(attempt)
        running = {remote.remote(job, code_digest()): job for job in jobs}
        # Ray takes them in their order and does not tell when; it has one core for each.
        queue = collections.deque(jobs)
        for _ in range(min(int(ray.cluster_resources().get('CPU', 1)), len(queue))):
            yield queue.popleft(), Started()
        while running:
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), _outcome(ray, done)
            if queue:
                yield queue.popleft(), Started()


@contextlib.contextmanager
def _cluster(address: str | None, processes: int | None) -> Iterator[Any]:
    if address is None:
        for key, value in EMBEDDED.items():
            os.environ.setdefault(key, value)
    try:
        ray = importlib.import_module('ray')
    except ImportError:
        raise OptionError(
            "--on ray needs the package ray: pip install 'mher_ros[ray]', or pip install ray"
        ) from None
    if address is not None:
        _check_that_it_answers(address)
    quiet = {'log_to_driver': False, 'logging_level': logging.ERROR}
    try:
        if address is None:
            ray.init(
                address='local',
                num_cpus=processes or cores(),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                **quiet,
            )
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f'at {address}' if address else 'of its own'
        raise OptionError(f'no Ray cluster {where}: {error}') from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_that_it_answers(address: str) -> None:
    """Find out at once that nobody is there; Ray would try for minutes."""
    host, _, port = address.removeprefix('ray://').rpartition(':')
    if not host or not port.isdecimal():
        raise OptionError(f'a Ray cluster is named HOST:PORT, got {address!r}')
    try:
        socket.create_connection((host, int(port)), timeout=ANSWERS_WITHIN).close()
    except OSError as error:
        raise OptionError(f'no Ray cluster at {address}: {error}') from error


def _outcome(ray: Any, done: Any) -> News:
    try:
        news: News = ray.get(done)
        return news
    except ray.exceptions.RayError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        return Failure(f'{type(error).__name__}: {reason}', str(error))
