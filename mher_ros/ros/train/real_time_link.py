"""A link to a robot, simulated or real, that moves in real time."""

from collections.abc import Callable
import threading
import time

from mher_ros.control.action_controller import ActionController
from mher_ros.control.safety_monitor import SafetyOptions, Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import ArmError, EpisodeLostError
from mher_ros.interface import Vector
from mher_ros.options import OptionError
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.common.arm_driver import ArmDriver
from mher_ros.ros.common.avoided_obstacles import AvoidedObstacles, check_planning_scene
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.ros.common.frames import Frames
from mher_ros.ros.train.lockstep_link import ArmLink, ArmSilentError, FIRST_CONTACT, JointVectors
from mher_ros.simulation.reach import Reach
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node

QUIET = ('', Status.NO_GOAL.code, Status.STALE_GOAL.code)
"""Codes of dropped goals that are no failure."""
OBSTACLES = (Status.OBSTACLE_LOST, Status.OBSTACLE_REFUSED)
WAITED_FOR = (
    Status.NO_STATE,
    Status.STALE_STATE,
    Status.NO_POSE,
    Status.STALE_POSE,
    Status.CLOCK_STOPPED,
    *OBSTACLES,
)
"""Statuses that may end without intervention before an episode."""
LATE = 0.04  # delay of an action up to which the following one comes earlier, not later [s]
OUTSIDE = 0.02  # largest distance of the tool outside its box at the start [m]
PATIENCE = 0.05  # longest time between two checks whether to stop [s]
SHORT = 0.001  # time between two readings of the arm's clock [s]


class RealTimeLink(ArmLink):
    """
    A link to the arm of a robot file, which nothing resets.

    A separate thread commands the arm and never waits for the learner. If an action is late the
    arm comes to rest, and the next step starts with the action.

    If joint states are late for less than ``resume_within``, the episode is lost. Anything else
    that stops the arm raises ArmError, which ends the run: the arm does not restart by itself.
    """

    def __init__(
        self,
        node: Node,
        task: Reach,
        latch: StopLatch,
        timeout: float = 10.0,
        asked_to_stop: Callable[[], bool] = lambda: False,
        safety: SafetyOptions | None = None,
        planning_scene: str = '',
    ) -> None:
        """``planning_scene``: topic of MoveIt's planning scene; empty: none."""
        self._node, self._timeout, self._asked_to_stop = node, timeout, asked_to_stop
        robot = task.robot
        if not OUTPUTS[robot.output].of_joints:
            names = ', '.join(name for name, output in OUTPUTS.items() if output.of_joints)
            raise OptionError(
                f'robot {robot.name}: to learn motions of joints its output must be one of '
                f'{names}; got {robot.output}'
            )
        self._controller = ActionController(
            task.interface,
            task.arm,
            task.workspace,
            robot.output,
            limits=task.limits,
            safety=safety,
            command_rate=robot.command_rate,
            latch=latch,
            pose_timeout=robot.tool_pose.timeout if robot.tool_pose.is_tracked else 0.0,
        )
        self._task, self._path = task, self._controller.path
        self.box = task.workspace.box_low, task.workspace.box_high
        """Box of the tool: low and high corner (3,) [m]."""
        latency = Latency(1.0 / robot.command_rate)
        self.driver = ArmDriver(node, robot, task.arm, self._path, robot.output, latch, latency)
        slots = task.arm.obstacle_slots()
        check_planning_scene(planning_scene, slots)
        self.obstacles: AvoidedObstacles | None = None
        """Obstacles at run time; None: there cannot be any."""
        if slots is not None:
            self._frames = Frames(node, task.arm.base_frame)
            self.obstacles = AvoidedObstacles(
                node, self.driver, slots, robot, self._frames, planning_scene
            )
        self._period = task.interface.control_period
        self._due = 0.0
        self.repeats = 0  # number of actions that came too late
        self.ended_by = ''  # code of the stop that ended the run
        self._failure: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name='arm', daemon=True)
        self.driver.activate()
        self._thread.start()
        node.get_logger().info(f'{robot.name} in real time: {self.driver}')

    def reset(self, seed: int) -> JointVectors:
        """Wait until the arm can move, and return its state: episodes start where it is."""
        self._since = time.monotonic()
        while True:
            with self.driver.lock:
                self._check()
                now, monitor = self.driver.clock.now(), self._path.monitor
                try:
                    monitor.take_goal(now)
                    monitor.last_drop = ''
                    self._due, self._since = now, None
                    self._check_place()
                    return self._state()
                except GoalError:
                    status, reason = monitor.status, monitor.reason
            self._wait(status, reason)

    def exchange(self, action: NDArray[np.floating]) -> JointVectors:
        """Carry out an action (k,) and return the state one control period later."""
        with self.driver.lock:
            now = self.driver.clock.now()
            if now - self._due > min(LATE, self._period):
                self.repeats += 1
                self._due = now
            self._check_moving()
            try:
                self._controller.act(now, action)
            except GoalError as error:
                self._check()
                raise EpisodeLostError(str(error)) from None
            self._due += self._period
        while (left := self._due - self.driver.clock.now()) > 0.0:
            self._check_stop('the arm was moving')
            time.sleep(min(max(left, SHORT), PATIENCE))
        with self.driver.lock:
            self._check_moving()
            return self._state()

    def positions(self) -> Vector:
        with self.driver.lock:
            return self._path.positions

    def close(self) -> None:
        """Bring the arm to rest and close its topics."""
        self._over.set()
        self._thread.join()
        self.driver.rest('train_node ends', Status.NO_GOAL.code)
        if self.obstacles is not None:
            self.obstacles.close()
            self._frames.close()
        self.driver.close()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self.driver.step()
        except Exception as error:  # the learner must not wait for an arm without commands
            self._failure = error
            self.driver.give_up()

    def _check(self) -> None:
        """Raise ArmError if a person should check the arm before it moves again."""
        if self._failure is not None:
            raise ArmError('the arm cannot be commanded any longer') from self._failure
        if self._path.monitor.last_drop not in QUIET:
            raise self._error(self._path.monitor.last_drop)

    def _error(self, code: str) -> ArmError:
        """Return the error that ends the run, for a reason with this code."""
        monitor, self.ended_by = self._path.monitor, code
        return ArmError(
            f'the arm was stopped ({code}): {self.driver.sentence(monitor.status, monitor.reason)}'
            '; when it is safe to move, continue with resume:=true'
        )

    def _check_moving(self) -> None:
        """Raise EpisodeLostError if the motion was interrupted, ArmError as above."""
        self._check()
        monitor = self._path.monitor
        if monitor.status is not Status.RUNNING:
            raise EpisodeLostError(self.driver.sentence(monitor.status, monitor.reason))

    def _check_place(self) -> None:
        """Raise ArmError if the tool is outside its box, into which nothing would move it."""
        tool, (low, high) = self._path.tool, self.box
        assert tool is not None
        if np.maximum(low - tool, tool - high).max() > OUTSIDE:
            raise ArmError(
                f'a tool inside its box, {low.tolist()} to {high.tolist()} m, is expected at the '
                f'start; it is at {tool.round(3).tolist()}'
            )

    def _state(self) -> JointVectors:
        if self._path.tracked is not None:
            self._task.tracked = self._path.tracked
        return self._path.positions.copy(), self._path.velocities.copy()

    def _wait(self, status: Status, reason: str) -> None:
        """Wait a short time for an arm that cannot move yet; ArmSilentError after the timeout."""
        self._check_stop('waiting for the arm')
        if status not in WAITED_FOR:
            raise self._error(status.code)
        waited, sentence = self.silence(), self.driver.sentence(status, reason)
        self._log_waiting(f'the arm: {sentence}')
        is_new = status is Status.NO_STATE
        timeout = max(self._timeout, FIRST_CONTACT) if is_new else self._timeout
        if waited > timeout and status in OBSTACLES:
            raise self._error(status.code)
        if waited > timeout:
            raise ArmSilentError(
                f'{sentence}, for {timeout:g} s ({self.driver}): is the arm, or sim_node, running '
                'in this ROS domain?'
            )
        time.sleep(PATIENCE)
