"""Runs a policy on a simulated arm, goal by goal, and records the result of the simulator."""

from collections.abc import Callable
import contextlib
import os
from pathlib import Path
import sys
import time
from typing import NamedTuple

from geometry_msgs.msg import PoseStamped
from mher_ros.control.safety_monitor import Status
from mher_ros.errors import ArmError
from mher_ros.interface import Vector
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.bringup.node_process import client_node, node_process
from mher_ros.ros.bringup.node_spec import defaults_for_nodes
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.common.raw_messages import SECOND
from mher_ros.ros.common.status import SimulationStatus, subscribe_status
from mher_ros.ros.deploy.goal_client import GoalClient
import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

RATE = 100.0  # of tool poses [Hz]
TIMEOUT = 8.0  # time limit of a goal [s]
SETTLE = 2.0  # time at the goal before it is evaluated [s]
BRAKING = 1.5  # time after the goal was dropped before it is evaluated [s]
BUSY = 30.0  # additional time for poses on a busy machine [s]
# The simulated arm shares the cores with all that is measured, and may publish late.
PATIENT = {'safety.state_timeout': 1.0, 'safety.resume_within': 10.0}


class GoalTrial(NamedTuple):
    """Result of one goal, in the arm's base frame."""

    goal: Vector  # (3,) [m]
    error: float  # distance of the tool from it at the end [m]
    motion: float  # peak to peak over the last second [m]
    seconds: float  # time until the tool was within the threshold [s]; infinite: never
    times: Vector  # since the goal was sent (p,) [s]
    tool_path: Vector  # positions of the tool at these times (p, 3) [m]
    joints: list[dict[str, float]]  # joint positions at these times [rad or m]
    accepted: bool  # whether policy_node accepted the goal
    contacts: int | None  # of the arm since its start or reset; None: no forces are simulated


def run_goal_trials(
    robot: str,
    policy: Path,
    goals: Vector,
    threshold: float,
    output: str = 'robot',
    controller: str = 'policy',
    *,
    from_home: bool = False,
    namespace: str = '',
) -> list[GoalTrial]:
    """
    Start a simulated arm and a policy, and send ``goals`` (g, 3) [m] one by one.

    ``from_home``: the arm is put back to its home before each goal. Nodes are in ``namespace``.
    """
    os.environ.update(defaults_for_nodes())
    # Each time the arm is put home, policy_node would warn that the joints jumped.
    log_level = 'error' if from_home else 'info'
    simulated: dict[str, str | float] = {'robot': robot, 'output': output, 'view_rate': RATE}
    deployed: dict[str, str | float] = {'robot': robot, 'policy': str(policy), 'output': output}
    deployed |= {'controller': controller, **PATIENT}
    trials = []
    with (
        node_process('sim_node', simulated, namespace=namespace) as arm,
        node_process('policy_node', deployed, namespace=namespace, log_level=log_level) as node,
        client_node('goal_client', namespace) as own,
        contextlib.closing(GoalClient(load_robot(robot).base_frame, own)) as client,
    ):
        client.wait_until_ready(60.0)
        recorder = _Recorder(client)
        for number, goal in enumerate(goals, 1):
            for name, process in (('sim_node', arm), ('policy_node', node)):
                if process.poll() is not None:
                    raise ArmError(f'{name} has ended with code {process.returncode}')
            if from_home and number > 1:
                recorder.put_home()
            trial = recorder.run(goal, threshold)
            trials.append(trial)
            refused = '' if trial.accepted else ', it was not accepted'
            result = f'{1000.0 * trial.error:.1f} mm, {trial.seconds:.2f} s{refused}'
            name = f'{controller.replace("_", " ")}, goal {number} of {len(goals)}'
            print(f'{name}: {result}', file=sys.stderr, flush=True)
    return trials


class _Recorder:
    def __init__(self, client: GoalClient) -> None:
        self._client = client
        self._path: list[tuple[float, Vector, dict[str, float]]] = []
        self._joints: dict[str, float] = {}
        self._arm = SimulationStatus()
        self._status_at = -np.inf  # time of this status
        client.node.create_subscription(PoseStamped, 'tool_pose', self._take_pose, 10)
        client.node.create_subscription(JointState, 'joint_states', self._take_joints, 1)
        subscribe_status(client.node, SimulationStatus, 'sim_node', self._take_status)
        self._calls = {
            name: client.node.create_client(Trigger, name)
            for name in ('policy_node/stop', 'sim_node/reset', 'policy_node/clear')
        }

    def put_home(self) -> None:
        """Put the arm at home, while policy_node is stopped: it must not move it then."""
        client = self._client
        self._call('policy_node/stop')
        self._wait(lambda: not client.status.moving, 'policy_node does not brake')
        resets = self._arm.resets
        self._call('sim_node/reset')
        self._wait(lambda: self._arm.resets > resets, 'sim_node publishes no status')
        self._call('policy_node/clear')

    def run(self, goal: Vector, threshold: float) -> GoalTrial:
        self._path.clear()
        arrived = ended = np.inf
        self._wait(lambda: self._send(goal), 'policy_node does not take goals')
        start = time.monotonic()
        while (now := time.monotonic()) < min(start + TIMEOUT, ended):
            self._client.spin(0.01)
            is_near = self._path and np.linalg.norm(self._path[-1][1] - goal) <= threshold
            if is_near and arrived == np.inf:
                arrived = now - start
                ended = min(ended, now + SETTLE)
            if self._client.status.goal is None:
                ended = min(ended, now + BRAKING)
        # Evaluated over one second with enough poses; this takes longer on a busy machine.
        self._wait(lambda: len(self._last_second()) >= RATE / 4, 'too few poses of the tool')
        self._wait(lambda: self._status_at > now, 'sim_node publishes no status')
        last = self._last_second()
        times, places, joints = zip(*self._path, strict=True)
        return GoalTrial(
            goal,
            float(np.linalg.norm(last[-1] - goal)),
            float(np.linalg.norm(last.max(axis=0) - last.min(axis=0))),
            arrived,
            np.array(times) - start,
            np.array(places),
            list(joints),
            self._client.goal is not None,
            self._arm.contacts,
        )

    def _send(self, goal: Vector) -> bool:
        """Return whether policy_node has answered; it may wait for the arm that was put home."""
        try:
            self._client.go_to(goal)
        except GoalError as error:  # else: refused, and evaluated as it is
            return error.code not in (Status.JOINTS_JUMPED.code, Status.STOPPED.code)
        return True

    def _call(self, name: str) -> None:
        service = self._calls[name]
        self._wait(service.service_is_ready, f'{name} is not offered')
        called = service.call_async(Trigger.Request())
        self._wait(called.done, f'{name} does not answer')

    def _wait(self, is_over: Callable[[], bool], otherwise: str) -> None:
        """Process messages until ``is_over``; ArmError, with a sentence, if that takes long."""
        deadline = time.monotonic() + BUSY
        while not is_over():
            if time.monotonic() > deadline:
                raise ArmError(f'{otherwise}, after {BUSY:g} s')
            self._client.spin(0.01)

    def _last_second(self) -> Vector:
        """Return positions of the tool (p, 3) [m] in the last second."""
        start = time.monotonic() - 1.0
        return np.array([place for time_, place, _ in self._path if time_ > start])

    def _take_pose(self, message: PoseStamped) -> None:
        stamp = message.header.stamp
        if stamp.sec * SECOND + stamp.nanosec < self._arm.reset_stamp:
            return  # it was under way when the arm was put home
        place = np.array(numbers_of(message.pose.position))
        self._path.append((time.monotonic(), place, self._joints))

    def _take_joints(self, message: JointState) -> None:
        self._joints = dict(zip(message.name, message.position, strict=True))

    def _take_status(self, status: SimulationStatus) -> None:
        self._arm, self._status_at = status, time.monotonic()
