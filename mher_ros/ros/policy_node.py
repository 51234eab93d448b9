"""Leads an arm to goals with a learnt policy; every command is checked before it leaves."""

from __future__ import annotations

from collections.abc import Callable
import gc
import importlib
import sys
import threading
import traceback
from typing import Any, TYPE_CHECKING

from lifecycle_msgs.srv import ChangeState
from mher_ros.control.safety import Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import MherError, StopAsked
from mher_ros.ros.diagnostics import report_diagnostics
from mher_ros.ros.latency import Latency
from mher_ros.ros.parameters import declare
from mher_ros.ros.policy_options import PolicyOptions
from mher_ros.ros.process import StopRequest
from mher_ros.ros.spinning import spinning
from mher_ros.ros.stop_services import StopServices
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from std_msgs.msg import Bool, Float64

if TYPE_CHECKING:
    from mher_ros.ros.deployment import Deployment

__all__ = ['PolicyNode', 'run']

IDLE = 0.05
"""Time between two looks at whether there is something to do [s]."""
VIEW_RATE = 20.0
"""Messages about the distance to the goal in a second."""


class PolicyNode(LifecycleNode):
    """
    A managed node: configured it has a policy and an arm, active it moves the arm.

    The thread that calls ``run`` answers joint states; goals, services, parameters and
    transitions are answered by another, ``stop_services`` by a third.
    """

    def __init__(self, stop: StopRequest, latency: Callable[[float], Latency] = Latency) -> None:
        """``latency`` makes what is told of each answer, from the time an answer may take [s]."""
        super().__init__('policy_node')
        self.options = declare(self, PolicyOptions())
        self._asked_to_stop, self._latency = stop, latency
        self._deployment: Deployment | None = None
        self._problem: Exception | None = None
        self._starting = False
        self._latch = StopLatch()
        self.stop_services = StopServices(self, self._latch)
        # Whoever takes a deployment away, or its states, waits until no step is under way.
        self._stepping = threading.Lock()
        self._active = threading.Event()
        self._distance = self.create_publisher(Float64, '~/distance', 10)
        self._reached = self.create_publisher(Bool, '~/reached', 10)
        self.create_timer(1.0 / VIEW_RATE, self._tell)
        report_diagnostics(self, self._diagnose)
        _refuse_wrong_transitions(self)

    def run(self) -> None:
        """Move the arm while active, until asked to stop; then bring it to rest."""
        # Loading libraries holds all threads up: not when the node is asked to be configured.
        importlib.import_module('mher_ros.ros.deployment')
        try:
            if self.options.autostart:
                self._start()
            else:
                self.get_logger().info('waiting to be configured and activated')
            while not self._asked_to_stop():
                is_active = self._active.wait(IDLE)
                with self._stepping:
                    if self._deployment is not None:
                        if is_active and self._active.is_set():
                            self._deployment.step()
                        else:
                            self._deployment.heed_stop()
        except StopAsked:
            pass
        finally:
            self._rest('policy_node ends')

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Load the policy and the arm."""
        # Not above: other nodes are found while this takes its time.
        from mher_ros.ros.deployment import Deployment

        self._problem = None
        try:
            self._deployment = Deployment(
                self, self.options, self._asked_to_stop, self._latch, self._latency
            )
        except MherError as error:
            self._problem = error
            # While it starts by itself, whoever started it is told why it ends.
            if not self._starting and not isinstance(error, StopAsked):
                self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # rclpy would not say a word
            self._problem = error
            self.get_logger().error(''.join(traceback.format_exception(error)))
            return TransitionCallbackReturn.ERROR
        return super().on_configure(state)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Take goals."""
        assert self._deployment is not None
        # What is there by now stays: looking through it for garbage would hold the arm up.
        gc.collect()
        gc.freeze()
        with self._stepping:  # a step that began before may still wait for a state
            self._deployment.activate()
        self._active.set()
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Bring the arm to rest, then command nothing."""
        self._rest('policy_node was deactivated')
        return super().on_deactivate(state)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Forget policy and arm."""
        self._leave()
        return super().on_cleanup(state)

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Bring the arm to rest if it moves, and end."""
        self._rest('policy_node was shut down')
        self._leave()
        self._asked_to_stop.ask()
        return super().on_shutdown(state)

    def _start(self) -> None:
        self._starting = True
        for step in (self.trigger_configure, self.trigger_activate):
            if step() is not TransitionCallbackReturn.SUCCESS:
                raise self._problem or MherError('policy_node could not be started')
        self._starting = False

    def _rest(self, reason: str) -> None:
        self._active.clear()
        with self._stepping:
            if self._deployment is not None:
                self._deployment.deactivate(reason)

    def _leave(self) -> None:
        with self._stepping:
            deployment, self._deployment = self._deployment, None
            if deployment is not None:
                deployment.close()

    def _tell(self) -> None:
        deployment = self._deployment
        if deployment is None or not self._active.is_set():
            return
        motion = deployment.motion()
        if motion.goal is not None:
            self._distance.publish(Float64(data=motion.distance))
        self._reached.publish(Bool(data=motion.reached))

    def _diagnose(self) -> tuple[bool, str, dict[str, str]]:
        """Return whether all is well, a sentence, and figures."""
        deployment = self._deployment
        if deployment is None:
            stopped = self._latch.reason
            if stopped is not None:
                return False, f'{Status.STOPPED.value}: {stopped}', {}
            return True, 'not configured', {}
        guard = deployment.reach.guard
        if not self._active.is_set() and guard.status is not Status.STOPPED:
            return True, 'not active', {}
        text = deployment.sentence(guard.status, guard.reason)
        return not guard.status.is_trouble, text, deployment.figures()


def _refuse_wrong_transitions(node: LifecycleNode) -> None:
    """Answer no to a transition that is not possible; rclpy would break off instead."""
    (service,) = (one for one in node.services if one.srv_type is ChangeState)
    change = service.callback

    def try_to_change(
        request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        try:
            return change(request, response)
        except rclpy_implementation.RCLError:
            node.get_logger().warning(
                f'a transition that is possible now is expected, got {request.transition.id}'
            )
            response.success = False
            return response

    service.callback = try_to_change


def run(stop: StopRequest, latency: Callable[[float], Latency] = Latency) -> None:
    """Run the node until asked to stop; ``latency``: as ``PolicyNode`` takes it."""
    # While a goal or a service is dealt with, the arm waits for the interpreter: not for long.
    sys.setswitchinterval(0.0005)
    node = PolicyNode(stop, latency)
    with spinning(node, stop), node.stop_services.answering():
        node.run()
