"""How long policy_node takes to answer a joint state, against a node that does nothing else."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
import sys
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.deploy import deployed_policy
from mher_ros.bench.measured import Measured
from mher_ros.bench.memory import resident_memory
from mher_ros.errors import ArmError
from mher_ros.experiments.table import Table
from mher_ros.ros.goal_client import GoalClient
from mher_ros.ros.inbox import LATCHED, SPEAKING
from mher_ros.ros.node_process import node_process
from mher_ros.ros.wire import JointStateWriter
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf import urdf_of
import numpy as np
import rclpy
from rclpy.context import Context
from sensor_msgs.msg import JointState
from std_msgs.msg import String

__all__ = ['measure']

ROBOT, TASK = 'fetch', 'fetch_reach'
RATE = 100.0
"""Joint states in a second."""
OUTPUTS = ('twist', 'joint_trajectory')
TREMBLE = 1e-6
"""Of every joint, as of real ones at rest [rad]."""
WARM_UP = 3
"""Seconds at the start that do not count."""


def measure(seconds: int, seed: int, policy: str | None = None) -> Measured:
    """
    Publish the joint states of an arm that stays where it is, and ask nodes how fast they answer.

    For each of ``OUTPUTS`` there is a policy_node, with a goal where the tool is, and an echo_node
    with the same topics, QoS and way to wait; they get their states in turn. Latency is from
    receipt (the middleware's time stamp) to the end of ``publish``; figures are medians over
    seconds of medians of each second. A deadline is the time of the next state.
    """
    path = Path(policy) if policy else deployed_policy(ROBOT, seed)
    plant = JointPlant(TASK)
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    with contextlib.ExitStack() as at_the_end:
        context = Context()
        rclpy.init(args=[], context=context)
        at_the_end.callback(context.try_shutdown)
        subjects = []
        for output in OUTPUTS:
            deployed: dict[str, str | float] = {
                'robot': ROBOT,
                'policy': str(path),
                'output': output,
                'outside': 'project',
                'safety.goal_timeout': 0.0,
            }
            for name, parameters, module in (
                ('policy_node', deployed, 'mher_ros.ros'),
                (output, {}, 'mher_ros.bench.echo_node'),
            ):
                kind = 'policy' if name == 'policy_node' else 'echo'
                namespace = f'/{kind}_{output}'
                process = at_the_end.enter_context(
                    node_process(name, parameters, namespace=namespace, module=module)
                )
                subjects.append(_Subject(context, namespace, process.pid, plant))
                at_the_end.callback(subjects[-1].client.close)
        _run(subjects, seconds, plant)
    figures = _figures(subjects, seconds)
    rows = tuple(
        (
            output,
            f'{one["policy_us"]:.0f} us',
            f'{one["echo_us"]:.0f} us',
            f'{one["policy_missed"]} and {one["echo_missed"]} of {one["states"]}',
            f'{one["ratio"]:.2f}',
        )
        for output, one in figures['outputs'].items()
    )
    header = ('output', 'policy_node', 'echo', 'deadlines missed', 'ratio')
    table = Table(f'{RATE:.0f} joint states a second, median', header, rows)
    samples = {subject.name: subject.medians for subject in subjects}
    return Measured(figures, (table,), samples, ratio_bars((table,)))


class _Subject:
    """A node, what it is told, and what it tells of itself."""

    def __init__(self, context: Context, namespace: str, process: int, plant: JointPlant) -> None:
        self.name, self.process = namespace.lstrip('/'), process
        node = rclpy.create_node('bench_latency', namespace=namespace, context=context)
        self.client = GoalClient(plant.frame, node)
        self._states = node.create_publisher(JointState, 'joint_states', SPEAKING)
        self._model = node.create_publisher(String, 'robot_description', LATCHED)
        self._model.publish(
            String(data=urdf_of(plant.model, 'fetch', plant.joint_names, plant.frame))
        )
        node.create_subscription(DiagnosticArray, '/diagnostics', self._take, 10)
        self.medians: list[float] = []
        self.memory: list[float] = []
        self.missed: list[int] = []
        self.silent, self.silent_seconds = True, 0
        self.text = 'silent'

    @property
    def is_policy(self) -> bool:
        """Whether it is a policy_node, which must be given a goal."""
        return self.name.startswith('policy')

    @property
    def is_listening(self) -> bool:
        """Whether it takes joint states yet."""
        return bool(self._states.get_subscription_count())

    def tell(self, state: bytes) -> None:
        """Publish a joint state."""
        self._states.publish(state)

    def _take(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if not status.name.startswith(self.name):
                continue
            self.text = status.message
            figures = {pair.key: pair.value for pair in status.values}
            if 'median latency [us]' in figures:
                median = float(figures['median latency [us]'])
                # A machine that stood still for long enough has cost the node its goal.
                self.silent = not median
                self.silent_seconds += self.silent and bool(self.medians)
                if self.silent:
                    continue
                self.medians.append(median)
                self.missed.append(int(figures['deadlines missed']))
                self.memory.append(resident_memory(self.process))


def _run(subjects: list[_Subject], seconds: int, plant: JointPlant) -> None:
    writer = JointStateWriter(plant.joint_names, plant.frame)
    positions, velocities = plant.joint_state()
    goal, _ = plant.tool_pose()
    waiting = time.monotonic() + 60.0
    while not all(subject.is_listening for subject in subjects):
        if time.monotonic() > waiting:
            raise ArmError('the nodes have not started within 60 s')
        for subject in subjects:
            subject.client.spin(0.02)
    start = due = time.monotonic()
    part = 1.0 / RATE / len(subjects)
    told = 0
    while due < start + seconds + WARM_UP:
        for subject in subjects:
            due += part
            # What the nodes say of themselves is heard in the time that is left.
            subject.client.spin(max(0.0, due - time.monotonic()))
            # An arm whose numbers never change would be taken for one that is not heard of.
            seen = positions + TREMBLE * (told % 2)
            subject.tell(writer.write(time.time_ns(), seen, velocities))
            if subject.is_policy and subject.silent and told % int(RATE) == 50:
                subject.client.go_to(goal)
        told += 1
        if told % int(5 * RATE) == 0:
            print(f'{due - start:.0f} of {seconds + WARM_UP} s', file=sys.stderr, flush=True)


def _figures(subjects: list[_Subject], seconds: int) -> dict[str, Any]:
    outputs = {}
    for output in OUTPUTS:
        policy, echo = (
            next(subject for subject in subjects if subject.name == f'{kind}_{output}')
            for kind in ('policy', 'echo')
        )
        if len(policy.medians) < WARM_UP + 2:
            raise ArmError(f'policy_node with output {output} sends nothing: {policy.text}')
        times = [float(np.median(subject.medians[WARM_UP:])) for subject in (policy, echo)]
        tenth = max(1, len(policy.memory) // 10)
        outputs[output] = {
            'ratio': times[0] / times[1],
            'policy_us': times[0],
            'echo_us': times[1],
            'policy_missed': policy.missed[-1] - policy.missed[WARM_UP],
            'echo_missed': echo.missed[-1] - echo.missed[WARM_UP],
            'states': int(seconds * RATE),
            'silent_seconds': policy.silent_seconds,
            'memory_growth_mb': float(
                np.median(policy.memory[-tenth:]) - np.median(policy.memory[tenth : 2 * tenth])
            ),
        }
    return {
        'ratio': outputs['twist']['ratio'],
        'joint_ratio': outputs['joint_trajectory']['ratio'],
        'seconds': seconds,
        'outputs': outputs,
    }
