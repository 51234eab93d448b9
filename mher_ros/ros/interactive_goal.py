"""
A goal that people drag in RViz.

It speaks the protocol of the package interactive_markers (topics ``update`` and ``feedback``,
service ``get_interactive_markers``) for the one marker that there is. The package itself is not
used even where it is installed: this way a marker behaves the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
import math
import time
from typing import Any

from mher_ros.ros.wire import MessageError
import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
    Marker,
)
from visualization_msgs.srv import GetInteractiveMarkers

__all__ = ['InteractiveGoal', 'NAME', 'NAMESPACE']

Vector = NDArray[np.float64]

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
NAMESPACE = 'goal_marker'
NAME = 'goal'
DEPTH = 100
"""Of both queues, as RViz has them."""
GRIP = 1.0
"""Time for which a marker belongs to whoever moved it last [s]."""
REPEAT = 1.0
"""
Period in which it is told again where the marker is [s].

For an RViz that shows it elsewhere: where it was before this node was killed and started again,
or where it was pulled to in vain.
"""
CLICK = 1e-4
"""A marker that was moved less was only clicked: RViz counts in single precision [m]."""
ARROWS = 4.0
"""How far the arrows reach, in radii of the ball."""
COLOUR = (0.9, 0.9, 0.9, 0.4)
TURNS = {
    'x': (1.0, 0.0, 0.0, 0.0),
    'y': (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)),
    'z': (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0),
}
"""Quaternions (w, x, y, z) that turn the x axis, along which an arrow moves, to each axis."""


class InteractiveGoal:
    """
    A ball with an arrow along each axis, in the frame of the arm's base.

    It follows whoever drags it, and is offered as a goal only when let go: an arm that followed
    the mouse would be led through whatever lies on the way. A mere click moves nothing.
    """

    def __init__(
        self,
        node: Node,
        frame: str,
        position: ArrayLike,
        radius: float,
        on_release: Callable[[Vector], None],
        on_refusal: Callable[[MessageError], None],
    ) -> None:
        """
        Show a ball of ``radius`` [m] at ``position`` (3,) [m].

        ``on_release`` gets the position (3,) where it was let go, ``on_refusal`` what is wrong
        with a message of RViz's.
        """
        self._node, self._on_release, self._on_refusal = node, on_release, on_refusal
        self._marker = _interactive_marker(frame, radius)
        self._move(np.asarray(position, np.float64))
        self._sequence = 0
        self._holder, self._held_at = '', -math.inf
        self._was_dragged = False
        self._pressed: Vector | None = None
        self._updates = node.create_publisher(
            InteractiveMarkerUpdate, f'{NAMESPACE}/update', DEPTH
        )
        self._feedback = node.create_subscription(
            InteractiveMarkerFeedback, f'{NAMESPACE}/feedback', self._take, DEPTH
        )
        self._service = node.create_service(
            GetInteractiveMarkers, f'{NAMESPACE}/get_interactive_markers', self._answer
        )
        self._timer = node.create_timer(REPEAT, self._publish_pose, clock=STEADY)

    def place(self, position: ArrayLike) -> None:
        """Move it to ``position`` (3,) [m]; one who is dragging it sees so when letting go."""
        self._move(np.asarray(position, np.float64))
        self._publish_pose()

    def close(self) -> None:
        """Take it away; RViz does so once it finds the service gone."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_service(self._service)
        self._node.destroy_subscription(self._feedback)
        self._node.destroy_publisher(self._updates)

    def _answer(self, _: Any, response: Any) -> Any:
        response.sequence_number = self._sequence
        response.markers = [self._marker]
        return response

    def _take(self, feedback: InteractiveMarkerFeedback) -> None:
        try:
            position = self._checked(feedback)
        except MessageError as error:
            self._on_refusal(error)
            return
        self._holder, self._held_at = feedback.client_id, time.monotonic()
        if feedback.event_type == InteractiveMarkerFeedback.MOUSE_DOWN:
            self._was_dragged, self._pressed = False, position
        elif feedback.event_type == InteractiveMarkerFeedback.POSE_UPDATE:
            # RViz tells the pose also before the mouse is pressed and before it is let go.
            if self._pressed is not None and np.abs(position - self._pressed).max() > CLICK:
                self._was_dragged = True
            if self._was_dragged:
                self._move(position)
            self._publish_pose()
        elif feedback.event_type == InteractiveMarkerFeedback.MOUSE_UP:
            was_dragged, self._was_dragged, self._pressed = self._was_dragged, False, None
            if was_dragged:
                self._on_release(position)

    def _checked(self, feedback: InteractiveMarkerFeedback) -> Vector:
        if feedback.marker_name != NAME:
            raise MessageError(f'marker {NAME!r} is expected, got {feedback.marker_name!r}')
        held = time.monotonic() - self._held_at < GRIP
        if held and feedback.client_id != self._holder:
            raise MessageError(
                f'one hand at a time is expected, got {feedback.client_id!r} less than {GRIP} s '
                f'after {self._holder!r}'
            )
        frame = self._marker.header.frame_id
        if feedback.header.frame_id not in ('', frame):
            raise MessageError(f'frame {frame!r} is expected, got {feedback.header.frame_id!r}')
        place, turn = feedback.pose.position, feedback.pose.orientation
        numbers = [place.x, place.y, place.z, turn.w, turn.x, turn.y, turn.z]
        if not np.isfinite(numbers).all():
            raise MessageError(f'a pose of finite numbers is expected, got {numbers}')
        return np.array(numbers[:3])

    def _move(self, position: Vector) -> None:
        place = self._marker.pose.position
        place.x, place.y, place.z = position.tolist()

    def _publish_pose(self) -> None:
        self._sequence += 1
        marker = self._marker
        pose = InteractiveMarkerPose(header=marker.header, pose=marker.pose, name=marker.name)
        self._updates.publish(
            InteractiveMarkerUpdate(
                type=InteractiveMarkerUpdate.UPDATE, seq_num=self._sequence, poses=[pose]
            )
        )


def _interactive_marker(frame: str, radius: float) -> InteractiveMarker:
    # Its stamp stays 0: RViz then keeps it in its frame, and tells feedback in that.
    marker = InteractiveMarker(name=NAME, description='goal', scale=ARROWS * radius)
    marker.header.frame_id = frame
    marker.controls = [_ball(radius), *(_arrow(axis) for axis in TURNS)]
    return marker


def _ball(radius: float) -> InteractiveMarkerControl:
    ball = Marker(type=Marker.SPHERE)
    ball.scale.x = ball.scale.y = ball.scale.z = 2.0 * radius
    ball.color.r, ball.color.g, ball.color.b, ball.color.a = COLOUR
    return InteractiveMarkerControl(
        name='move',
        description='drag: in the plane of the screen; with shift: towards it and away',
        interaction_mode=InteractiveMarkerControl.MOVE_3D,
        always_visible=True,
        markers=[ball],
    )


def _arrow(axis: str) -> InteractiveMarkerControl:
    # Without markers of its own: RViz then draws arrows to both sides.
    control = InteractiveMarkerControl(
        name=f'move_{axis}', interaction_mode=InteractiveMarkerControl.MOVE_AXIS
    )
    turn = control.orientation
    turn.w, turn.x, turn.y, turn.z = TURNS[axis]
    return control
