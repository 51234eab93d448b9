"""
An arm behind topics, one control period at a time.

Two ways, by whether the arm waits. In lockstep it does one period for each command that answers
its latest state, so a lost message costs time but never a step. An arm that cannot wait is paced
by its own clock: a period is over when its states say so.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
import re
import threading
import time
from typing import Any

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

__all__ = ['ArmLink', 'ArmSilentError', 'LockstepLink', 'PacedLink']

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
ANSWER = re.compile(r'seed (-?\d+), first state (\d+)')
"""What sim_node's reset says."""


class ArmSilentError(ArmError):
    """The arm says nothing; the message tells which topic or service, and for how long."""


class ArmLink(abc.ABC):
    """
    The arm that ``task`` is about, known through topics alone.

    ``node`` must be spun by somebody: services are answered there. ``arm`` names the node whose
    ``reset`` starts an episode; empty, if the arm has none and stays where it is.
    """

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
        self._output: CommandOutput = (
            TwistOutput(node, task.interface.frame)
            if CommandEncoding(task.interface).is_twist
            else EffortOutput(node, task.joint_names)
        )
        self._reset: Any = None
        self._set_parameters: Any = None
        if arm:
            self._reset = node.create_client(Trigger, f'{arm}/reset')
            if task.random_start:
                self._set_parameters = node.create_client(SetParameters, f'{arm}/set_parameters')
        self._stamp = 0
        self._heard, self._met = 0.0, False
        self._since: float | None = None
        self._unusable = ''
        self.repeats = 0
        """Commands sent again since nothing came of them."""

    @abc.abstractmethod
    def exchange(self, command: NDArray[np.float64]) -> JointVectors:
        """Send a command and return the state one control period later."""

    def silence(self) -> float:
        """Return for how long the state asked for has not come [s]; 0 if none is asked for."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def reset(self, seed: int) -> JointVectors:
        """Bring the arm to the start that belongs to ``seed`` and return its state."""
        self._heard = time.monotonic()
        if self._reset is None:
            return self._first_state(None)
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
            # A node that was restarted meanwhile knows nothing of the seed.
            if self._set_parameters is None or int(answer[1]) == seed:
                try:
                    return self._first_state(int(answer[2]))
                except EpisodeLostError:
                    pass

    @abc.abstractmethod
    def close(self) -> None:
        """Leave the arm."""

    @abc.abstractmethod
    def _is_first(self, came: int, stamp: int) -> bool:
        """Return whether an episode can begin with a state, given the stamp of its start [ns]."""

    @abc.abstractmethod
    def _ask_for_state(self) -> None:
        """Have the arm tell its latest state again, if it waits for commands."""

    def _first_state(self, stamp: int | None) -> JointVectors:
        """Wait for the state stamped so, or for any that is sent from now on."""
        if stamp is None:
            while self._inbox.take(0.0) is not None:
                pass

        def accept(came: int) -> bool:
            if stamp is None or self._is_first(came, stamp):
                return True
            if came > stamp or (stamp - came) % self._period:
                raise EpisodeLostError('the arm was reset again, or restarted')
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
        timeout = self._timeout if self._met else max(self._timeout, FIRST_CONTACT)
        if time.monotonic() - self._heard > timeout:
            raise ArmSilentError(
                f'nothing on {what} for {timeout:g} s ({hint()}): is the arm, or sim_node, '
                'running in this ROS domain?'
            )

    def _call(self, client: Any, request: Any) -> Any:
        """Call a service until it answers."""
        self._heard = time.monotonic()
        while True:
            while not client.service_is_ready():
                self._check_patience(client.srv_name, lambda: 'nobody offers it')
                time.sleep(0.01)
            answered = threading.Event()
            future = client.call_async(request)
            future.add_done_callback(lambda _, event=answered: event.set())
            end = time.monotonic() + CALL_AGAIN
            while time.monotonic() < end and client.service_is_ready():
                if answered.wait(PATIENCE):
                    self._heard = time.monotonic()
                    return future.result()
                self._check_patience(client.srv_name, lambda: 'it is offered')
            client.remove_pending_request(future)


class LockstepLink(ArmLink):
    """
    An arm that waits for its commands.

    A command carries the stamp of the state it answers. The arm steps if that is its latest, and
    else tells its latest again; the next state is stamped one period later. What is lost, doubled
    or late so never makes a step more or less. A state of another series of stamps means that the
    arm was restarted: the episode is lost.
    """

    def exchange(self, command: NDArray[np.float64]) -> JointVectors:
        """Send a command, again and again if need be, and return the state that answers it."""
        stamp, expected = self._stamp, self._stamp + self._period

        def accept(came: int) -> bool:
            if came > expected or (stamp - came) % self._period:
                raise EpisodeLostError(
                    'the arm was restarted, or somebody else resets or commands it: a state '
                    f'stamped {expected} was expected, {came} came '
                    f'({self._hint()})'
                )
            return came == expected  # an older one is a repetition

        self._output.send(stamp, command)
        return self._await(accept, lambda: self._output.send(stamp, command))

    def close(self) -> None:
        """Leave the arm, which waits."""

    def _is_first(self, came: int, stamp: int) -> bool:
        return came == stamp

    def _ask_for_state(self) -> None:
        # No state has this stamp, so this is not obeyed but answered with the latest state.
        self._output.send(0, np.zeros(len(CommandEncoding(self._task.interface).names)))


class PacedLink(ArmLink):
    """
    An arm that cannot wait.

    A period is over with the first state stamped ``EARLY`` periods or more after the last one that
    was used, so it makes no difference how often the arm tells its state. States ``LATE`` periods
    apart, or a command given after the next state had come, are no step of the task: the episode
    is lost.
    """

    EARLY, LATE = 0.75, 1.5

    def exchange(self, command: NDArray[np.float64]) -> JointVectors:
        """Send a command and return the state about one control period later."""

        def accept(came: int) -> bool:
            passed = (came - self._stamp) / self._period
            if not 0.0 <= passed <= self.LATE:
                raise EpisodeLostError(
                    f'the next state came {passed:.2f} control periods after the last; '
                    f'{self.EARLY} to {self.LATE} were expected'
                )
            return passed >= self.EARLY

        self._skim()
        self._output.send(self._node.get_clock().now().nanoseconds, command)
        return self._await(accept)

    def close(self) -> None:
        """Ask the arm to stand still."""
        self._output.send(
            self._node.get_clock().now().nanoseconds,
            np.zeros(len(CommandEncoding(self._task.interface).names)),
        )

    def _is_first(self, came: int, stamp: int) -> bool:
        return came >= stamp

    def _ask_for_state(self) -> None:
        """Do nothing: the next state comes by itself."""

    def _skim(self) -> None:
        """Take what has come since the last state; the next step's state must not be among it."""
        raw = self._inbox.take(0.0)
        state = None if raw is None else self._read(raw)
        if state is None:
            return
        came, _ = state
        if (came - self._stamp) / self._period >= self.EARLY:
            raise EpisodeLostError('a command came too late: the arm had told its next state')
