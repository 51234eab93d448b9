"""Runs a policy on a simulated arm, goal by goal, and records the result of the simulator."""

import contextlib
import os
from pathlib import Path
import sys
import time
from typing import NamedTuple

from geometry_msgs.msg import PoseStamped
from mher_ros.errors import ArmError
from mher_ros.interface import Vector
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.bringup.node_process import client_node, node_process
from mher_ros.ros.bringup.node_spec import defaults_for_nodes
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.deploy.goal_client import GoalClient
import numpy as np
from sensor_msgs.msg import JointState

RATE = 100.0  # of tool poses [Hz]
TIMEOUT = 8.0  # time limit of a goal [s]
SETTLE = 2.0  # time at the goal before it is evaluated [s]
BUSY = 30.0  # additional time for poses on a busy machine [s]
# The simulated arm shares the cores with all that is measured, and may publish late.
PATIENT = {'safety.state_timeout': 1.0, 'safety.resume_within': 10.0}


class GoalTrial(NamedTuple):
    """Result of one goal, in the arm's base frame."""

    goal: Vector  # (3,) [m]
    error: float  # distance of the tool from it at the end [m]
    motion: float  # peak to peak over the last second [m]
    seconds: float  # time until the tool was within the threshold [s]; infinite: never
    tool_path: Vector  # positions of the tool (p, 3) [m]
    joints: dict[str, float]  # joint positions at the end [rad or m]
    accepted: bool  # whether policy_node accepted the goal


def run_goal_trials(
    robot: str,
    policy: Path,
    goals: Vector,
    threshold: float,
    output: str = 'robot',
    controller: str = 'policy',
) -> list[GoalTrial]:
    """Start a simulated arm and a policy, and send ``goals`` (g, 3) [m] one by one."""
    os.environ.update(defaults_for_nodes())
    simulated: dict[str, str | float] = {'robot': robot, 'output': output, 'view_rate': RATE}
    deployed: dict[str, str | float] = {'robot': robot, 'policy': str(policy), 'output': output}
    deployed |= {'controller': controller, **PATIENT}
    trials = []
    with (
        node_process('sim_node', simulated) as arm,
        node_process('policy_node', deployed) as node,
        client_node('goal_client') as own,
        contextlib.closing(GoalClient(load_robot(robot).base_frame, own)) as client,
    ):
        client.wait_until_ready(60.0)
        recorder = _Recorder(client)
        for number, goal in enumerate(goals, 1):
            for name, process in (('sim_node', arm), ('policy_node', node)):
                if process.poll() is not None:
                    raise ArmError(f'{name} has ended with code {process.returncode}')
            trial = recorder.run(goal, threshold)
            trials.append(trial)
            refused = '' if trial.accepted else ', it was not accepted'
            result = f'{1000.0 * trial.error:.1f} mm, {trial.seconds:.2f} s{refused}'
            print(f'goal {number} of {len(goals)}: {result}', file=sys.stderr, flush=True)
    return trials


class _Recorder:
    def __init__(self, client: GoalClient) -> None:
        self._client = client
        self._path: list[tuple[float, Vector]] = []
        self._joints: dict[str, float] = {}
        client.node.create_subscription(PoseStamped, 'tool_pose', self._take_pose, 10)
        client.node.create_subscription(JointState, 'joint_states', self._take_joints, 1)

    def run(self, goal: Vector, threshold: float) -> GoalTrial:
        self._path.clear()
        start = time.monotonic()
        arrived = np.inf
        with contextlib.suppress(GoalError):  # refused: evaluated as it is
            self._client.go_to(goal)
        while (now := time.monotonic()) < start + min(TIMEOUT, arrived + SETTLE):
            self._client.spin(0.01)
            is_near = self._path and np.linalg.norm(self._path[-1][1] - goal) <= threshold
            if is_near and arrived == np.inf:
                arrived = now - start
        # Evaluated over one second with enough poses; this takes longer on a busy machine.
        while len(last := self._last_second()) < RATE / 4:
            if time.monotonic() > now + BUSY:
                raise ArmError(f'expected {RATE:.0f} poses of the tool a second, got {len(last)}')
            self._client.spin(0.01)
        return GoalTrial(
            goal,
            float(np.linalg.norm(last[-1] - goal)),
            float(np.linalg.norm(last.max(axis=0) - last.min(axis=0))),
            arrived,
            np.array([place for _, place in self._path]),
            dict(self._joints),
            self._client.goal is not None,
        )

    def _last_second(self) -> Vector:
        """Return positions of the tool (p, 3) [m] in the last second."""
        start = time.monotonic() - 1.0
        return np.array([place for time_, place in self._path if time_ > start])

    def _take_pose(self, message: PoseStamped) -> None:
        self._path.append((time.monotonic(), np.array(numbers_of(message.pose.position))))

    def _take_joints(self, message: JointState) -> None:
        self._joints = dict(zip(message.name, message.position, strict=True))
