"""The node policy_node: moves an arm to goals with a learnt policy."""

from collections.abc import Callable
import dataclasses
import gc
import sys
import threading
import traceback
from typing import Any

from lifecycle_msgs.srv import ChangeState
from mher_ros.control.safety_monitor import Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import MherError, StopRequested
from mher_ros.ros.common.diagnostics import Latency, report_diagnostics
from mher_ros.ros.common.parameters import declare
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.common.status import DeploymentStatus, Level, StatusPublisher

# At start: loading libraries later would block all threads, and with them ~/stop.
from mher_ros.ros.deploy.deployment import Deployment, PolicyOptions
from mher_ros.ros.deploy.stop_services import StopServices
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

IDLE = 0.05  # time between two checks whether the node is active [s]
STATUS_PERIOD, CHECK_PERIOD = 0.2, 0.05
"""Times between two messages of the status, and between two checks for changes of it [s]."""


class PolicyNode(LifecycleNode):
    """A lifecycle node: configured it has a policy and an arm, active it moves the arm."""

    # The thread that calls ``run`` answers joint states; another one handles goals, services,
    # parameters and transitions, and a third one ``stop_services``.
    def __init__(self, stop: StopRequest, latency: Callable[[float], Latency] = Latency) -> None:
        """``latency`` makes the recorder of answer times for a deadline [s]."""
        super().__init__('policy_node')
        self.options = declare(self, PolicyOptions())
        self._asked_to_stop, self._latency = stop, latency
        self._deployment: Deployment | None = None
        self._problem: Exception | None = None
        self._starting = False
        self._may_move = 0.0  # time for which the arm may move after the last cleanup [s]
        self._latch = StopLatch()
        # A thread that removes the deployment, or takes its states, waits for the end of a step.
        self._stepping = threading.Lock()
        self._active = threading.Event()
        self._configuring = False
        self._status = StatusPublisher(self, self._make_status, STATUS_PERIOD, CHECK_PERIOD)
        self.stop_services = StopServices(self, self._latch, self._status.publish)
        report_diagnostics(self, self._diagnose)
        _refuse_wrong_transitions(self)

    def run(self) -> None:
        """Move the arm while active, until a stop is requested; then bring it to rest."""
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
                            self._deployment.driver.step()
                        else:
                            self._deployment.driver.update_stop()
        except StopRequested:
            pass
        finally:
            self._rest('policy_node ends')

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Load the policy and the arm."""
        self._problem, self._configuring = None, True
        self._status.publish()
        try:
            self._deployment = Deployment(
                self,
                self.options,
                self._asked_to_stop,
                self._latch,
                self._latency,
                self._status.publish,
            )
            driver = self._deployment.driver
            driver.path.may_move_until(driver.clock.now() + self._may_move)
        except MherError as error:
            self._problem = error
            # With autostart, ``run`` raises it instead.
            if not self._starting and not isinstance(error, StopRequested):
                self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except InvalidHandle:  # the node has ended in the meantime
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # rclpy would not report it
            self._problem = error
            self.get_logger().error(''.join(traceback.format_exception(error)))
            return TransitionCallbackReturn.ERROR
        finally:
            self._configuring = False
            self._status.publish()
        return super().on_configure(state)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Accept goals."""
        assert self._deployment is not None
        # Existing objects are excluded from garbage collection, which would delay commands.
        gc.collect()
        gc.freeze()
        with self._stepping:  # a step that began before may still wait for a state
            self._deployment.activate()
        self._active.set()
        self._status.publish()
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Bring the arm to rest, then send no commands."""
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
        self._status.publish()

    def _leave(self) -> None:
        with self._stepping:
            deployment, self._deployment = self._deployment, None
            if deployment is not None:
                driver = deployment.driver
                self._may_move = max(0.0, driver.path.may_move - driver.clock.now())
                deployment.close()
        self._status.publish()

    def _make_status(self) -> DeploymentStatus:
        """Return the status, in any state of the node."""
        deployment, stopped = self._deployment, self._latch.reason
        status = DeploymentStatus() if deployment is None else deployment.status()
        if deployment is not None and self._active.is_set():
            return status
        state, reason, level = 'unconfigured', 'not configured', Level.OK
        if self._configuring:
            state, reason = 'configuring', 'being configured'
        elif deployment is not None:
            state, reason = 'inactive', 'not active'
        elif self._problem is not None:
            reason, level = f'not configured: {self._problem}', Level.ERROR
        if stopped is not None:
            reason, level = f'{Status.STOPPED.value}: {stopped}', Level.WARN
        return dataclasses.replace(
            status,
            state=state,
            reason=reason,
            level=level,
            stopped=stopped is not None,
            goals_from=max(self._latch.changed_at, status.goals_from),
        )

    def _diagnose(self) -> tuple[DeploymentStatus, dict[str, str]]:
        deployment = self._deployment
        return self._make_status(), {} if deployment is None else deployment.figures()


def _refuse_wrong_transitions(node: LifecycleNode) -> None:
    """Answer an impossible transition with ``success`` false; rclpy would raise instead."""
    (service,) = (one for one in node.services if one.srv_type is ChangeState)
    change = service.callback

    def try_to_change(
        request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        try:
            return change(request, response)
        except rclpy_implementation.RCLError:
            node.get_logger().warning(
                f'transition {request.transition.id} is not possible in this state'
            )
            response.success = False
            return response

    service.callback = try_to_change


def run(stop: StopRequest, latency: Callable[[float], Latency] = Latency) -> None:
    """Run the node until a stop is requested; ``latency``: as in ``PolicyNode``."""
    # Commands wait for the interpreter while a goal or a service is handled: keep that short.
    sys.setswitchinterval(0.0005)
    node = PolicyNode(stop, latency)
    with spinning(node, stop), node.stop_services.answering():
        node.run()
