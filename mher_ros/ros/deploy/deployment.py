"""A policy and an arm: everything that policy_node has when it is configured."""

from collections.abc import Callable
import dataclasses
import math
import time

from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.fit import check_fit, check_kinematics, check_robot, FitError
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.reachability import Reachability
from mher_ros.control.safety_monitor import SafetyOptions, Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.interface import TaskInterface
from mher_ros.options import option
from mher_ros.policy.onnx_policy import find_policy, load
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import Part
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.robots.workspace import (
    GoalError,
    is_trained_on,
    place_workspace,
    reach_workspace,
    Refusal,
)
from mher_ros.ros.bringup.node_spec import ObstacleArguments, PolicyArguments
from mher_ros.ros.common.arm_driver import ArmDriver, model_text
from mher_ros.ros.common.avoided_obstacles import AvoidedObstacles, check_planning_scene
from mher_ros.ros.common.collision_markers import CollisionMarkers, scene_markers
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.ros.common.frames import Frames
from mher_ros.ros.common.markers import DeployMarkers, Motion
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.status import box_of, DeploymentStatus, Level, point_of
from mher_ros.ros.deploy.goal_input import check_sent, GoalInput
from mher_ros.simulation.reach import Reach
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from visualization_msgs.msg import Marker

Vector = NDArray[np.float64]

MARKER = 1.1  # radius of the goal marker over that of the goal's ball: RViz picks the outermost


@dataclasses.dataclass(frozen=True)
class PolicyOptions(ObstacleArguments, PolicyArguments):
    """Parameters of policy_node: the arguments of bringups, and further ones."""

    autostart: bool = option(True, 'configure and activate at start')
    acceleration: float = option(
        0.0,
        'acceleration limit of the tool [m/s^2]; 0: as the robot file says',
        low=0.0,
        high=20.0,
    )
    command_rate: float = option(
        0.0, 'rate of commands [Hz]; 0: as the robot file says', low=0.0, high=500.0
    )
    model_timeout: float = option(
        30.0, 'time to wait for robot_description [s]', low=0.1, high=3600.0
    )
    safety: SafetyOptions = SafetyOptions()


class Deployment:
    """
    One policy on one arm.

    One thread calls ``driver.step`` repeatedly; other threads may call everything else.
    """

    def __init__(
        self,
        node: Node,
        options: PolicyOptions,
        stop: StopRequest,
        latch: StopLatch,
        latency: Callable[[float], Latency],
        on_answer: Callable[[], None],
    ) -> None:
        """
        Load the policy and the arm's model; MherError says why they do not fit.

        ``latch`` holds stops, and may already hold one; ``latency`` makes the recorder of answer
        times. ``on_answer`` is called after a goal was accepted or refused.
        """
        self._logger = node.get_logger()
        self._options = options
        self.robot = robot = load_robot(options.robot)
        self.output = robot.output if options.output == 'robot' else options.output
        is_straight = options.controller != 'policy'
        policy, path = None, None
        if options.policy or not is_straight:
            path = find_policy(options.policy)
            policy = load(path)
            # Before the wait for the arm's model.
            check_fit(policy.interface)
            _check_place(policy.interface, robot)
        is_tracked = policy is not None and policy.interface.is_tracked
        if is_straight and (robot.tool_pose.is_tracked or is_tracked):
            raise FitError(
                f'controller {options.controller} needs goals in the base frame, but with a '
                f'measured pose of the tool they are in another one; controller policy is expected'
            )
        if policy is not None and not is_straight:
            check_robot(policy.interface, robot, self.output)
        self.arm = arm = ArmModel(robot, model_text(node, robot, stop, options.model_timeout))
        interface = _reach_interface(options.robot, arm) if policy is None else policy.interface
        is_for_one_arm = interface.is_for_one_arm and not is_straight
        if is_for_one_arm:
            check_kinematics(interface, arm)
        self.workspace = workspace = place_workspace(interface, robot)
        limits_joints = is_for_one_arm or OUTPUTS[self.output].of_joints
        slots = arm.obstacle_slots() if limits_joints else None
        check_planning_scene(options.planning_scene, slots)
        moves_joints = interface.moves_joints and not is_straight
        self._reachability = Reachability(
            arm, slots, keeps_orientation=not moves_joints, avoids_collisions=limits_joints
        )
        box, missed = None, ''
        if interface.is_tracked:  # neither camera nor marker is known: nothing can be checked
            home = np.array([robot.home.get(name, 0.0) for name in arm.state_names])
            space = reach_workspace(robot, arm.tool_position(home))
            box = space.box_low, space.box_high
        else:
            missed = self._reachability.check_workspace(workspace)
        if missed:
            self._logger.warning(f'corners of the workspace that the arm cannot reach: {missed}')
        rate = options.command_rate or robot.command_rate
        self.controller = GoalController(
            None if is_straight else policy,
            interface,
            arm,
            workspace,
            self.output,
            box,
            limits=MotionLimits(
                options.speed or robot.speed, options.acceleration or robot.acceleration
            ),
            safety=options.safety,
            command_rate=rate,
            latch=latch,
            pose_timeout=robot.tool_pose.timeout if interface.is_tracked else 0.0,
        )
        self.path = self.controller.path
        self.driver = ArmDriver(
            node, robot, arm, self.path, self.output, latch, latency(1.0 / rate)
        )
        self._latch = latch
        fixed = DeploymentStatus(
            frame=interface.frame if interface.is_tracked else arm.base_frame,
            output=self.output,
            controller=options.controller,
            workspace=box_of(workspace.low, workspace.high),
            # The box of the tool is in the base frame.
            box=None if box else box_of(workspace.box_low, workspace.box_high),
            threshold=self.controller.threshold,
            speed_cap=self.path.limits.speed,
        )
        middle = (workspace.low + workspace.high) / 2.0
        self._goals = GoalInput(
            node,
            fixed,
            self._on_goal,
            lambda: self.motion().tool,
            middle,
            MARKER * self.controller.threshold,
            on_answer,
            lambda: self.counts_from,
        )
        self._active_since = 0  # time.monotonic_ns
        self._frames: Frames | None = None
        self._obstacles: AvoidedObstacles | None = None
        if slots is not None:
            frames, scene = self._goals.frames, options.planning_scene
            if box is not None:  # goals are in another frame than obstacles
                frames = self._frames = Frames(node, arm.base_frame)
            self._obstacles = AvoidedObstacles(node, self.driver, slots, robot, frames, scene)
        avoids = isinstance(self.path.filter, JointFilter) and len(arm.parts) > 0
        self._scene = scene_markers(arm) if avoids else []
        self._markers = DeployMarkers(node, fixed, self.motion, self._obstacle_markers)
        self._collision_markers: CollisionMarkers | None = None
        if avoids:
            self._collision_markers = CollisionMarkers(
                node, arm, self._positions, self._run_time_obstacles
            )
        trained = None if policy is None else policy.contract.evaluation.get('success_rate')
        success = '' if trained is None else f', success {trained:g}'
        moves = 'a straight line in the workspace of ' if is_straight else ''
        self._logger.info(
            f'{moves}{path or "the robot file"} ({interface.task}{success}) on {robot.name}: '
            f'{self.driver}'
        )

    def activate(self) -> None:
        """Accept goals, and move the arm to them."""
        self._active_since = time.monotonic_ns()
        self.driver.activate()
        self._logger.info(
            f'active: waiting for goals on {self._goals.topics} and from the goal marker, in '
            f'frame {self._goals.frames.base}'
        )

    def deactivate(self, reason: str) -> None:
        """Bring the arm to rest if it is moving, and send no more commands."""
        self.driver.rest(reason, Refusal.NOT_ACTIVE.value)

    @property
    def counts_from(self) -> int:
        """Time of the last stop, clear or activation (``time.monotonic_ns``)."""
        return max(self._latch.changed_at, self._active_since)

    def motion(self) -> Motion:
        """Return the current motion of the arm."""
        with self.driver.lock:
            to, path = self.controller, self.path
            # The commanded velocity is in the base frame.
            velocity = None if path.is_tracked else path.velocity
            return Motion(to.tool, velocity, to.goal, to.reached)

    def status(self) -> DeploymentStatus:
        """Return the status."""
        with self.driver.lock:
            to, monitor = self.controller, self.path.monitor
            monitor.update_stop()  # so that state and stop agree
            distance, told = to.distance, self._obstacles
            return dataclasses.replace(
                self._goals.status,
                state=monitor.status.code,
                reason=self.driver.sentence(monitor.status, monitor.reason),
                level=Level.WARN if monitor.status.is_trouble else Level.OK,
                stopped=monitor.status is Status.STOPPED,
                goals_from=self.counts_from,
                moving=self.path.is_moving,
                goal=point_of(to.goal),
                distance=distance if math.isfinite(distance) else None,
                reached=to.reached,
                nearest=self.path.nearest,
                last_drop=monitor.last_drop,
                **({} if told is None else told.figures()),
            )

    def figures(self) -> dict[str, str]:
        """Return further figures for diagnostics, since the last call."""
        subscribers = self.driver.subscribers
        return {
            **self.driver.latency.figures(),
            'commands per second': f'{self.driver.rate.value:.1f}',
            'late policy steps': str(self.controller.late),
            'listeners': '' if subscribers is None else str(subscribers),
        }

    def close(self) -> None:
        """Close topics and services."""
        if self._obstacles is not None:
            self._obstacles.close()
        self._goals.close()
        if self._frames is not None:
            self._frames.close()
        self._markers.close()
        if self._collision_markers is not None:
            self._collision_markers.close()
        self.driver.close()

    def _obstacle_markers(self) -> list[Marker]:
        found = [] if self._obstacles is None else self._obstacles.markers()
        return [*self._scene, *found]

    def _positions(self) -> Vector:
        with self.driver.lock:
            return self.path.positions

    def _run_time_obstacles(self) -> dict[int, Part]:
        tracker = self.driver.obstacles
        if tracker is None:
            return {}
        with self.driver.lock:
            return tracker.parts

    def _on_goal(self, position: Vector, source: str, sent: int) -> Vector:
        outside = self._options.outside
        with self.driver.lock:
            if not self.driver.is_active:
                raise GoalError('policy_node is not active', Refusal.NOT_ACTIVE)
            path = self.path
            positions, orientation = path.positions, path.held_orientation
        if positions.size and not path.is_tracked:
            # Without the lock: this must not delay commands.
            goal = self.workspace.admit(position, outside)
            self._reachability.check_goal(goal, positions, orientation)
        with self.driver.lock:
            if not self.driver.is_active:
                raise GoalError('policy_node was deactivated', Refusal.NOT_ACTIVE)
            # Only now: while this thread waited, another one may have stopped and cleared.
            check_sent(sent, self.counts_from)
            goal = self.controller.take_goal(self.driver.clock.now(), position, outside)
            try:
                check_sent(sent, self.counts_from)  # or did so in between
            except GoalError as error:
                self.path.monitor.drop_goal(str(error), error.code)
                raise
            self.driver.log_changes()
        self._markers.begin_trail()
        return goal


def _reach_interface(robot: str, arm: ArmModel) -> TaskInterface:
    """Return the interface of the task ``reach`` on this arm."""
    options = dataclasses.replace(Reach.default_options, robot=robot)
    return Reach(options, arm=arm).interface


def _check_place(interface: TaskInterface, robot: Robot) -> None:
    """Refuse to use the place of a training workspace on another arm."""
    if is_trained_on(interface, robot):
        return  # its place is known in the arm's own base frame
    if robot.workspace.origin is None and robot.simulation_task != interface.task:
        raise FitError(
            f'robot {robot.name}: workspace.origin, the centre of the workspace of '
            f'{interface.task} on this arm, is expected; without it, only a policy for '
            f'{robot.simulation_task or "no task"} fits'
        )
