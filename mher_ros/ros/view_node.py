"""Serves a page in the browser that shows the arm, and through which people lead it."""

from __future__ import annotations

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

from mher_ros.control.robot import load_robot, Topics
from mher_ros.options import option
from mher_ros.ros.diagnostics import report_diagnostics
from mher_ros.ros.drawn_markers import drawings_of, extent_of, frame_of
from mher_ros.ros.inbox import Inbox, LATCHED, SEVERAL
from mher_ros.ros.page_buttons import PageButtons
from mher_ros.ros.page_goals import PageGoals
from mher_ros.ros.page_lines import page_lines
from mher_ros.ros.parameters import declare
from mher_ros.ros.process import StopRequest
from mher_ros.ros.spinning import spinning
from mher_ros.ros.watched_nodes import GONE, TRAIN, WatchedNodes
from mher_ros.ros.wire import MOST_BYTES_OF_ANY
from mher_ros.view.address import HOST, PORT
from mher_ros.view.arm_scene import ArmSceneError
from mher_ros.view.live_page import Line, LivePage
from mher_ros.view.server import PageServer, warning_of
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

__all__ = ['run', 'ViewNode', 'ViewOptions']

Vector = NDArray[np.float64]

NICE = 10
"""By how much it stands back: who moves an arm goes first."""


@dataclasses.dataclass(frozen=True)
class ViewOptions:
    """Parameters of view_node."""

    host: str = option(
        HOST,
        'address to listen at; one that others can reach lets them move the arm, so it needs a '
        'token',
    )
    port: int = option(PORT, 'port; if it is taken, the next free one', low=0, high=65535)
    token: str = option('', 'what a browser must know to be let in, at least 8 letters or digits')
    view_rate: float = option(
        20.0,
        'pictures in a second; 3 are plenty for a browser without a graphics card',
        low=0.5,
        high=60.0,
    )
    robot: str = option(
        '',
        'arm whose file says where its states and its model are told: a name from config/robots, '
        'or the path of a YAML file; empty: joint_states and robot_description',
    )


class ViewNode(Node):
    """
    Shows what there is, and does what people ask for.

    The thread that calls ``run`` has the page; messages but joint states, which are many, are
    taken by another. Nodes may come and go.
    """

    def __init__(self) -> None:
        super().__init__('view_node')
        self.options = options = declare(self, ViewOptions())
        topics = load_robot(options.robot).topics if options.robot else Topics()
        self._descriptions = Inbox(self, String, topics.robot_description, LATCHED)
        self._states = Inbox(self, JointState, topics.joint_states, SEVERAL)
        self._nodes = WatchedNodes(self)
        self._server = PageServer(
            options.host, options.port, options.token, 'mher_ros', lambda: self._buttons.stop()
        )
        self.address = self._server.address
        self.page = LivePage(self._server.viser)
        self._urdf = self._trouble = self._refused_frame = ''
        self._moved_at = -math.inf
        self._looked_at: Vector | None = None
        self._unit = 'm'
        self._drawn: dict[str, Any] = {}
        self._goals = PageGoals(self, self.page, self._nodes)
        self._buttons = PageButtons(self, self.page, self._goals, self._nodes)
        report_diagnostics(self, self._diagnose)

    def run(self, stop: StopRequest) -> None:
        """Show and answer until asked to stop."""
        warning = warning_of(self.options.host)
        if warning:
            self.get_logger().warning(warning)
        # Not by the logger, which tells all of ROS: the token may be part of it.
        print(f'open {self.address} in a browser', flush=True)
        due = time.monotonic()
        try:
            while not stop():
                if time.monotonic() >= due:
                    due = max(due + 1.0 / self.options.view_rate, time.monotonic())
                    self._try(self._tick)
                with contextlib.suppress(queue.Empty):
                    event = self.page.events.get(timeout=max(0.0, due - time.monotonic()))
                    self._try(functools.partial(self._buttons.answer, event))
        finally:
            self._server.close()

    def _try(self, action: Callable[[], None]) -> None:
        """Do it; the page stays, with its button to stop the arm, whatever goes wrong."""
        try:
            action()
        except Exception:
            self.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)

    def _diagnose(self) -> tuple[bool, str, dict[str, str]]:
        """Return whether all is well, a sentence, and figures."""
        viewers = self.page.viewers
        # A token is for those who were told it, not for all on /diagnostics.
        figures = {'address': self.address.partition('?')[0], 'browsers': str(viewers)}
        return not self._trouble, self._trouble or f'{viewers} looking', figures

    def _tick(self) -> None:
        self._show_arm()
        self._show_markers('policy', self._nodes.policy_markers.latest)
        self._show_markers('train', self._nodes.train_markers.latest)
        self._show_curve()
        self._goals.tick()
        self._buttons.tick()
        self.page.say([self._arm_line(), *page_lines(self._nodes)])

    def _show_arm(self) -> None:
        for raw in self._descriptions.take_all(0.0):
            description = self._descriptions.read(raw, MOST_BYTES_OF_ANY)
            if description is None:
                continue
            urdf = str(description.data)
            self._trouble = self._refused_frame = ''
            if urdf != self._urdf:  # a simulation that starts again tells the same
                self._draw_arm(urdf, '')
                self.page.look_at_arm()
                self._looked_at = None
        frame = self._frame()
        if frame in self.page.links - {self.page.frame, self._refused_frame}:
            self._draw_arm(self._urdf, frame)
        positions: dict[str, float] = {}
        for raw in self._states.take_all(0.0):
            state = self._states.read(raw)
            if state is not None:
                positions |= dict(zip(state.name, state.position, strict=False))
        if positions:
            self._moved_at = time.monotonic()
            self.page.move(positions)

    def _draw_arm(self, urdf: str, frame: str) -> None:
        self.page.place_goal(None)  # out of a hand that would drag it in other axes
        try:
            self.page.show_arm(urdf, frame)
            self._urdf = urdf
        except ArmSceneError as error:
            self._trouble, self._refused_frame = str(error), frame
            self.get_logger().error(self._trouble)

    def _frame(self) -> str:
        """Return the frame of the latest markers; empty if there are none."""
        for heard in (self._nodes.policy_markers, self._nodes.train_markers):
            array = heard.latest
            if array is not None and array.markers:
                return frame_of(array)
        return ''

    def _show_markers(self, prefix: str, array: MarkerArray | None) -> None:
        if array is self._drawn.get(prefix):
            return
        self._drawn[prefix] = array
        if array is None:
            self.page.clear(prefix)
            return
        for name, drawing in drawings_of(array).items():
            self.page.draw(f'{prefix}_{name}', drawing)
        space = extent_of(array, 'workspace')
        if space is not None and self._looked_at is None:
            self._looked_at = (space[0] + space[1]) / 2.0
            self.page.look_at(self._looked_at, float(np.max(space[1] - space[0])))

    def _show_curve(self) -> None:
        # That of the last run stays until a new one begins.
        message = self._nodes.curve.latest
        shown = message, self._nodes.figures(TRAIN).get('goal unit') or self._unit
        if message is None or shown == self._drawn.get('curve'):
            return
        self._drawn['curve'] = shown
        self._unit = shown[1]
        rows = np.array(message.data, np.float64)
        if rows.size % 3 == 0:
            self.page.show_curve(rows.reshape(-1, 3), self._unit)

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
        if self.page.is_empty:
            return Line('Arm', 'cannot be drawn: none of its meshes is found here', False)
        return Line('Arm', f'as {self._states.topic.lstrip("/")} tells', True)


def run(stop: StopRequest) -> None:
    """Run the node until asked to stop."""
    os.nice(NICE)
    node = ViewNode()
    with spinning(node, stop):
        node.run(stop)
