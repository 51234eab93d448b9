"""Links to simulated arms that wait for each command: lockstep."""

from collections.abc import Callable
import contextlib
import threading
import time
from typing import Any

from geometry_msgs.msg import PoseStamped
from mher_ros.control.fit import robot_digest
from mher_ros.errors import ArmError, EpisodeLostError, StopRequested
from mher_ros.interface import Vector
from mher_ros.options import option_text, OptionError
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common import raw_messages
from mher_ros.ros.common.polled_topic import PolledTopic, RELIABLE_QUEUE
from mher_ros.ros.common.raw_messages import (
    JointStateReader,
    MessageError,
    PoseReader,
    SECOND,
)
from mher_ros.ros.common.shared_core import SharedCore
from mher_ros.ros.common.status import SimulationStatus, subscribe_status
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.tracker import tracker_text
from mher_ros.tasks.task import Task
import numpy as np
from numpy.typing import NDArray
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState, Joy
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

JointVectors = tuple[Vector, Vector]  # positions and velocities (n,)

Write = Callable[[int, NDArray[Any]], bytes]  # a command (k,) as a message, with a stamp [ns]

RESEND = 0.1  # time after which an unanswered command is sent again [s]
PATIENCE = 0.05  # longest time between two checks whether to stop [s]
FIRST_CONTACT = 30.0  # least timeout of the first message of an arm, which may be starting [s]
CALL_AGAIN = 2.0  # time after which an unanswered service is called again [s]
LISTEN = 0.25  # time within which every running simulation publishes its state [s]
LOG_AFTER = 1.0  # waiting time from which on it is logged [s]


class ArmSilentError(ArmError):
    """The arm does not answer; the text names the topic or service, and the time."""


class ArmLink:
    """What the links to simulated and real arms have in common."""

    _asked_to_stop: Callable[[], bool]
    _node: Node
    _since: float | None = None  # time at which it began to wait for the arm

    def silence(self) -> float:
        """Return the time since the oldest unanswered request [s]; 0: there is none."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def positions(self) -> Vector:
        """Return the measured joint positions (n,); empty: they are not known."""
        return np.empty(0)

    def _check_stop(self, doing: str) -> None:
        """Raise StopRequested if a stop was requested while ``doing`` something."""
        if self._asked_to_stop():
            raise StopRequested(f'stopped while {doing}')

    def _log_waiting(self, text: str) -> None:
        if self.silence() > LOG_AFTER:
            self._node.get_logger().info(f'waiting for {text}', throttle_duration_sec=5.0)


class LockstepLink(ArmLink):
    """A link to the simulation of a task: one control period for each action."""

    # A command carries the stamp of the state it answers. If that is the latest, the arm steps and
    # publishes the next state, stamped one period later; otherwise it publishes the latest again.
    # So a lost, duplicated or late message never adds or skips a step. Stamps of another series
    # mean that the arm was restarted: the episode is lost.

    def __init__(
        self,
        node: Node,
        task: Task,
        arm: str = 'sim_node',
        timeout: float = 10.0,
        asked_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """``arm``: node that is reset; the caller spins ``node``, which gets its responses."""
        self._node, self._task, self._timeout = node, task, timeout
        self._asked_to_stop = asked_to_stop
        self._connect(task)
        self._states = PolledTopic(node, JointState, self._states_topic)
        self._reader = JointStateReader(task.joint_names)
        self._reset = node.create_client(Trigger, f'{arm}/reset')
        # Before the subscription: if the node is already spun, the status is received at once.
        self._status: SimulationStatus | None = None
        self._news = threading.Condition()
        self._status_topic = subscribe_status(node, SimulationStatus, arm, self._take_status)
        self._set_parameters: Any = None
        if task.random_start or isinstance(task, Reach):
            self._set_parameters = node.create_client(SetParameters, f'{arm}/set_parameters')
        self._stamp = 0
        self._received_at, self._has_received = time.monotonic(), False
        self._unusable = ''
        self._alone = False
        self.repeats = 0  # number of commands that were sent again
        self._core = SharedCore(node.context.get_domain_id(), self._states.topic)
        self._core.enter()

    def _connect(self, task: Task) -> None:
        """Set the expected arm and its topics."""
        self._states_topic = 'joint_states'
        self._period = round(task.interface.control_period * SECOND)
        self._expected: dict[str, Any] = {'arm': task.interface.task, 'commands': 'action'}
        self._commands = self._node.create_publisher(Joy, 'action', RELIABLE_QUEUE)
        self._write: Write = raw_messages.ActionWriter(len(task.interface.action)).write
        self._no_action = np.zeros(len(task.interface.action), np.float32)

    def exchange(self, command: NDArray[np.floating]) -> JointVectors:
        """Send a command (k,), repeatedly if necessary, and return the next state."""
        stamp = self._stamp
        self._send(stamp, command)
        return self._state_at(stamp + self._period, lambda: self._send(stamp, command))

    def close(self) -> None:
        self._core.leave()

    def reset(self, seed: int) -> JointVectors:
        """Reset the arm to the initial state of ``seed`` and return the state."""
        self._received_at = time.monotonic()
        while True:
            self._wait_for(self._reset.service_is_ready, self._reset.srv_name, 'it is not offered')
            if not self._alone:
                self._wait_to_be_alone()
            self._received_at = time.monotonic()
            self._wait_for(lambda: bool(self._status), self._status_topic, 'its reset is offered')
            before = self._status or SimulationStatus()
            if self._set_parameters is not None:
                request = SetParameters.Request()
                request.parameters = [
                    one.to_parameter_msg()
                    for one in (Parameter('seed', value=seed), *self._start())
                ]
                for result in self._call(self._set_parameters, request).results:
                    if not result.successful:
                        raise ArmError(f'the arm refuses the seed: {result.reason}')
            response = self._call(self._reset, Trigger.Request())
            if not response.success:
                raise ArmError(f'the arm refuses to reset: {response.message}')
            after = self._status_after(before)
            if after is None:
                continue  # the node may have ended after the response
            self._check_arm(after)
            # A node that was restarted in the meantime does not have the seed.
            if self._set_parameters is None or after.seed == seed:
                with contextlib.suppress(EpisodeLostError):
                    return self._state_at(after.reset_stamp, self._ask_for_state)

    def _start(self) -> list[Parameter]:
        """Return the initial positions of the joints as a parameter, if the arm has it."""
        return []

    def _send(self, stamp: int, command: NDArray[np.floating]) -> None:
        """Publish a command (k,) that answers the state stamped ``stamp`` [ns]."""
        self._commands.publish(self._write(stamp, command))

    def _take_status(self, status: SimulationStatus) -> None:
        self._status = status
        self._notify()

    def _notify(self, *_: Any) -> None:
        with self._news:
            self._news.notify_all()

    def _status_after(self, before: SimulationStatus) -> SimulationStatus | None:
        """Return the status after a reset; ``before``: the previous one. None: there is none."""
        end = time.monotonic() + CALL_AGAIN

        def is_after() -> bool:
            now = self._status or before
            return now.resets > (before.resets if now.life == before.life else 0)

        self._wait_for(
            lambda: is_after() or time.monotonic() > end, self._status_topic, 'it was reset'
        )
        return self._status if is_after() else None

    def _check_arm(self, status: SimulationStatus) -> None:
        """Raise ArmError unless the simulation is the one that this run expects."""
        for what, expected in {**self._expected, 'stepping': 'lockstep'}.items():
            got = getattr(status, what)
            if got != expected:
                raise ArmError(
                    f'an arm with {what} {expected} is expected behind '
                    f'{self._reset.srv_name}, got one with {got}'
                )

    def _wait_to_be_alone(self) -> None:
        """Wait until only one simulation publishes states."""
        # A run that has received states before waits for the end of the other one; a new run ends.
        has_received, self._since = self._has_received, time.monotonic()
        while len(self._series()) > 1:
            self._check_stop('waiting for the arm')
            if not has_received or self.silence() > FIRST_CONTACT:
                raise ArmError(
                    f'two arms publish {self._states.topic} ({self._hint()}): give each run a '
                    'namespace or a ROS_DOMAIN_ID of its own'
                )
        self._since, self._alone = None, True

    def _series(self) -> set[int]:
        """Return the phases of the stamps within ``LISTEN``, one for each simulation."""
        series: set[int] = set()
        end = time.monotonic() + LISTEN
        while time.monotonic() < end:
            raw = self._states.take(end)
            state = None if raw is None else self._read(raw)
            if state is not None:
                series.add(state[0] % self._period)
        return series

    def _ask_for_state(self) -> None:
        # No state has the stamp 0: the arm does not move, but publishes the latest state again.
        self._send(0, self._no_action)

    def _state_at(self, expected: int, repeat: Callable[[], None]) -> JointVectors:
        """Return the state with this stamp [ns]; call ``repeat`` every ``RESEND`` until then."""
        self._check_stop('the arm was moving')
        now = self._since = time.monotonic()
        again = now + RESEND
        while True:
            raw = self._states.take(min(again, now + PATIENCE))
            state = None if raw is None else self._read(raw)
            if state is not None and (state[0] > expected or (expected - state[0]) % self._period):
                self._alone = False
                raise EpisodeLostError(
                    'the arm was restarted, or another node resets or commands it: a state '
                    f'stamped {expected} was expected, got {state[0]} ({self._hint()})'
                )
            if state is not None and state[0] == expected:  # an older one is a repetition
                self._stamp, self._since = state[0], None
                return state[1]
            now = time.monotonic()
            if raw is None or now >= again:
                self._check_patience(f'{self._states.topic} that can be used', self._hint())
            if now >= again:
                self.repeats += 1
                repeat()
                again = now + RESEND

    def _read(self, raw: bytes) -> tuple[int, JointVectors] | None:
        try:
            stamp, positions, velocities = self._reader.read(raw)
        except MessageError as error:
            # Another node may publish other joints on the same topic.
            self._unusable = str(error)
            self._states.is_malformed(error)
            return None
        self._received_at, self._has_received = time.monotonic(), True
        return stamp, (positions, velocities)

    def _hint(self) -> str:
        count = self._node.count_publishers(self._states.topic)
        hint = f'{count} {"node publishes" if count == 1 else "nodes publish"} it'
        return f'{hint}; {self._unusable}' if self._unusable else hint

    def _check_patience(self, what: str, hint: str) -> None:
        self._check_stop('waiting for the arm')
        now = time.monotonic()
        is_there = now - self._received_at < LOG_AFTER
        doing = 'does not move: is it paused?' if is_there else 'publishes nothing'
        self._log_waiting(f'{what}: the arm {doing}')
        timeout = self._timeout if self._has_received else max(self._timeout, FIRST_CONTACT)
        if now - self._received_at > timeout:
            raise ArmSilentError(
                f'nothing on {what} for {timeout:g} s ({hint}): is the arm, or sim_node, '
                'running in this ROS domain?'
            )

    def _call(self, client: Any, request: Any) -> Any:
        """Call a service until it answers."""
        self._received_at = time.monotonic()
        while True:
            self._wait_for(client.service_is_ready, client.srv_name, 'it is not offered')
            future = client.call_async(request)
            future.add_done_callback(self._notify)
            end = time.monotonic() + CALL_AGAIN

            def is_over(future: Any = future, end: float = end) -> bool:
                is_late = time.monotonic() > end or not client.service_is_ready()
                return bool(future.done()) or is_late

            self._wait_for(is_over, client.srv_name, 'it is offered')
            if future.done():
                self._received_at = time.monotonic()
                return future.result()
            client.remove_pending_request(future)

    def _wait_for(self, is_there: Callable[[], bool], what: str, hint: str) -> None:
        """Wait until ``is_there``, which is checked after ``_notify`` and every ``PATIENCE``."""
        self._since = time.monotonic()
        with self._news:
            while not self._news.wait_for(is_there, PATIENCE):
                self._check_patience(what, hint)
        self._since = None


class RobotLink(LockstepLink):
    """A link to a simulated robot: several filtered trajectories in one control period."""

    _task: Reach

    def _connect(self, task: Task) -> None:
        assert isinstance(task, Reach)
        robot, arm = task.robot, task.arm
        self._states_topic = robot.topics.joint_states
        self._period = round(task.command_period * SECOND)
        self._expected = {
            'arm': robot.name,
            'robot_file': robot_digest(load_robot(task.options.robot)),
            'delay': 0.0,
            'lag': 0.0,
            'commands': 'positions',
            'randomise': task.options.randomise,
            'tracker': tracker_text(robot, task.options.tracker),
        }
        self._commands = self._node.create_publisher(
            JointTrajectory, robot.topics.commands['joint_trajectory'], RELIABLE_QUEUE
        )
        self._write = raw_messages.TrajectoryWriter(arm.joint_names, task.command_period).write
        self._controller = task.lockstep_controller()
        self._poses: PolledTopic | None = None
        if task.tracker is not None:
            if not load_robot(task.options.robot).tool_pose.is_tracked:
                raise OptionError(
                    'over topics the robot file says whether the pose of the tool is measured: '
                    f'tool_pose.source: topic is expected in that of {robot.name}'
                )
            self._poses = PolledTopic(self._node, PoseStamped, robot.tool_pose.topic)
            self._pose_reader = PoseReader(robot.tool_pose.frame)
        self._state: JointVectors = np.empty(0), np.empty(0)

    def positions(self) -> Vector:
        return self._state[0]

    def reset(self, seed: int) -> JointVectors:
        """Reset the arm to its initial state and return the state."""
        self._state = super().reset(seed)
        self._controller.reset()
        self._take_pose()
        return self._state

    def exchange(self, command: NDArray[np.floating]) -> JointVectors:
        """Carry out an action (k,) and return the state one control period later."""
        for index in range(self._task.commands_per_step):
            given = command if index == 0 else None
            self._state = super().exchange(self._controller.answer(*self._state, given))
        self._take_pose()
        return self._state

    def _start(self) -> list[Parameter]:
        start = () if self._task.start is None else tuple(self._task.start.tolist())
        return [Parameter('start', value=option_text(start))]

    def _take_pose(self) -> None:
        """Wait for the measured pose of the tool at the stamp of the state, if there is one."""
        if self._poses is None:
            return
        self._received_at = self._since = time.monotonic()
        stamp = 0
        while stamp != self._stamp:
            raw = self._poses.take(time.monotonic() + PATIENCE)
            if raw is None:  # it is published again, as the state is
                self._check_patience(f'{self._poses.topic} at the stamp of the state', '')
                continue
            try:
                stamp, position = self._pose_reader.read(raw)
            except MessageError as error:
                self._poses.is_malformed(error)
                self._unusable = str(error)
                self._check_patience(f'{self._poses.topic} that can be used', self._unusable)
                continue
            if stamp == self._stamp:
                self._task.tracked = position
        self._since = None

    def _ask_for_state(self) -> None:
        """Send nothing: states are published anyway, and a real arm would execute any command."""
