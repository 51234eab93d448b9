"""How long policy_node takes to answer a joint state, against nodes that only echo."""

from collections.abc import Sequence
import contextlib
import itertools
import os
from pathlib import Path
import tempfile
from typing import Any

from mher_ros.bench.policies import twist_policy
from mher_ros.bench.response_times import histogram, MIN_STATES, summary
from mher_ros.bench.result import Result
from mher_ros.bench.stationary_arm import ROBOT, StationaryArm
from mher_ros.bench.timing import busy_cores, log_progress
from mher_ros.experiments.tables import Table
from mher_ros.policy.onnx_policy import load as load_policy
from mher_ros.ros.bringup.node_process import node_process
import numpy as np
from rclpy.context import Context

MEASURED = ('twist', 'joint_trajectory')
NODES = {'policy': 'response_times', 'echo': 'echo_node', 'rclpy': 'echo_node'}
"""The node and its baselines, each with the module of ``mher_ros.bench`` that runs it."""
RCLPY_RATE = 100
"""The only rate at which the rclpy echo runs [Hz]; at others it would slow the other nodes."""
TARGETED = ('twist', 100, False)  # output, rate and load of the ratios in the figures
WARM_UP = 1  # time at the start of each condition that is not measured [s]
PERCENTILES = ('median_us', 'p99_us', 'p999_us')
HEADER = (
    *('output, joint states per second', 'policy_node: median', 'p99', 'p99.9'),
    *('answered', 'missed', 'echo: median', 'p99', 'p99.9', 'answered', 'missed'),
    *('states', 'over plain rclpy', 'over the echo'),
)
NOTE = (
    'Microseconds on this machine from the receipt of a joint state by the middleware to the end '
    'of publishing its command. The last two columns are ratios of medians. The echo does not '
    'read the joint state, and publishes a constant command: it shows the cost of waiting and '
    'publishing. Plain rclpy deserialises the joint state, makes a message for the command, and '
    f'computes nothing (at {RCLPY_RATE} Hz only). Answered: commands per state. Missed: states '
    'without an answer before the next state. There is no p99.9 with fewer than '
    f'{MIN_STATES} states. Load: one busy process on every core.'
)


def measure(seconds: int, rates: Sequence[int], seed: int, policy: str | None = None) -> Result:
    """Publish joint states of an arm that does not move, and time the commands that answer."""
    # For each of ``MEASURED`` and each rate [Hz], joint states go in turn to a policy_node, whose
    # goal is the position of the tool, and to an echo_node with the same topics, for ``seconds``
    # without load and as long with load.
    conditions: list[dict[str, Any]] = []
    samples: dict[str, Any] = {}
    path = Path(policy) if policy else twist_policy(seed)
    load_policy(path)  # A bad file fails here at once; nodes would take a while to report it.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    with Context() as context:
        for output, rate in itertools.product(MEASURED, rates):
            found, times = _measure_nodes(context, path, output, rate, seconds)
            conditions += found
            samples |= times
    return result_of(conditions, samples, seconds)


def result_of(
    conditions: Sequence[dict[str, Any]], samples: dict[str, Any], seconds: int
) -> Result:
    """Return the result from figures by output, rate and load; its ratios are ``TARGETED``."""
    targeted: dict[str, Any] = next(
        (one for one in conditions if (one['output'], one['rate'], one['load']) == TARGETED), {}
    )
    figures = {
        **{key: targeted.get(key) for key in ('ratio', 'ratio_vs_rclpy')},
        'seconds': seconds,
        'conditions': conditions,
    }
    rows = tuple(_row(one) for one in conditions)
    table = Table('From a joint state to its command', HEADER, rows, NOTE)
    return Result(figures, (table,), samples)


def _measure_nodes(
    context: Context, policy: Path, output: str, rate: int, seconds: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the figures without and with load, and histograms of response times."""
    echo: dict[str, Any] = {'robot': ROBOT, 'output': output, 'command_rate': float(rate)}
    goals = {'outside': 'project', 'safety.goal_timeout': 0.0}
    parameters = {'policy': {**echo, **goals, 'policy': str(policy)}, 'echo': echo}
    if rate == RCLPY_RATE:
        parameters['rclpy'] = {**echo, 'plain': True}
    published = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / f'{kind}.npy' for kind in parameters}
        with contextlib.ExitStack() as stack:
            nodes = {}
            for kind, file in files.items():
                # A new namespace each time: nodes that have ended stay discovered for a while.
                namespace, module = f'/{kind}_{output}_{rate}', f'mher_ros.bench.{NODES[kind]}'
                nodes[namespace] = stack.enter_context(
                    node_process(str(file), parameters[kind], namespace=namespace, module=module)
                )
            arm = StationaryArm(context, nodes, output, rate)
            stack.callback(arm.close)
            arm.wait_for_answers()
            for load in (False, True):
                log_progress(f'{_name(output, rate, load)}: {seconds} s')
                with busy_cores() if load else contextlib.nullcontext():
                    arm.publish_states(WARM_UP * rate)
                    # One more: the last state only ends the period of the one before.
                    published[load] = arm.publish_states(seconds * rate + 1)
        responses = {kind: np.load(file) for kind, file in files.items()}
    found: list[dict[str, Any]] = []
    histograms: dict[str, Any] = {}
    for load, times in published.items():
        states = dict(zip(parameters, times.values(), strict=True))
        figures = {kind: summary(responses[kind], stamps) for kind, stamps in states.items()}
        median = figures['policy']['median_us']
        ratios = {kind: median / one['median_us'] for kind, one in figures.items()}
        found.append(
            {'ratio': ratios['echo'], 'ratio_vs_rclpy': ratios.get('rclpy'), **figures}
            | {'output': output, 'rate': rate, 'load': load, 'states': seconds * rate}
        )
        histograms[_name(output, rate, load)] = {
            f'answers_of_{kind}_by_microseconds': histogram(responses[kind], stamps)
            for kind, stamps in states.items()
        }
    return found, histograms


def _name(output: str, rate: int, load: bool) -> str:
    return f'{output}, {rate}{", load" if load else ""}'


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    cells = [_name(one['output'], one['rate'], one['load'])]
    for kind in ('policy', 'echo'):
        cells += [_cell(one[kind][key], 0) for key in PERCENTILES]
        cells += [_cell(one[kind]['answered'], 3), _cell(one[kind]['missed'], 0)]
    ratios = (_cell(one[key], 2) for key in ('ratio_vs_rclpy', 'ratio'))
    return (*cells, str(one['states']), *ratios)


def _cell(value: float | None, digits: int) -> str:
    return '-' if value is None else f'{value:.{digits}f}'
