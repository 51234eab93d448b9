"""A policy on a simulated arm, watched from outside: goals in, the simulator's word on them."""

from __future__ import annotations

import os
from pathlib import Path
import sys
import time
from typing import NamedTuple

from geometry_msgs.msg import PoseStamped
from mher_ros.control.robot import load_robot
from mher_ros.control.workspace import Workspace
from mher_ros.errors import ArmError
from mher_ros.interface import TaskInterface
from mher_ros.ros.goal_client import GoalClient
from mher_ros.ros.loopback import loopback_profile
from mher_ros.ros.node_process import node_process
import numpy as np
from numpy.typing import NDArray
import rclpy
from rclpy.context import Context
from sensor_msgs.msg import JointState

__all__ = ['deployed_workspace', 'reach_goals', 'Trial']

Vector = NDArray[np.float64]

RATE = 100.0
"""Poses of the tool in a second."""
TIMEOUT = 8.0
"""Time after which a goal is given up [s]."""
SETTLE = 2.0
"""Time at the goal before it is judged [s]; motion is that of the last second."""

BUSY = 30.0
"""Time for which a busy machine is waited for [s]."""


class Trial(NamedTuple):
    """What became of one goal, in the arm's base frame."""

    goal: Vector
    """(3,) [m]"""
    error: float
    """Distance of the tool from it at the end [m]."""
    motion: float
    """Peak to peak over the last second [m]."""
    seconds: float
    """Time until the tool first was near enough [s]; infinite if it never was."""
    way: Vector
    """Where the tool was (p, 3) [m]."""
    joints: dict[str, float]
    """Where the joints are at the end [rad or m]."""
    accepted: bool
    """Whether policy_node took the goal."""


def deployed_workspace(interface: TaskInterface, robot: str) -> Workspace:
    """Return the workspace of a policy as policy_node has it on a robot."""
    config = load_robot(robot)
    return Workspace(
        interface.goal_low,
        interface.goal_high,
        config.workspace.origin,
        config.workspace.scale,
        None if config.box is None else (config.box.low, config.box.high),
    )


def reach_goals(
    robot: str, policy: Path, goals: Vector, threshold: float, output: str = 'robot'
) -> list[Trial]:
    """
    Start sim_node and policy_node, and send the arm to ``goals`` (g, 3) [m] one after the other.

    Near enough is within ``threshold`` [m]. A goal is judged ``SETTLE`` seconds later.
    """
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.update(loopback_profile(os.environ))
    simulated: dict[str, str | float] = {'robot': robot, 'output': output, 'view_rate': RATE}
    deployed = {'robot': robot, 'policy': str(policy), 'output': output}
    context = Context()
    with (
        node_process('sim_node', simulated) as arm,
        node_process('policy_node', deployed) as node,
    ):
        rclpy.init(args=[], context=context)
        client = GoalClient(
            load_robot(robot).base_frame, rclpy.create_node('goal_client', context=context)
        )
        try:
            client.wait_until_ready(60.0)
            watch = _Watch(client)
            trials = []
            for number, goal in enumerate(goals, 1):
                for name, process in (('sim_node', arm), ('policy_node', node)):
                    if process.poll() is not None:
                        raise ArmError(f'{name} has ended with code {process.returncode}')
                trials.append(watch.follow(goal, threshold))
                refused = '' if trials[-1].accepted else ', it was not accepted'
                print(
                    f'goal {number} of {len(goals)}: {1000.0 * trials[-1].error:.1f} mm, '
                    f'{trials[-1].seconds:.2f} s{refused}',
                    file=sys.stderr,
                    flush=True,
                )
            return trials
        finally:
            client.close()
            context.try_shutdown()


class _Watch:
    """Where the tool is, by the simulator's word."""

    def __init__(self, client: GoalClient) -> None:
        self._client = client
        self._way: list[tuple[float, Vector]] = []
        self._joints: dict[str, float] = {}
        client.node.create_subscription(PoseStamped, 'tool_pose', self._take_pose, 10)
        client.node.create_subscription(JointState, 'joint_states', self._take_joints, 1)

    def follow(self, goal: Vector, threshold: float) -> Trial:
        """Send a goal and watch what comes of it."""
        self._way.clear()
        self._client.go_to(goal)
        start = time.monotonic()
        arrived = np.inf
        while (now := time.monotonic()) < start + min(TIMEOUT, arrived + SETTLE):
            self._client.spin(0.01)
            if self._way and arrived == np.inf:
                if np.linalg.norm(self._way[-1][1] - goal) <= threshold:
                    arrived = now - start
        # Judged by a second in which it was seen all the time; a busy machine may take longer.
        while len(last := self._last_second()) < RATE / 4:
            if time.monotonic() > now + BUSY:
                raise ArmError(
                    f'expected {RATE:.0f} poses of the tool in a second, got {len(last)}'
                )
            self._client.spin(0.01)
        return Trial(
            goal,
            float(np.linalg.norm(last[-1] - goal)),
            float(np.linalg.norm(last.max(axis=0) - last.min(axis=0))),
            arrived,
            np.array([place for _, place in self._way]),
            dict(self._joints),
            self._client.goal is not None,
        )

    def _last_second(self) -> Vector:
        """Return where the tool was (p, 3) [m] in the last second."""
        start = time.monotonic() - 1.0
        return np.array([place for told, place in self._way if told > start])

    def _take_pose(self, message: PoseStamped) -> None:
        place = message.pose.position
        self._way.append((time.monotonic(), np.array([place.x, place.y, place.z])))

    def _take_joints(self, message: JointState) -> None:
        self._joints = dict(zip(message.name, message.position, strict=True))
