"""How much the page in a browser slows policy_node down."""

from collections.abc import Iterator
import contextlib
import itertools
from pathlib import Path
import shutil
import subprocess
import tempfile
import time
from typing import Any

from mher_ros.bench.response_times import histogram, summary
from mher_ros.bench.result import BenchError, ratio_bars, Result
from mher_ros.bench.stationary_arm import measuring, policy_parameters, StationaryArm
from mher_ros.bench.timing import log_progress, ratio_cell, ratio_figures
from mher_ros.experiments.tables import Table
from mher_ros.ros.common.node_process import node_process
from mher_ros.ros.common.status import subscribe_status, ViewStatus
import numpy as np

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = (
    *('--headless', '--no-sandbox', '--remote-debugging-port=0', '--use-angle=swiftshader'),
    *('--enable-unsafe-swiftshader', '--window-size=1000,700'),
)
"""Without a graphics card, the browser draws on the cores that command the arm."""
OUTPUT, RATE = 'twist', 100
NAMESPACE = '/watched'
JITTER = 2e-3  # change of each joint between two states, so that the page has to draw [rad]
START_TIMEOUT = 60.0  # time within which a browser must open the page [s]
WARM_UP = 2  # time at the start of each turn that is not measured [s]
OPEN, CLOSED = 'open', 'closed'
NOTE = (
    f'{RATE} joint states per second of an arm that visibly trembles, answered with twists. Turns '
    'alternate: with the page open in a headless browser without a graphics card, and without '
    'view_node and browser. Microseconds on this machine, medians over turns, from the receipt of '
    'a joint state to the end of publishing its command.'
)


def measure(seconds: int, rounds: int, seed: int, policy: str | None = None) -> Result:
    """Time the commands of policy_node with and without the page, for ``seconds`` per turn."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise BenchError(f'found no browser; expected one of {", ".join(BROWSERS)}')
    published: dict[str, list[list[int]]] = {OPEN: [], CLOSED: []}
    with measuring(policy, seed) as (path, context), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'responses.npy'
        parameters = policy_parameters(path, OUTPUT, RATE)
        # A starting browser may delay the process that publishes the joint states.
        parameters['safety.state_timeout'] = 1.0
        module = 'mher_ros.bench.response_times'
        with contextlib.ExitStack() as stack:
            node = stack.enter_context(
                node_process(str(file), parameters, namespace=NAMESPACE, module=module)
            )
            arm = StationaryArm(context, {NAMESPACE: node}, OUTPUT, RATE, JITTER)
            stack.callback(arm.close)
            arm.wait_for_answers()
            for number, (state, turns) in itertools.product(range(rounds), published.items()):
                log_progress(f'round {number + 1} of {rounds}, {state}')
                with _open_page(arm, browser) if state == OPEN else contextlib.nullcontext():
                    arm.wait_for_answers()
                    arm.publish_states(WARM_UP * RATE)
                    turns.append(arm.publish_states(seconds * RATE + 1)[NAMESPACE])
        responses = np.load(file)
    summaries = {
        state: [summary(responses, times) for times in turns] for state, turns in published.items()
    }
    samples = {
        f'answers_with_the_page_{state}_by_microseconds': [
            histogram(responses, times) for times in turns
        ]
        for state, turns in published.items()
    }
    return result_of(summaries, seconds, samples)


def result_of(
    summaries: dict[str, list[dict[str, Any]]], seconds: int, samples: dict[str, Any]
) -> Result:
    """Return the result from the summary of each turn, by state of the page."""
    medians = {state: [one['median_us'] for one in turns] for state, turns in summaries.items()}
    figures = {
        **ratio_figures('ratio', medians, OPEN, CLOSED),
        'seconds': seconds,
        'turns': summaries,
    }
    rows = []
    for state, turns in summaries.items():
        times = (np.median(medians[state]), np.median([one['p99_us'] for one in turns]))
        missed = f'{sum(one["missed"] for one in turns)} of {len(turns) * seconds * RATE}'
        ratio = ratio_cell(medians, state, CLOSED)
        rows.append((f'page {state}', *(f'{value:.0f}' for value in times), missed, ratio))
    header = ('', 'median', 'p99', 'missed', 'median over page closed')
    table = Table('Latency of policy_node', header, tuple(rows), NOTE)
    return Result(figures, (table,), samples, ratio_bars((table,)))


@contextlib.contextmanager
def _open_page(arm: StationaryArm, browser: str) -> Iterator[None]:
    """Open the page in a browser; joint states are published meanwhile."""
    received = [ViewStatus()]

    def wait_for(key: str) -> Any:
        """Return a field of view_node's status once it is neither empty nor 0."""
        deadline = time.monotonic() + START_TIMEOUT
        while not getattr(received[-1], key):
            if time.monotonic() > deadline:
                raise BenchError(f'view_node has no {key} within {START_TIMEOUT:g} s')
            arm.publish_states(10)
        return getattr(received[-1], key)

    with (
        node_process('view_node', {'port': 0}, namespace=NAMESPACE),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        subscribe_status(arm.node, ViewStatus, f'{NAMESPACE}/view_node', received.append)
        process = subprocess.Popen(
            [browser, *FLAGS, f'--user-data-dir={profile}', wait_for('address')],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for('browsers')
            yield
        finally:
            process.terminate()
            process.wait()
