"""An arm that stays where it is, and tells several nodes of it in turn."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import subprocess
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, TwistStamped
from mher_ros.bench.memory import resident_memory
from mher_ros.control.robot import Topics
from mher_ros.errors import ArmError
from mher_ros.ros.inbox import Inbox, LATCHED, SPEAKING
from mher_ros.ros.wire import JointStateWriter
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf import urdf_of
import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

__all__ = ['RestingArm']

TASK = 'fetch_reach'
TREMBLE = 1e-6
"""Of every joint, as of real ones at rest [rad]."""
START = 60.0
"""Time within which nodes must answer [s]."""
LISTEN = 0.05
"""Time between two looks at what nodes say of themselves [s]."""
GOAL_AGAIN = 1.0
"""Time after which a node that has no goal is given it again [s]."""


class RestingArm:
    """
    One arm behind the topics of each of several namespaces.

    The first of them is that of a policy_node; its goal is where the tool is. Commands are
    received, as by any arm, and not obeyed.
    """

    def __init__(
        self,
        context: Context,
        nodes: Mapping[str, subprocess.Popen[bytes]],
        output: str,
        rate: float,
        tremble: float = TREMBLE,
    ) -> None:
        """Tell ``nodes``, processes by namespace, ``rate`` states [1/s] each."""
        self._tremble = tremble
        plant = JointPlant(TASK)
        self._nodes, self._period = nodes, 1.0 / rate
        self._node = node = rclpy.create_node('resting_arm', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
        self._writer = JointStateWriter(plant.joint_names, plant.frame)
        self._positions, self._velocities = plant.joint_state()
        topics = dataclasses.asdict(Topics())
        model = String(data=urdf_of(plant.model, 'fetch', plant.joint_names, plant.frame))
        kind = TwistStamped if output == 'twist' else JointTrajectory
        self._states, self._commands, self._models = {}, [], []
        for namespace in nodes:
            topic = f'{namespace}/{topics["joint_states"]}'
            self._states[namespace] = node.create_publisher(JointState, topic, SPEAKING)
            self._commands.append(Inbox(node, kind, f'{namespace}/{topics[output]}'))
            topic = f'{namespace}/{topics["robot_description"]}'
            self._models.append(node.create_publisher(String, topic, LATCHED))
            self._models[-1].publish(model)
        self._policy = next(iter(nodes))
        self._goals = node.create_publisher(PointStamped, f'{self._policy}/clicked_point', 5)
        self._goal = PointStamped()
        self._goal.header.frame_id = plant.frame
        place = self._goal.point
        place.x, place.y, place.z = plant.tool_pose()[0].tolist()
        node.create_subscription(DiagnosticArray, '/diagnostics', self._take, 10)
        self._silent, self._said = True, 'nothing'
        self._memory: list[float] = []
        self._told = 0
        self._listen = self._ask = 0.0

    def wait_for_answers(self) -> None:
        """Tell states until all nodes answer them."""
        deadline = time.monotonic() + START
        while self._silent:
            if time.monotonic() > deadline:
                raise ArmError(
                    f'policy_node should answer joint states within {START:g} s, and does not; '
                    f'it says {self._said}'
                )
            self.tell(10)

    def tell(self, states: int) -> dict[str, list[int]]:
        """Tell each node so many states; return when each was published, by namespace [ns]."""
        times: dict[str, list[int]] = {namespace: [] for namespace in self._nodes}
        part = self._period / len(times)
        due = time.monotonic()
        for _ in range(states):
            # An arm whose numbers never change would be taken for one that is not heard of.
            seen = self._positions + self._tremble * (self._told % 2)
            for namespace, told in times.items():
                # Late is late: two states at once would be one to a node.
                due = max(due + part, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
                told.append(time.time_ns())
                self._states[namespace].publish(
                    self._writer.write(told[-1], seen, self._velocities)
                )
            self._told += 1
            if time.monotonic() > self._listen:
                self._listen = time.monotonic() + LISTEN
                self._look_after()
        return times

    def memory_growth(self) -> float:
        """Return how much memory policy_node gained since the second tenth of the time [MB]."""
        tenth = max(1, len(self._memory) // 10)
        late, early = self._memory[-tenth:], self._memory[tenth : 2 * tenth]
        return float(np.median(late) - np.median(early or late))

    def close(self) -> None:
        """Leave."""
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()

    def _look_after(self) -> None:
        self._executor.spin_once(timeout_sec=0.0)
        for namespace, process in self._nodes.items():
            if process.poll() is not None:
                raise ArmError(f'the node in {namespace} has ended, code {process.returncode}')
        # A machine that stood still for long enough has cost the node its goal.
        if self._silent and time.monotonic() > self._ask:
            self._ask = time.monotonic() + GOAL_AGAIN
            self._goal.header.stamp = self._node.get_clock().now().to_msg()
            self._goals.publish(self._goal)

    def _take(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if f'/{status.name}' == f'{self._policy}/policy_node':
                self._said = status.message
                figures: dict[str, Any] = {pair.key: pair.value for pair in status.values}
                self._silent = float(figures.get('median latency [us]', 0.0)) == 0.0
                self._memory.append(resident_memory(self._nodes[self._policy].pid))
