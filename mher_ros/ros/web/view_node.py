"""The node view_node: serves a page that shows the arm, sends goals and calls services."""

from collections.abc import Callable
import contextlib
import dataclasses
import functools
import math
import os
import queue
import time
import traceback
from typing import Any

from mher_ros.options import option
from mher_ros.robots.robot import load_robot, Topics
from mher_ros.ros.common.diagnostics import report_diagnostics
from mher_ros.ros.common.markers import drawings_of
from mher_ros.ros.common.parameters import declare
from mher_ros.ros.common.polled_topic import BEST_EFFORT, LATCHED, PolledTopic
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.raw_messages import MAX_BYTES_ANY
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.common.status import Level, StatusPublisher, ViewStatus
from mher_ros.ros.web.page_buttons import PageButtons, PageGoals
from mher_ros.ros.web.watched_nodes import GONE, page_lines, WatchedNodes
from mher_ros.view.access_control import HOST, PORT
from mher_ros.view.live_page import Line, LivePage
from mher_ros.view.scene import ArmSceneError
from mher_ros.view.server import PageServer, warning_of
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

FOLLOW = 0.05  # time between two looks at the stops of the arm [s]
NICE = 10  # increase of the nice value: commands to an arm have priority


@dataclasses.dataclass(frozen=True)
class ViewOptions:
    host: str = option(
        HOST,
        'address to listen on; an address that other machines can reach requires a token, because '
        'they can move the arm',
    )
    port: int = option(PORT, 'port; if it is in use, the next free one', low=0, high=65535)
    token: str = option('', 'secret that a browser needs: at least 8 letters, digits or . _ ~ -')
    view_rate: float = option(
        20.0, 'updates per second [Hz]; 3 without a graphics card', low=0.5, high=60.0
    )
    robot: str = option(
        '',
        'robot file with the topics of joint states and model: a name from config/robots, or the '
        'path of a YAML file; empty: joint_states and robot_description',
    )


class ViewNode(Node):
    """Shows arm, goals and training; the thread of ``run`` updates the page."""

    def __init__(self) -> None:
        super().__init__('view_node')
        self.options = options = declare(self, ViewOptions())
        topics = load_robot(options.robot).topics if options.robot else Topics()
        self._descriptions = PolledTopic(self, String, topics.robot_description, LATCHED)
        self._states = PolledTopic(self, JointState, topics.joint_states, BEST_EFFORT)
        self._nodes = WatchedNodes(self)
        self._server = PageServer(
            options.host, options.port, options.token, 'mher_ros', lambda: self._buttons.stop()
        )
        self.address = self._server.address
        self.page = LivePage(self._server.viser)
        self._urdf = self._trouble = self._refused_frame = ''
        self._moved_at = -math.inf
        self._has_looked = False
        self._unit = 'm'
        self._drawn: dict[str, Any] = {}
        self._goals = PageGoals(self, self.page, self._nodes)
        self._buttons = PageButtons(self, self.page, self._goals, self._nodes)
        StatusPublisher(self, self._make_status)
        report_diagnostics(self, lambda: (self._make_status(), {}))

    def run(self, stop: StopRequest) -> None:
        warning = warning_of(self.options.host)
        if warning:
            self.get_logger().warning(warning)
        # Not with the logger, which publishes it on /rosout: it may contain the token.
        print(f'open {self.address} in a browser', flush=True)
        due = time.monotonic()
        try:
            while not stop():
                if time.monotonic() >= due:
                    due = max(due + 1.0 / self.options.view_rate, time.monotonic())
                    self._try(self._tick)
                with contextlib.suppress(queue.Empty):
                    wait = min(FOLLOW, max(0.0, due - time.monotonic()))
                    event = self.page.events.get(timeout=wait)
                    self._try(functools.partial(self._buttons.answer, event))
                self._try(self._buttons.follow)
        finally:
            self._server.close()

    def _try(self, action: Callable[[], None]) -> None:
        """Call ``action``; after an error the page, with its stop button, stays."""
        try:
            action()
        except Exception:
            self.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)

    def _make_status(self) -> ViewStatus:
        viewers = len(self._server.viser.get_clients())
        return ViewStatus(
            'trouble' if self._trouble else 'serving',
            self._trouble or f'{viewers} browsers connected',
            Level.WARN if self._trouble else Level.OK,
            self.address.partition('?')[0],  # without the token
            viewers,
        )

    def _tick(self) -> None:
        self._show_arm()
        self._show_markers('policy', self._nodes.policy_markers.latest)
        self._show_markers('train', self._nodes.train_markers.latest)
        self._show_shapes()
        self._show_workspace()
        self._show_curve()
        self._goals.tick(self._buttons.is_waiting)
        self._buttons.tick()
        lines = page_lines(self._nodes.policy.latest, self._nodes.training.latest)
        self.page.say([self._arm_line(), *lines])

    def _show_arm(self) -> None:
        for raw in self._descriptions.take_all(0.0):
            description = self._descriptions.read(raw, MAX_BYTES_ANY)
            if description is None:
                continue
            urdf = str(description.data)
            self._trouble = self._refused_frame = ''
            if urdf != self._urdf:  # a simulation that is restarted publishes the same
                self._draw_arm(urdf, '')
                if self.page.arm is not None:
                    self.page.look_at(self.page.arm.centre())
                self._has_looked = False
        frame, arm = self._nodes.frame, self.page.arm
        if arm is not None and frame in arm.links - {arm.base, self._refused_frame}:
            self._draw_arm(self._urdf, frame)
        positions: dict[str, float] = {}
        for raw in self._states.take_all(0.0):
            state = self._states.read(raw)
            if state is not None:
                positions |= dict(zip(state.name, state.position, strict=False))
        if positions:
            self._moved_at = time.monotonic()
            if self.page.arm is not None:
                self.page.arm.move(positions)

    def _draw_arm(self, urdf: str, frame: str) -> None:
        self.page.goal.place(None)  # a user must not drag it in another frame
        try:
            self.page.show_arm(urdf, frame)
            self._urdf = urdf
        except ArmSceneError as error:
            self._trouble, self._refused_frame = str(error), frame
            self.get_logger().error(self._trouble)

    def _show_shapes(self) -> None:
        nodes, wanted = self._nodes, self.page.wants_shapes
        nodes.watch_shapes(wanted)
        self._show_markers('shapes_policy', nodes.policy_shapes.latest if wanted else None)
        self._show_markers('shapes_train', nodes.train_shapes.latest if wanted else None)

    def _show_markers(self, prefix: str, array: MarkerArray | None) -> None:
        if array is self._drawn.get(prefix):
            return
        self._drawn[prefix] = array
        if array is None:
            self.page.drawings.clear(prefix)
            return
        for name, drawing in drawings_of(array).items():
            self.page.drawings.show(f'{prefix}_{name}', drawing)

    def _show_workspace(self) -> None:
        workspace = self._nodes.workspace
        if workspace is not None and not self._has_looked:
            self._has_looked = True
            low, high = np.array(workspace)
            self.page.look_at((low + high) / 2.0, float(np.max(high - low)))

    def _show_curve(self) -> None:
        # The curve of the last run stays until a new one starts.
        message = self._nodes.curve.latest
        training = self._nodes.training.latest
        shown = message, self._unit if training is None else training.unit
        if message is None or shown == self._drawn.get('curve'):
            return
        self._drawn['curve'] = shown
        self._unit = shown[1]
        rows = np.array(message.data, np.float64)
        if rows.size % 3 == 0:
            self.page.curves.show(rows.reshape(-1, 3), self._unit)

    def _arm_line(self) -> Line:
        if self._trouble:
            return Line('Arm', self._trouble, False)
        waited_for = []
        if not self._urdf:
            waited_for.append(self._descriptions.topic.lstrip('/'))
        if time.monotonic() - self._moved_at > GONE:
            waited_for.append(self._states.topic.lstrip('/'))
        if waited_for:
            return Line('Arm', f'waiting for {" and ".join(waited_for)}', False)
        if self.page.arm is not None and self.page.arm.is_empty:
            return Line('Arm', 'cannot be drawn: none of its meshes was found', False)
        return Line('Arm', f'from {self._states.topic.lstrip("/")}', True)


def run(stop: StopRequest) -> None:
    os.nice(NICE)
    node = ViewNode()
    with spinning(node, stop):
        node.run(stop)
