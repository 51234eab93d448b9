"""Runs the command path on topics: joint states in, commands out."""

import os
import threading
import time

from geometry_msgs.msg import PoseStamped
from mher_ros.control.command_path import CommandPath
from mher_ros.control.command_rate import CommandRate
from mher_ros.control.motion import Command
from mher_ros.control.obstacle_tracker import ObstacleTracker
from mher_ros.control.safety_monitor import Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import ArmError, StopRequested
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import Robot, ROBOT_DESCRIPTION
from mher_ros.ros.common.arm_clock import ArmClock
from mher_ros.ros.common.arm_output import ArmOutput
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.ros.common.graph_watch import GraphWatch, PoseSources, StateSources
from mher_ros.ros.common.polled_topic import BEST_EFFORT, LATCHED, PolledTopic
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.raw_messages import (
    JointStateReader,
    MAX_BYTES_ANY,
    MessageError,
    OtherJointsError,
    PoseReader,
)
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

PATIENCE = 0.02  # longest time between two checks whether the arm must be stopped [s]
MAX_AGE = 0.05  # age of a command after which it is no longer sent [s]
DISCOVERY = 0.5  # time that a new subscriber of the commands may take to receive all of them [s]
LONGEST_STOP = 4.5
"""Longest time for a stop before the node ends [s]; launch sends SIGTERM after 5 s or more."""
SHORTEST_WAIT = 0.0005  # time between two readings of a clock that advances in steps [s]
DRY_RUN = 'no commands are sent (output: none); markers show the motion'


class ArmDriver:
    """
    Runs a command path on the topics of one arm.

    One thread calls ``step`` again and again. Others hold ``lock`` while they use ``path``.
    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        arm: ArmModel,
        path: CommandPath,
        output: str,
        latch: StopLatch,
        latency: Latency,
    ) -> None:
        self._node, self._logger, self.path = node, node.get_logger(), path
        self.clock, self.latency = ArmClock(node), latency
        self.rate = CommandRate(1.0 / path.period, path.pause)
        self.lock = threading.Lock()
        self._reader = JointStateReader(arm.state_names, needs_velocities=False)
        self._sources = StateSources(arm.state_names)
        self._states = PolledTopic(node, JointState, robot.topics.joint_states, BEST_EFFORT)
        self._poses: PolledTopic | None = None
        if path.is_tracked:
            self._poses = PolledTopic(node, PoseStamped, robot.tool_pose.topic, BEST_EFFORT)
            self._pose_reader = PoseReader(robot.tool_pose.frame)
            self._pose_sources = PoseSources(robot.tool_pose.frame)
        self._commands: ArmOutput | None = None
        if output != 'none':
            topic = robot.topics.commands[output]
            self._commands = ArmOutput(
                node, self.clock.stamp, output, topic, arm.base_frame, arm.joint_names, path.period
            )
        if OUTPUTS[output].of_joints:
            if arm.unprotected:
                self._logger.warning(f'collisions are not avoided for {arm.unprotected}')
        elif self._commands and robot.scene:
            self._logger.warning(f'with the output {output} the scene is not avoided')
        self._graph = GraphWatch(node, self._commands.topic if self._commands else None)
        self.is_active = False
        """Whether motions may begin."""
        self.obstacles: ObstacleTracker | None = None
        """Obstacles at run time; None: there cannot be any."""
        self._latch, self._stops_seen = latch, latch.now.stops
        self._received: int | None = None
        self._alone_at = time.monotonic()  # last time without a subscriber of the commands

    def __str__(self) -> str:
        return f'{self._states.topic} -> {self._topic}, up to {self.path.limits.speed:g} m/s'

    @property
    def _topic(self) -> str:
        return self._commands.topic if self._commands else 'markers only'

    @property
    def subscribers(self) -> int | None:
        """Number of subscribers of the commands; None if none are sent."""
        return None if self._commands is None else self._commands.subscribers

    def activate(self) -> None:
        """Start to move the arm as its controller asks."""
        with self.lock:
            self._states.take_all(0.0)  # Earlier states do not count.
            if self._poses is not None:
                self._poses.take_all(0.0)
            self.path.restart()
            self.is_active = True
            self._are_received()

    def rest(self, reason: str, code: str) -> None:
        """Bring the arm to rest if it is moving, and send no more commands."""
        with self.lock:
            if self.is_active:
                self.is_active = False  # goals are refused while it brakes
                self.path.monitor.drop_goal(reason, code)
                self.log_changes()
        end = time.monotonic() + LONGEST_STOP
        try:
            while self.path.is_moving and time.monotonic() < end:
                self.step()
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Send zero velocity to an arm that would keep its last one; this ignores all limits."""
        with self.lock:
            last = self.path.give_up()
            if last is not None and self._commands is not None:
                self._logger.error('the arm could not be brought to rest by braking')
                self._commands.send(self._commands.write(last))

    def update_stop(self) -> None:
        """Update the status after a stop or its end; while active, ``step`` does this."""
        with self.lock:
            self.path.monitor.update_stop()
            self.log_changes()

    def step(self) -> None:
        """Wait a short time for joint states, and send the command that is due, if any."""
        wait = self.path.due - self.clock.now()
        wait = min(PATIENCE, max(SHORTEST_WAIT, wait)) if wait > 0.0 else 0.0
        raws = self._states.take_all(time.monotonic() + wait)
        arrived = time.monotonic()
        for raw, info in zip(raws, self._states.infos, strict=True):
            self._sources.take(arrived, raw, info)
        with self.lock:
            if not (self.is_active or self.path.is_moving):
                return
            now = self.clock.now()
            self.path.makes_ahead = not self.clock.is_simulated
            self._check_surroundings(now)
            self._take_pose(now)
            self._take_newest(now, raws)
            self.rate.states += len(raws)
            if raws:
                self._received = self._states.received
            command = self.path.tick(now)
            if command is not None and (self._commands is None or self._send(command, now)):
                if self._received is not None:
                    self.latency.note(self._received)
                    self._received = None
                self.path.plan(now)
                if (warning := self.rate.note(now)) is not None:
                    self._logger.warning(warning, once=True)
            self.log_changes()

    def close(self) -> None:
        """Close subscription and publisher."""
        self._graph.close()
        self.clock.close()
        self._node.destroy_subscription(self._states.subscription)
        if self._poses is not None:
            self._node.destroy_subscription(self._poses.subscription)
        if self._commands is not None:
            self._commands.close()

    def sentence(self, status: Status, reason: str) -> str:
        """Return a status of the monitor as a sentence for people."""
        if status is Status.RUNNING and self._commands is None:
            return DRY_RUN
        return status.value if reason == status.value else f'{status.value}: {reason}'

    def log_changes(self) -> None:
        """Log the changes of the monitor's status."""
        while (change := self.path.monitor.take_change()) is not None:
            text = self.sentence(change.new, change.reason)
            if change.new.is_trouble:
                self._logger.warning(text)
            else:
                self._logger.info(text)

    def _take_newest(self, now: float, raws: list[bytes]) -> None:
        """Pass the newest joint state of this arm to the command path."""
        for raw in reversed(raws):
            try:
                stamp, positions, velocities = self._reader.read(raw)
                break
            except OtherJointsError:
                pass  # for example of a gripper that publishes on the same topic
            except MessageError as error:
                self._states.is_malformed(error)
                self.path.monitor.take_bad_state(now, str(error))
                return
        else:
            return
        self.path.take_state(now, stamp, positions, velocities)

    def _take_pose(self, now: float) -> None:
        """Pass the newest measured pose of the tool to the command path, if there is one."""
        if self._poses is None:
            return
        raws, arrived = self._poses.take_all(0.0), time.monotonic()
        for raw, info in zip(raws, self._poses.infos, strict=True):
            self._pose_sources.take(arrived, raw, info)
        for raw in raws[-1:]:
            try:
                self.path.take_pose(now, *self._pose_reader.read(raw))
            except MessageError as error:
                self._poses.is_malformed(error)
                self.path.monitor.take_bad_pose(now, str(error))

    def _send(self, command: Command, made_at: float) -> bool:
        """Send a command when it may be sent; return False if it is too old by then."""
        assert self._commands is not None
        message = self._commands.write(command)
        while (left := self.path.leaves_at - self.clock.now()) > 0.0:
            time.sleep(min(left, SHORTEST_WAIT))
        before = self.clock.now()
        is_old = before - made_at > MAX_AGE or self.path.is_outdated(before)
        if is_old or self._latch.now.stops != self._stops_seen:
            self.path.withhold(before)
            return False
        self._commands.send(message)
        self.path.sent(before, self.clock.now())
        return True

    def _check_surroundings(self, now: float) -> None:
        """Interrupt the motion because of a stopped clock, a second publisher or an obstacle."""
        self._stops_seen = self._latch.now.stops
        self.path.is_received = self._are_received()
        monitor, other = self.path.monitor, self._graph.other_commander
        obstacles = self.obstacles
        lost = '' if obstacles is None else obstacles.problem(now)
        refused = '' if obstacles is None else obstacles.refused
        if self.clock.standing_still:
            monitor.interrupt(Status.CLOCK_STOPPED, 'use_sim_time is set, but /clock has stopped')
        elif self._sources.are_several(time.monotonic()):
            monitor.interrupt(Status.TWO_STATE_SOURCES, f'more than one on {self._states.topic}')
        elif self._poses is not None and self._pose_sources.are_several(time.monotonic()):
            monitor.interrupt(Status.TWO_POSE_SOURCES, f'more than one on {self._poses.topic}')
        elif other is not None:
            monitor.interrupt(Status.OTHER_COMMANDER, other)
        elif self.path.is_moving and self.subscribers == 0:
            monitor.interrupt(Status.NO_SUBSCRIBER, f'{self._topic} has no subscriber')
        elif lost:
            monitor.interrupt(Status.OBSTACLE_LOST, lost)
        elif refused:
            monitor.interrupt(Status.OBSTACLE_REFUSED, refused)
        else:
            monitor.resume()

    def _are_received(self) -> bool:
        """Return whether all commands are received, as far as it is known."""
        now = time.monotonic()
        if self.subscribers == 0:
            self._alone_at = now
        return self.subscribers is None or now - self._alone_at > DISCOVERY


def model_text(node: Node, robot: Robot, stop: StopRequest, timeout: float) -> str | None:
    """Return the model from ``robot_description`` within ``timeout`` [s]; None: a file has it."""
    if robot.model != ROBOT_DESCRIPTION:
        return None
    polled = PolledTopic(node, String, robot.topics.robot_description, LATCHED)
    topic = polled.topic
    try:
        node.get_logger().info(f'waiting for the model of the arm on {topic}')
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if stop():
                raise StopRequested
            raw = polled.take(time.monotonic() + PATIENCE)
            message = None if raw is None else polled.read(raw, MAX_BYTES_ANY)
            if message is not None:
                return str(message.data)
    finally:
        node.destroy_subscription(polled.subscription)
    range_ = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    raise ArmError(
        f'no model of the arm was received on {topic} within {timeout:g} s: is the arm, or '
        'robot_state_publisher, running? A robot file can name a file instead (model: PATH). '
        f'This node is in ROS domain {node.context.get_domain_id()} '
        f'(ROS_AUTOMATIC_DISCOVERY_RANGE={range_}); nodes on other machines need SUBNET'
    )
