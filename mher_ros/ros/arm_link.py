"""An arm behind topics, one control period at a time: what all ways to step it share."""

from __future__ import annotations

import abc
from collections.abc import Callable
import re
import threading
import time
from typing import Any, ClassVar

from mher_ros.control.commands import CommandEncoding
from mher_ros.errors import ArmError, EpisodeLostError, StopAsked
from mher_ros.ros.command_output import CommandOutput, EffortOutput, TwistOutput
from mher_ros.ros.inbox import Inbox
from mher_ros.ros.wire import JointStateReader, MessageError, SECOND
from mher_ros.tasks.task import Task
import numpy as np
from numpy.typing import NDArray
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

__all__ = ['ArmLink', 'ArmSilentError', 'JointVectors']

JointVectors = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Positions and velocities (n,)."""

RESEND = 0.1
"""Time after which a command that nothing came of is sent again [s]."""
PATIENCE = 0.05
"""Longest time without a look at the wish to stop [s]."""
FIRST_CONTACT = 30.0
"""Least time to wait for an arm that has not been heard of yet [s]; it may be starting."""
CALL_AGAIN = 2.0
"""Time after which a service that has not answered is called again [s]."""
LISTEN = 0.25
"""Time within which every simulation there is tells its state [s]."""
STRANGE = 1.0
"""Time after which waiting is worth a word in the log [s]."""
ANSWER = re.compile(r'(\w+), (\w+), (\w+), seed (-?\d+), first state (\d+)')
"""What sim_node's reset says: task, stepping, commands, seed and the stamp of the start [ns]."""


class ArmSilentError(ArmError):
    """The arm says nothing; the message tells which topic or service, and for how long."""


class ArmLink(abc.ABC):
    """
    The arm that ``task`` is about, known through topics alone.

    ``node`` must be spun by somebody: services are answered there. ``arm`` names the node whose
    ``reset`` starts an episode; empty, if the arm has none and stays where it is.
    """

    stepping: ClassVar[str]
    """What sim_node calls this way to be stepped."""

    def __init__(
        self,
        node: Node,
        task: Task,
        arm: str = 'sim_node',
        timeout: float = 10.0,
        asked_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._node, self._task, self._timeout = node, task, timeout
        self._asked_to_stop = asked_to_stop
        self._period = round(task.interface.control_period * SECOND)
        self._inbox = Inbox(node, JointState, 'joint_states')
        self._reader = JointStateReader(task.joint_names)
        encoding = CommandEncoding(task.interface)
        self._nothing = np.zeros(len(encoding.names))
        self._output: CommandOutput = (
            TwistOutput(node, task.interface.frame)
            if encoding.is_twist
            else EffortOutput(node, task.joint_names)
        )
        self._reset: Any = None
        self._set_parameters: Any = None
        if arm:
            self._reset = node.create_client(Trigger, f'{arm}/reset')
            if task.random_start:
                self._set_parameters = node.create_client(SetParameters, f'{arm}/set_parameters')
        self._stamp = 0
        self._heard, self._met = time.monotonic(), False
        self._since: float | None = None
        self._unusable = ''
        self._alone = False
        self.repeats = 0
        """Commands sent again since nothing came of them."""

    @abc.abstractmethod
    def exchange(self, command: NDArray[np.float64]) -> JointVectors:
        """Send a command and return the state one control period later."""

    def silence(self) -> float:
        """Return for how long what was asked for has not come [s]; 0 if nothing was."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def reset(self, seed: int) -> JointVectors:
        """Bring the arm to the start that belongs to ``seed`` and return its state."""
        self._heard = time.monotonic()
        if self._reset is None:
            return self._first_state(None)
        self._meet()
        while True:
            if self._set_parameters is not None:
                request = SetParameters.Request()
                request.parameters = [Parameter('seed', value=seed).to_parameter_msg()]
                for result in self._call(self._set_parameters, request).results:
                    if not result.successful:
                        raise ArmError(f'the arm takes no seed for its start: {result.reason}')
            response = self._call(self._reset, Trigger.Request())
            if not response.success:
                raise ArmError(f'the arm refuses to reset: {response.message}')
            answer = ANSWER.fullmatch(response.message)
            if answer is None:
                return self._first_state(None)
            self._check_arm(*answer.group(1, 2, 3))
            if not self._alone:
                self._wait_to_be_alone()
            # A node that was restarted meanwhile knows nothing of the seed.
            if self._set_parameters is None or int(answer[4]) == seed:
                try:
                    return self._first_state(int(answer[5]))
                except EpisodeLostError:
                    pass

    @abc.abstractmethod
    def close(self) -> None:
        """Leave the arm."""

    @abc.abstractmethod
    def _meet(self) -> None:
        """Make sure, as far as can be without touching it, that the arm is nobody else's."""

    @abc.abstractmethod
    def _is_first(self, came: int, stamp: int) -> bool:
        """Return whether an episode can begin with a state, given the stamp of its start [ns]."""

    @abc.abstractmethod
    def _ask_for_state(self) -> None:
        """Have the arm tell its latest state again, if it waits for commands."""

    def _check_arm(self, task: str, stepping: str, commands: str) -> None:
        """Raise ArmError unless the simulation is the one that this run is about."""
        for what, expected, got in (
            ('task', self._task.interface.task, task),
            ('stepping', self.stepping, stepping),
            ('interface', self._output.kind, commands),
        ):
            if got != expected:
                raise ArmError(
                    f'an arm with {what} {expected} is expected behind '
                    f'{self._reset.srv_name}, got one with {got}'
                )

    def _wait_to_be_alone(self) -> None:
        """
        Wait until the states of one simulation are heard.

        Who has met its arm waits for a newcomer to leave; the newcomer leaves.
        """
        self._since = time.monotonic()
        while len(self._series()) > 1:
            if self._asked_to_stop():
                raise StopAsked('stopped while waiting for the arm')
            if not self._met or self.silence() > FIRST_CONTACT:
                raise ArmError(
                    f'{self._inbox.topic} tells of two arms at once ({self._hint()}): give each '
                    'run a ROS_DOMAIN_ID of its own'
                )
        self._since, self._alone = None, True

    def _series(self) -> set[int]:
        """Return what tells the stamps of each simulation apart that is heard for a moment."""
        series: set[int] = set()
        end = time.monotonic() + LISTEN
        while time.monotonic() < end:
            raw = self._inbox.take(end)
            if raw is not None:
                try:
                    series.add(self._reader.read(raw)[0] % self._period)
                except MessageError as error:
                    self._inbox.is_malformed(error)
        return series

    def _lost(self, text: str) -> EpisodeLostError:
        """Return the error to raise when the state can no longer be trusted."""
        self._alone = False
        return EpisodeLostError(text)

    def _first_state(self, stamp: int | None) -> JointVectors:
        """Wait for the state stamped so, or for any that is sent from now on."""
        if stamp is None:
            while self._inbox.take(0.0) is not None:
                pass

        def accept(came: int) -> bool:
            if stamp is None or self._is_first(came, stamp):
                return True
            if came > stamp or (stamp - came) % self._period:
                raise self._lost('the arm was reset again, or restarted')
            return False

        return self._await(accept, self._ask_for_state)

    def _await(
        self, accept: Callable[[int], bool], remind: Callable[[], None] = lambda: None
    ) -> JointVectors:
        """Return the first state whose stamp [ns] is accepted; calls ``remind`` meanwhile."""
        if self._asked_to_stop():
            raise StopAsked('stopped while the arm was moving')
        now = self._since = time.monotonic()
        again = now + RESEND
        while True:
            raw = self._inbox.take(min(again, now + PATIENCE))
            state = None if raw is None else self._read(raw)
            if state is not None and accept(state[0]):
                self._stamp, self._since = state[0], None
                return state[1]
            now = time.monotonic()
            if raw is None or now >= again:
                self._check_patience(f'{self._inbox.topic} that can be used', self._hint)
            if now >= again:
                self.repeats += 1
                remind()
                again = now + RESEND

    def _read(self, raw: bytes) -> tuple[int, JointVectors] | None:
        try:
            stamp, positions, velocities = self._reader.read(raw)
        except MessageError as error:
            # Another node may tell of other joints on the same topic.
            self._unusable = str(error)
            self._inbox.is_malformed(error)
            return None
        self._heard, self._met = time.monotonic(), True
        return stamp, (positions, velocities)

    def _hint(self) -> str:
        count = self._node.count_publishers(self._inbox.topic)
        hint = f'{count} {"node publishes" if count == 1 else "nodes publish"} it'
        return f'{hint}; {self._unusable}' if self._unusable else hint

    def _check_patience(self, what: str, hint: Callable[[], str]) -> None:
        if self._asked_to_stop():
            raise StopAsked('stopped while waiting for the arm')
        now = time.monotonic()
        if self.silence() > STRANGE:
            heard = now - self._heard < STRANGE
            doing = 'tells its state but does not move: is it paused?' if heard else 'is silent'
            self._node.get_logger().info(
                f'waiting for {what}: the arm {doing}', throttle_duration_sec=5.0
            )
        timeout = self._timeout if self._met else max(self._timeout, FIRST_CONTACT)
        if now - self._heard > timeout:
            raise ArmSilentError(
                f'nothing on {what} for {timeout:g} s ({hint()}): is the arm, or sim_node, '
                'running in this ROS domain?'
            )

    def _call(self, client: Any, request: Any) -> Any:
        """Call a service until it answers."""
        self._heard = self._since = time.monotonic()
        while True:
            self._wait_for_service(client)
            answered = threading.Event()
            future = client.call_async(request)
            future.add_done_callback(lambda _, event=answered: event.set())
            end = time.monotonic() + CALL_AGAIN
            while time.monotonic() < end and client.service_is_ready():
                if answered.wait(PATIENCE):
                    self._heard, self._since = time.monotonic(), None
                    return future.result()
                self._check_patience(client.srv_name, lambda: 'it is offered')
            client.remove_pending_request(future)

    def _wait_for_service(self, client: Any) -> None:
        self._since = time.monotonic()
        while not client.service_is_ready():
            self._check_patience(client.srv_name, lambda: 'nobody offers it')
            time.sleep(0.01)
