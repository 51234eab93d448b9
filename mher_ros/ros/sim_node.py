"""A simulated arm that looks like a real one from outside."""

from __future__ import annotations

import threading
import time
from typing import Any

from mher_ros.ros.diagnostics import report_diagnostics
from mher_ros.ros.inbox import SPEAKING
from mher_ros.ros.parameters import declare
from mher_ros.ros.process import StopRequest
from mher_ros.ros.shared_core import SharedCore
from mher_ros.ros.sim_arm import make_arm
from mher_ros.ros.sim_options import SimOptions
from mher_ros.ros.sim_view import SimView
from mher_ros.ros.spinning import spinning
from mher_ros.ros.wire import JointStateWriter
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

__all__ = ['run', 'SimNode']

PATIENCE = 0.05
"""Longest time without a look at the wish to stop [s]."""
GIVE_UP = 1.0
"""Lateness that is no longer made up for [s]."""


class SimNode(Node):
    """
    Publishes ``joint_states`` and takes commands.

    The thread that calls ``run`` steps the arm; services are answered by another.

    Every state has a stamp of its own: the clock goes on by one period with every step, and by two
    with a reset. It begins at the time of day to the nanosecond, so that states of two lives
    of this node never share a stamp.
    """

    def __init__(self) -> None:
        super().__init__('sim_node')
        self.options = declare(self, SimOptions(), changing=('seed',))
        options = self.options
        self._name, self._plant, self._input, topics = make_arm(self, options)
        self._lock = threading.Lock()
        self._paused = False
        self._period = round(self._plant.period * 1e9)
        self._stamp = time.time_ns()
        self._steps = 0
        self._command: NDArray[np.float64] | None = None
        self._latest = b''
        self._lateness = Lateness()
        self._writer = JointStateWriter(self._plant.joint_names, self._plant.frame)
        self._states = self.create_publisher(JointState, topics.joint_states, SPEAKING)
        self._view = SimView(self, self._plant, self._name, topics.robot_description, options)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(SetBool, '~/pause', self._on_pause)
        report_diagnostics(self, self._diagnose)
        self._tell_state()

    def run(self, stop: StopRequest) -> None:
        """Step until asked to stop."""
        options = self.options
        self.get_logger().info(
            f'{self._name}: {len(self._plant.joint_names)} joints, commanded by '
            f'{", ".join(self._plant.command_names)}, {options.stepping}, '
            f'{1.0 / self._plant.period:g} Hz'
        )
        try:
            if options.stepping == 'lockstep':
                self._run_in_lockstep(stop)
            else:
                self._run_in_real_time(stop)
        finally:
            self._view.close()

    def _run_in_lockstep(self, stop: StopRequest) -> None:
        SharedCore(self.context.get_domain_id(), self._states.topic_name).enter()
        pause = 1.0 / self.options.view_rate
        look = time.monotonic()
        while not stop():
            taken = self._input.take(min(look, time.monotonic() + PATIENCE))
            with self._lock:
                if taken is not None:
                    stamp, command = taken
                    if stamp == self._stamp and not self._paused:
                        self._advance(command)
                    else:
                        self._states.publish(self._latest)
                if time.monotonic() >= look:
                    if taken is None:
                        self._states.publish(self._latest)  # a sign of life
                    self._view.show(self._stamp)
                    look = time.monotonic() + pause

    def _run_in_real_time(self, stop: StopRequest) -> None:
        tick = self._plant.period / self.options.rate_factor
        pause = 1.0 / self.options.view_rate
        commanded = -self.options.command_timeout
        look = due = time.monotonic() + tick
        while not stop():
            now = time.monotonic()
            if now < due:
                time.sleep(min(due - now, PATIENCE))
                continue
            with self._lock:
                if self._paused:
                    self._input.ignore()
                    self._states.publish(self._latest)
                else:
                    asked = self._input.follow(self._plant.period)
                    if asked is not None:
                        self._command, commanded = asked, now
                    elif now - commanded > self.options.command_timeout:
                        self._command = None
                    self._advance(self._command)
                if now >= look:
                    self._view.show(self._stamp)
                    look += pause
            due += tick
            self._lateness.note(now - due + tick)
            if now - due > GIVE_UP:
                self._lateness.lost += now - due
                due = now

    def _advance(self, command: NDArray[np.float64] | None) -> None:
        self._plant.advance(command)
        self._stamp += self._period
        self._steps += 1
        self._tell_state()

    def _tell_state(self) -> None:
        self._latest = self._writer.write(self._stamp, *self._plant.joint_state())
        self._states.publish(self._latest)

    def _on_reset(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        seed = self.get_parameter('seed').value
        with self._lock:
            self._plant.reset(None if seed < 0 else seed)
            self._command = None
            self._input.forget()
            # Two periods on, so that nobody in an episode takes it for the answer to a command.
            self._stamp += 2 * self._period
            self._tell_state()
            # Whoever steps the arm needs to know which state is the first, and whose it is.
            response.message = (
                f'{self._name}, {self.options.stepping}, {self._input.kind}, seed {seed}, '
                f'first state {self._stamp}'
            )
        response.success = True
        return response

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        with self._lock:
            self._paused = request.data
        response.success = True
        response.message = 'paused' if request.data else 'going on'
        return response

    def _diagnose(self) -> tuple[bool, str, dict[str, str]]:
        """Return whether all is well, a sentence, and figures, since the last call."""
        late, lost = self._lateness.take()
        text = 'paused' if self._paused else 'stepping on command'
        well = True
        if self.options.stepping == 'realtime':
            well = late < self._plant.period / self.options.rate_factor and not lost
            text = 'paused' if self._paused else 'on time' if well else 'late'
        return (
            well,
            text,
            {
                'steps': str(self._steps),
                'worst lateness [s]': f'{late:.4f}',
                'time given up [s]': f'{lost:.3f}',
                'messages refused': str(self._input.refused),
            },
        )


class Lateness:
    """How far the steps of the last second lagged behind the clock."""

    def __init__(self) -> None:
        self.worst, self.lost = 0.0, 0.0

    def note(self, late: float) -> None:
        """Take one step's lateness [s]."""
        self.worst = max(self.worst, late)

    def take(self) -> tuple[float, float]:
        """Return worst lateness and time given up [s], and begin anew."""
        figures = self.worst, self.lost
        self.worst, self.lost = 0.0, 0.0
        return figures


def run(stop: StopRequest) -> None:
    """Run the node until asked to stop."""
    node = SimNode()
    with spinning(node, stop):
        node.run(stop)
