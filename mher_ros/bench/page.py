"""What the page in the browser costs policy_node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
from pathlib import Path
import shutil
import subprocess
import tempfile
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from mher_ros.bench.answer_times import histogram, summary, taken_by
from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.deploy import deployed_policy
from mher_ros.bench.measured import BenchError, Measured
from mher_ros.bench.resting_arm import RestingArm
from mher_ros.bench.timing import ratio_cell, ratio_figures, tell
from mher_ros.experiments.table import Table
from mher_ros.policy.run import load as load_policy
from mher_ros.ros.node_process import node_process
import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor

__all__ = ['findings', 'measure']

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = (
    '--headless',
    '--no-sandbox',
    '--remote-debugging-port=0',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
    '--window-size=1000,700',
)
"""As on a machine without a graphics card: the browser draws on the cores that lead the arm."""
ROBOT, OUTPUT, RATE = 'fetch', 'twist', 100
NAMESPACE = '/watched'
SWING = 2e-3
"""By how much each joint swings, so that there is always something to draw [rad]."""
START = 60.0
"""Time in which a browser must have opened the page [s]."""
WARM_UP = 2
"""Time at the start of each turn that does not count [s]."""
OPEN, CLOSED = 'open', 'closed'
EXPLAINED = (
    f'{RATE} joint states a second of an arm that trembles visibly, answered with twists; a turn '
    'with the page open in a headless browser that draws without a graphics card, then one '
    'without view_node and browser. Microseconds of this machine, medians of turns, from the '
    'receipt of a joint state to the end of publishing its command.'
)


def measure(seconds: int, rounds: int, seed: int, policy: str | None = None) -> Measured:
    """Look how fast policy_node answers with the page open and without, ``seconds`` a turn."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise BenchError(f'a browser is needed, one of {", ".join(BROWSERS)}; there is none')
    path = Path(policy) if policy else deployed_policy(ROBOT, seed)
    load_policy(path)  # Nodes take a while to say that they cannot.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    told: dict[str, list[list[int]]] = {OPEN: [], CLOSED: []}
    context = Context()
    rclpy.init(args=[], context=context)
    parameters: dict[str, Any] = {
        'robot': ROBOT,
        'output': OUTPUT,
        'command_rate': float(RATE),
        'policy': str(path),
        'outside': 'project',
        'safety.goal_timeout': 0.0,
        # A browser that starts may hold up the process that tells the states.
        'safety.state_timeout': 1.0,
    }
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / 'answers.npy'
            with (
                node_process(
                    str(file),
                    parameters,
                    namespace=NAMESPACE,
                    module='mher_ros.bench.noted_policy_node',
                ) as node,
                contextlib.closing(
                    RestingArm(context, {NAMESPACE: node}, OUTPUT, RATE, SWING)
                ) as arm,
            ):
                arm.wait_for_answers()
                for number in range(rounds):
                    for state, turns in told.items():
                        tell(f'round {number + 1} of {rounds}, {state}')
                        with contextlib.ExitStack() as at_the_end:
                            if state == OPEN:
                                at_the_end.enter_context(
                                    _open_page(context, browser, lambda: arm.tell(10))
                                )
                            arm.wait_for_answers()
                            arm.tell(WARM_UP * RATE)
                            turns.append(arm.tell(seconds * RATE + 1)[NAMESPACE])
            answers = np.load(file)
    finally:
        context.try_shutdown()
    summaries = {
        state: [summary(answers, times) for times in turns] for state, turns in told.items()
    }
    raw = {
        f'answers_with_the_page_{state}_by_microseconds': [
            histogram(taken_by(answers, times)) for times in turns
        ]
        for state, turns in told.items()
    }
    return findings(summaries, seconds, raw)


def findings(
    summaries: dict[str, list[dict[str, Any]]], seconds: int, raw: dict[str, Any]
) -> Measured:
    """Return what summaries of turns with the page open and closed show."""
    samples = {state: [one['median_us'] for one in turns] for state, turns in summaries.items()}
    figures = {
        **ratio_figures('ratio', samples, OPEN, CLOSED),
        'seconds': seconds,
        'turns': summaries,
    }
    rows = []
    for state, turns in summaries.items():
        missed = sum(one['missed'] for one in turns)
        rows.append(
            (
                f'page {state}',
                f'{np.median(samples[state]):.0f}',
                f'{np.median([one["p99_us"] for one in turns]):.0f}',
                f'{missed} of {len(turns) * seconds * RATE}',
                ratio_cell(samples, state, CLOSED),
            )
        )
    header = ('', 'median', 'p99', 'missed', 'median over page closed')
    table = Table('Latency of policy_node', header, tuple(rows), EXPLAINED)
    return Measured(figures, (table,), raw, ratio_bars((table,)))


@contextlib.contextmanager
def _open_page(context: Context, browser: str, go_on: Callable[[], object]) -> Iterator[None]:
    """Have a browser look at the arm; ``go_on`` keeps the arm going until it does."""
    with (
        node_process('view_node', {'port': 0}, namespace=NAMESPACE),
        contextlib.closing(_Watcher(context)) as watcher,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        address = watcher.wait_for('address', go_on)
        process = subprocess.Popen(
            [browser, *FLAGS, f'--user-data-dir={profile}', address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            watcher.wait_for('browsers', go_on)
            yield
        finally:
            process.terminate()
            process.wait()


class _Watcher:
    """Hears what view_node says of itself."""

    def __init__(self, context: Context) -> None:
        self._node = rclpy.create_node('page_watcher', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._figures: dict[str, str] = {}
        self._node.create_subscription(DiagnosticArray, '/diagnostics', self._take, 10)

    def wait_for(self, key: str, go_on: Callable[[], object]) -> str:
        """Return a figure once it is neither empty nor 0."""
        deadline = time.monotonic() + START
        while self._figures.get(key, '') in ('', '0'):
            if time.monotonic() > deadline:
                raise BenchError(
                    f'view_node should tell its {key} within {START:g} s; it does not'
                )
            go_on()
            self._executor.spin_once(timeout_sec=0.0)
        return self._figures[key]

    def close(self) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()

    def _take(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if f'/{status.name}' == f'{NAMESPACE}/view_node':
                self._figures = {pair.key: pair.value for pair in status.values}
