"""A policy and an arm, put together: all that policy_node has once it is configured."""

from __future__ import annotations

from collections.abc import Callable
import os
import threading
import time

from geometry_msgs.msg import PointStamped
from mher_ros.control.arm_model import ArmModel
from mher_ros.control.fit import check_fit, FitError
from mher_ros.control.motion_limiter import MotionLimits
from mher_ros.control.reach import Reach
from mher_ros.control.reachability import Reachability
from mher_ros.control.robot import load_robot, ROBOT_DESCRIPTION, RobotConfig
from mher_ros.control.safety import Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.control.workspace import Workspace
from mher_ros.errors import ArmError, StopAsked
from mher_ros.interface import TaskInterface
from mher_ros.policy.find import find_policy
from mher_ros.policy.run import load
from mher_ros.ros.arm_clock import ArmClock
from mher_ros.ros.arm_output import ARM_OUTPUTS, ArmOutput
from mher_ros.ros.deploy_view import DeployView, Motion
from mher_ros.ros.goal_input import GoalInput
from mher_ros.ros.graph_watch import GraphWatch, StateSources
from mher_ros.ros.inbox import Inbox, LATCHED, SEVERAL
from mher_ros.ros.latency import Latency
from mher_ros.ros.policy_options import PolicyOptions
from mher_ros.ros.process import StopRequest
from mher_ros.ros.wire import (
    JointStateReader,
    MessageError,
    MOST_BYTES_OF_ANY,
    OtherJointsError,
)
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

__all__ = ['Deployment']

Vector = NDArray[np.float64]

PATIENCE = 0.02
"""Longest time without a look at whether the arm must be stopped [s]."""
HELD_UP = 0.05
"""Time after which a command that was made is not sent any more [s]."""
LONGEST_STOP = 4.5
"""Longest time for a stop before the node ends [s]; launch files insist after 5 s or more."""
SHORTEST_WAIT = 0.0005
"""Time between two looks at a clock that goes on in steps [s]."""
MARKER = 1.1
"""The goal marker over the goal's own ball: RViz's mouse picks what is outermost."""
DRY_RUN = 'no command leaves for the arm (output: none): markers show what would'


class Deployment:
    """
    One policy on one arm.

    One thread calls ``step`` again and again; anything else may be called from another.
    """

    def __init__(
        self,
        node: Node,
        options: PolicyOptions,
        stop: StopRequest,
        latch: StopLatch,
        latency: Callable[[float], Latency],
    ) -> None:
        """
        Load the policy and the arm's model; MherError says why they do not go together.

        ``latch`` is where stops come from, and may hold one already; ``latency`` makes what is
        told of each answer.
        """
        self._logger = node.get_logger()
        self._options, self._lock = options, threading.Lock()
        self._node, self._clock = node, ArmClock(node)
        self.robot = robot = load_robot(options.robot)
        path = find_policy(options.policy)
        self.policy = policy = load(path)
        interface = policy.interface
        # Before the wait for the arm's model.
        check_fit(interface)
        _check_place(interface, robot)
        self.output = robot.output if options.output == 'robot' else options.output
        self.arm = arm = ArmModel(robot, _model_text(node, robot, stop, options.model_timeout))
        self.workspace = workspace = Workspace(
            interface.goal_low,
            interface.goal_high,
            robot.workspace.origin,
            robot.workspace.scale,
            None if robot.box is None else (robot.box.low, robot.box.high),
        )
        self._reachability = Reachability(arm)
        missed = self._reachability.check_workspace(workspace)
        if missed:
            self._logger.warning(f'corners of the workspace that the arm cannot reach: {missed}')
        rate = options.command_rate or robot.command_rate
        period = 1.0 / rate
        self.reach = Reach(
            policy,
            interface,
            arm,
            workspace,
            self.output,
            limits=MotionLimits(
                options.speed or robot.speed, options.acceleration or robot.acceleration
            ),
            safety=options.safety,
            command_rate=rate,
            latch=latch,
        )
        self.latency = latency(period)
        self._reader = JointStateReader(arm.state_names, needs_velocities=False)
        self._sources = StateSources(arm.state_names)
        self._states = Inbox(node, JointState, robot.topics.joint_states, SEVERAL)
        self._commands: ArmOutput | None = None
        if self.output != 'none':
            self._commands = ARM_OUTPUTS[self.output](
                node,
                getattr(robot.topics, self.output),
                arm.base_frame,
                arm.joint_names,
                period,
            )
        self._graph = GraphWatch(node, self._commands.topic if self._commands else None)
        middle = (workspace.low + workspace.high) / 2.0
        self._goals = GoalInput(
            node,
            arm.base_frame,
            self._on_goal,
            self._tool,
            middle,
            MARKER * self.reach.threshold,
        )
        self._view = DeployView(
            node,
            arm.base_frame,
            self.reach.threshold,
            (workspace.low, workspace.high),
            (workspace.box_low, workspace.box_high),
            self.motion,
        )
        self._accepted = node.create_publisher(PointStamped, '~/goal', 10)
        self._active = False
        self._latch, self._deactivations = latch, 0
        self._received: int | None = None
        self._stops_seen = latch.now.stops
        trained = policy.contract.evaluation.get('success_rate')
        self._logger.info(
            f'{path} ({interface.task}{"" if trained is None else f", success {trained:g}"}) on '
            f'{robot.name}: {self._states.topic} -> '
            f'{self._commands.topic if self._commands else "nothing but markers"}, '
            f'up to {self.reach.limits.speed:g} m/s'
        )

    def activate(self) -> None:
        """Take goals, and move the arm to them, from now on."""
        with self._lock:
            self._states.take_all(0.0)  # They came before, so they do not count.
            self.reach.restart()
            self._active = True
        self._logger.info(
            f'active: waiting for goals on {self._goals.topics} and from the goal marker, in '
            f'frame {self.arm.base_frame}'
        )

    def deactivate(self, reason: str) -> None:
        """Bring the arm to rest if it is moving, and command nothing more."""
        self._goals.forget()
        with self._lock:
            if self._active:
                self._active = False  # no goal is taken while it brakes
                self._deactivations += 1
                self.reach.guard.drop_goal(reason)
                self._tell_changes()
        end = time.monotonic() + LONGEST_STOP
        while self.reach.is_moving and time.monotonic() < end:
            self.step()
        with self._lock:
            last = self.reach.give_up()
            if last is not None and self._commands is not None:
                self._logger.error(f'the arm was not at rest after {LONGEST_STOP:g} s of braking')
                self._commands.send(last)

    def heed_stop(self) -> None:
        """Say that there is a stop, or no longer; while active ``step`` does it."""
        with self._lock:
            self.reach.guard.heed_stop()
            self._tell_changes()

    def step(self) -> None:
        """Wait for joint states, for a while, and send the command that is due, if any."""
        wait = self.reach.due - self._clock.now()
        wait = min(PATIENCE, max(SHORTEST_WAIT, wait)) if wait > 0.0 else 0.0
        raws = self._states.take_all(time.monotonic() + wait)
        arrived = time.monotonic()
        for raw, about in zip(raws, self._states.abouts, strict=True):
            self._sources.take(arrived, raw, about)
        with self._lock:
            if not (self._active or self.reach.is_moving):
                return
            now = self._clock.now()
            self._look_around()
            self._take_newest(now, raws)
            if raws:
                self._received = self._states.received
            command = self.reach.tick(now)
            before = self._clock.now()
            if command is not None and before - now > HELD_UP:
                self.reach.withhold()  # by now the arm may have come to rest
            elif command is not None:
                if self._commands is not None:
                    self._commands.send(command)
                    self.reach.sent(before, self._clock.now())
                if self._received is not None:
                    self.latency.note(self._received)
                    self._received = None
                self.reach.think(now)
            self._tell_changes()

    def motion(self) -> Motion:
        """Return what the arm is up to."""
        with self._lock:
            reach = self.reach
            return Motion(reach.tool, reach.velocity, reach.goal, reach.distance, reach.reached)

    def figures(self) -> dict[str, str]:
        """Return what diagnostics tell, since the last call."""
        with self._lock:
            reach = self.reach
            return {
                'goal': '' if reach.goal is None else str(reach.goal.round(4).tolist()),
                'distance [m]': f'{reach.distance:.4f}',
                'reached': str(reach.reached).lower(),
                'status': reach.guard.status.name.lower(),
                'last drop': reach.guard.last_drop,
                'stopped': str(reach.guard.stop_reason is not None).lower(),
                'output': self.output,
                'speed cap [m/s]': f'{reach.limits.speed:g}',
                **self.latency.figures(),
                'late policy steps': str(reach.late),
                'goals refused': str(self._goals.refused),
                'last refusal': self._goals.last_refusal,
                'listeners': '' if self._commands is None else str(self._commands.listeners),
            }

    def sentence(self, status: Status, reason: str) -> str:
        """Return what people are told of a status of the guard."""
        if status is Status.RUNNING and self._commands is None:
            return DRY_RUN
        return status.value if reason == status.value else f'{status.value}: {reason}'

    def close(self) -> None:
        """Leave topics and services."""
        self._graph.close()
        self._goals.close()
        self._view.close()
        self._node.destroy_publisher(self._accepted)
        self._node.destroy_subscription(self._states.subscription)
        if self._commands is not None:
            self._commands.close()

    def _take_newest(self, now: float, raws: list[bytes]) -> None:
        """Take the newest joint state that is the arm's."""
        for raw in reversed(raws):
            try:
                stamp, positions, velocities = self._reader.read(raw)
                break
            except OtherJointsError:
                pass  # A gripper, say, that tells of itself under the same name.
            except MessageError as error:
                self._states.is_malformed(error)
                self.reach.take_bad_state(now, str(error))
                return
        else:
            return
        self.reach.take_state(now, stamp, positions, velocities)

    def _look_around(self) -> None:
        """Interrupt the motion for what no joint state tells of."""
        if self._latch.now.stops != self._stops_seen:
            self._stops_seen = self._latch.now.stops
            self._goals.forget()
        guard, other = self.reach.guard, self._graph.other_commander
        if self._clock.standing_still:
            guard.interrupt(Status.CLOCK_STOPPED, 'use_sim_time is set, but /clock stands still')
        elif self._sources.are_several(time.monotonic()):
            guard.interrupt(Status.TWO_STATE_SOURCES, f'more than one on {self._states.topic}')
        elif other is not None:
            guard.interrupt(Status.OTHER_COMMANDER, other)
        else:
            guard.resume()

    def _stops(self) -> tuple[int, int]:
        """Return what changes whenever goals that are on their way no longer count."""
        return self._latch.now.stops, self._deactivations

    def _on_goal(self, position: Vector, source: str) -> Vector:
        outside = self._options.outside
        with self._lock:
            if not self._active:
                raise ArmError('policy_node is not active')
            stops, reach = self._stops(), self.reach
            positions, orientation = reach.positions, reach.held_orientation
        if positions.size:
            # Without the lock: the arm does not wait for this.
            goal = self.workspace.admit(position, outside)
            self._reachability.check_goal(goal, positions, orientation)
        with self._lock:
            if self._stops() != stops:
                raise ArmError('the arm was stopped after this goal came')
            goal = self.reach.take_goal(self._clock.now(), position, outside)
            self._tell_changes()
        self._view.begin_trail()
        self._tell_goal(goal)
        return goal

    def _tell_goal(self, goal: Vector) -> None:
        message = PointStamped()
        message.header.frame_id = self.arm.base_frame
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.point.x, message.point.y, message.point.z = goal.tolist()
        self._accepted.publish(message)

    def _tool(self) -> Vector | None:
        with self._lock:
            return self.reach.tool

    def _tell_changes(self) -> None:
        while (change := self.reach.guard.take_change()) is not None:
            text = self.sentence(change.new, change.reason)
            if change.new.is_trouble:
                self._logger.warning(text)
            else:
                self._logger.info(text)


def _check_place(interface: TaskInterface, robot: RobotConfig) -> None:
    """Refuse to put the workspace of one arm where it was trained on another."""
    if robot.workspace.origin is None and robot.simulation_task != interface.task:
        raise FitError(
            f'workspace.origin of robot {robot.name} is expected to say where on it the workspace '
            f'of {interface.task} lies; without it, a policy for '
            f'{robot.simulation_task or "no task"} would do'
        )


def _model_text(node: Node, robot: RobotConfig, stop: StopRequest, timeout: float) -> str | None:
    """Return the model that comes over a topic, if the robot's does, within ``timeout`` [s]."""
    if robot.model != ROBOT_DESCRIPTION:
        return None
    inbox = Inbox(node, String, robot.topics.robot_description, LATCHED)
    topic = inbox.topic
    try:
        node.get_logger().info(f'waiting for the model of the arm on {topic}')
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if stop():
                raise StopAsked
            raw = inbox.take(time.monotonic() + PATIENCE)
            message = None if raw is None else inbox.read(raw, MOST_BYTES_OF_ANY)
            if message is not None:
                return str(message.data)
    finally:
        node.destroy_subscription(inbox.subscription)
    reach = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    raise ArmError(
        f'no model of the arm came on {topic} within {timeout:g} s: is the arm, or '
        f'robot_state_publisher, running? A robot file can name a file instead (model: PATH). '
        f'Nodes are found in ROS domain {node.context.get_domain_id()} '
        f'(ROS_AUTOMATIC_DISCOVERY_RANGE={reach}); other machines only with SUBNET'
    )
