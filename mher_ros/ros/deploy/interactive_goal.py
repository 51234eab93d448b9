"""
An interactive marker for goals in RViz.

It implements the protocol of the package interactive_markers (topics ``update`` and ``feedback``,
service ``get_interactive_markers``) for one marker. The package itself is not used, even if it is
installed: its server does not say when a feedback was sent, and a goal from before a stop must not
move the arm after it.
"""

from collections.abc import Callable
import math
import time
from typing import Any, cast

from mher_ros.ros.common.arm_clock import STEADY
from mher_ros.ros.common.geometry import numbers_of, set_vector
from mher_ros.ros.common.polled_topic import earliest_time
from mher_ros.ros.common.raw_messages import MessageError
import numpy as np
from numpy.typing import ArrayLike, NDArray
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

Vector = NDArray[np.float64]

NAMESPACE = 'goal_marker'
NAME = 'goal'
DEPTH = 100  # of both queues, as RViz has them
GRIP = 1.0  # time for which a marker belongs to the client that moved it last [s]
REPEAT = 1.0  # period of the marker's pose, for an RViz that shows an old one [s]
CLICK = 1e-4  # motion up to which a marker was only clicked: RViz has single precision [m]
ARROWS = 4.0  # length of the arrows, in radii of the ball
COLOUR = (0.9, 0.9, 0.9, 0.4)
TURNS = {
    'x': (1.0, 0.0, 0.0, 0.0),
    'y': (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)),
    'z': (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0),
}
"""Quaternions (w, x, y, z) that rotate the x axis, along which an arrow moves, to each axis."""


class InteractiveGoal:
    """
    A ball with an arrow along each axis, in the arm's base frame.

    It follows the mouse, but becomes a goal only when it is released: an arm that followed the
    mouse could hit something. A click moves nothing.
    """

    def __init__(
        self,
        node: Node,
        frame: str,
        position: ArrayLike,
        radius: float,
        on_release: Callable[[Vector, int], None],
        on_refusal: Callable[[MessageError], None],
    ) -> None:
        """Show a ball of ``radius`` [m]; ``on_release`` gets position (3,) [m] and time [ns]."""
        self._node, self._on_release, self._on_refusal = node, on_release, on_refusal
        self._marker = _interactive_marker(frame, radius)
        self._move(np.asarray(position, np.float64))
        self._sequence = 0
        self._holder, self._held_at = '', -math.inf
        self._was_dragged = False
        self._pressed: Vector | None = None
        update, feedback, get = (
            f'{NAMESPACE}/{name}' for name in ('update', 'feedback', 'get_interactive_markers')
        )
        self._updates = node.create_publisher(InteractiveMarkerUpdate, update, DEPTH)
        self._feedback = node.create_subscription(
            InteractiveMarkerFeedback, feedback, cast(Any, self._take), DEPTH
        )
        self._service = node.create_service(GetInteractiveMarkers, get, self._answer)
        self._timer = node.create_timer(REPEAT, self._publish_pose, clock=STEADY)

    def place(self, position: ArrayLike) -> None:
        """Move it to ``position`` (3,) [m]; a client that is dragging it sees this on release."""
        self._move(np.asarray(position, np.float64))
        self._publish_pose()

    def close(self) -> None:
        """Remove it; RViz does so when the service has ended."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_service(self._service)
        self._node.destroy_subscription(self._feedback)
        self._node.destroy_publisher(self._updates)

    def _answer(self, _: Any, response: Any) -> Any:
        response.sequence_number = self._sequence
        response.markers = [self._marker]
        return response

    def _take(self, feedback: InteractiveMarkerFeedback, info: Any) -> None:
        try:
            position = self._checked(feedback)
        except MessageError as error:
            self._on_refusal(error)
            return
        self._holder, self._held_at = feedback.client_id, time.monotonic()
        if feedback.event_type == InteractiveMarkerFeedback.MOUSE_DOWN:
            self._was_dragged, self._pressed = False, position
        elif feedback.event_type == InteractiveMarkerFeedback.POSE_UPDATE:
            # RViz also sends the pose before the mouse is pressed and before it is released.
            if self._pressed is not None and np.abs(position - self._pressed).max() > CLICK:
                self._was_dragged = True
            if self._was_dragged:
                self._move(position)
            self._publish_pose()
        elif feedback.event_type == InteractiveMarkerFeedback.MOUSE_UP:
            was_dragged, self._was_dragged, self._pressed = self._was_dragged, False, None
            if was_dragged:
                self._on_release(position, earliest_time(info))

    def _checked(self, feedback: InteractiveMarkerFeedback) -> Vector:
        if feedback.marker_name != NAME:
            raise MessageError(f'marker {NAME!r} is expected, got {feedback.marker_name!r}')
        held = time.monotonic() - self._held_at < GRIP
        if held and feedback.client_id != self._holder:
            raise MessageError(
                f'one client at a time is expected, got {feedback.client_id!r} less than {GRIP} s '
                f'after {self._holder!r}'
            )
        frame = self._marker.header.frame_id
        if feedback.header.frame_id not in ('', frame):
            raise MessageError(f'frame {frame!r} is expected, got {feedback.header.frame_id!r}')
        numbers = numbers_of(feedback.pose.position, feedback.pose.orientation)
        if not np.isfinite(numbers).all():
            raise MessageError(f'a pose of finite numbers is expected, got {numbers}')
        return np.array(numbers[:3])

    def _move(self, position: Vector) -> None:
        set_vector(self._marker.pose.position, position)

    def _publish_pose(self) -> None:
        self._sequence += 1
        marker = self._marker
        pose = InteractiveMarkerPose(header=marker.header, pose=marker.pose, name=marker.name)
        kind = InteractiveMarkerUpdate.UPDATE
        update = InteractiveMarkerUpdate(type=kind, seq_num=self._sequence, poses=[pose])
        self._updates.publish(update)


def _interactive_marker(frame: str, radius: float) -> InteractiveMarker:
    # Its stamp stays 0: RViz then keeps it in its frame, and sends feedback in that frame.
    marker = InteractiveMarker(name=NAME, description='goal', scale=ARROWS * radius)
    marker.header.frame_id = frame
    ball = Marker(type=Marker.SPHERE)
    ball.scale.x = ball.scale.y = ball.scale.z = 2.0 * radius
    ball.color.r, ball.color.g, ball.color.b, ball.color.a = COLOUR
    hand = InteractiveMarkerControl(
        name='move',
        description='drag: in the plane of the screen; with shift: towards it and away',
        interaction_mode=InteractiveMarkerControl.MOVE_3D,
        always_visible=True,
        markers=[ball],
    )
    marker.controls = [hand]
    for axis, orientation in TURNS.items():
        # Without markers: RViz then draws arrows in both directions.
        kind = InteractiveMarkerControl.MOVE_AXIS
        arrow = InteractiveMarkerControl(name=f'move_{axis}', interaction_mode=kind)
        turn = arrow.orientation
        turn.w, turn.x, turn.y, turn.z = orientation
        marker.controls.append(arrow)
    return marker
