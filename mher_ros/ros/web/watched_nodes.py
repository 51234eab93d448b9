"""The other nodes as view_node sees them: their messages, and lines of text about them."""

import math
import time
from typing import Any, Generic, TypeVar

from mher_ros.ros.common.arm_clock import SteadyTimes
from mher_ros.ros.common.collision_markers import COLLISION_MARKERS
from mher_ros.ros.common.polled_topic import BEST_EFFORT, LATCHED
from mher_ros.ros.common.status import (
    Box,
    DeploymentStatus,
    Level,
    Nearest,
    subscribe_status,
    TrainingStatus,
)
from mher_ros.view.live_page import Line
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import MarkerArray

Message = TypeVar('Message')

POLICY, TRAIN, SIM = 'policy_node', 'train_node', 'sim_node'
GONE = 3.0  # age from which on a message is ignored [s]; a status is published each second
SHOWN = 1.5  # the same for markers of policy_node, which have a rate of 10 Hz [s]
STOPPED = 'stopped; press Resume'  # instead of policy_node's reason, which names services


class Latest(Generic[Message]):
    def __init__(self, lasts: float) -> None:
        """``lasts``: time for which a message is valid [s]."""
        self._lasts = lasts
        self._message: Message | None = None
        self._at = -math.inf

    def take(self, message: Message) -> None:
        self._message, self._at = message, time.monotonic()

    @property
    def latest(self) -> Message | None:
        """The last message; None if it is too old."""
        return self._message if time.monotonic() - self._at <= self._lasts else None


class WatchedNodes:
    def __init__(self, node: Node) -> None:
        self.policy: Latest[DeploymentStatus] = Latest(GONE)
        self.training: Latest[TrainingStatus] = Latest(GONE)
        self.policy_sent = -math.inf
        """When a status of policy_node was sent (``time.monotonic``) [s]; it has been taken."""
        self._times = SteadyTimes()
        subscribe_status(node, DeploymentStatus, POLICY, self.policy.take, self._take_time)
        subscribe_status(node, TrainingStatus, TRAIN, self.training.take)
        self.policy_markers: Latest[MarkerArray] = Latest(SHOWN)
        self.train_markers: Latest[MarkerArray] = Latest(GONE)
        self.curve: Latest[Float64MultiArray] = Latest(math.inf)
        for kind, topic, kept, qos in (
            # Best effort: acknowledgements would burden policy_node.
            (MarkerArray, f'{POLICY}/markers', self.policy_markers, BEST_EFFORT),
            (MarkerArray, f'{TRAIN}/markers', self.train_markers, BEST_EFFORT),
            # Published once per evaluation, and latched.
            (Float64MultiArray, f'{TRAIN}/curve', self.curve, LATCHED),
        ):
            node.create_subscription(kind, topic, kept.take, qos)
        self._node = node
        self._collision_subscriptions: list[Any] = []
        self.policy_shapes: Latest[MarkerArray] = Latest(SHOWN)
        self.train_shapes: Latest[MarkerArray] = Latest(SHOWN)

    def watch_shapes(self, wanted: bool) -> None:
        """Subscribe to collision shapes, or end that: nodes compute them for subscribers only."""
        if wanted == bool(self._collision_subscriptions):
            return
        for subscription in self._collision_subscriptions:
            self._node.destroy_subscription(subscription)
        self._collision_subscriptions = [
            self._node.create_subscription(
                MarkerArray, f'{owner}/{COLLISION_MARKERS}', kept.take, BEST_EFFORT
            )
            for owner, kept in ((POLICY, self.policy_shapes), (TRAIN, self.train_shapes))
            if wanted
        ]

    @property
    def frame(self) -> str:
        """The frame of positions; empty while no node has one."""
        return next((status.frame for status in self._statuses if status.frame), '')

    @property
    def workspace(self) -> Box | None:
        """Box of goals; None while no node has one."""
        return next((status.workspace for status in self._statuses if status.frame), None)

    def _take_time(self, sent: int) -> None:
        self.policy_sent = 1e-9 * self._times.of(sent)

    @property
    def _statuses(self) -> list[DeploymentStatus | TrainingStatus]:
        found = self.policy.latest, self.training.latest
        return [status for status in found if status is not None]


def page_lines(policy: DeploymentStatus | None, training: TrainingStatus | None) -> list[Line]:
    lines = [] if policy is None else _policy_lines(policy)
    lines += [] if training is None else _training_lines(training)
    return lines or [Line('Policy', 'no policy_node and no train_node is running')]


def duration_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f'{hours} h {minutes} min'
    return f'{minutes} min {rest} s' if minutes else f'{rest} s'


def _policy_lines(status: DeploymentStatus) -> list[Line]:
    text = STOPPED if status.stopped else status.reason
    lines = [Line('Policy', text, status.level is Level.OK)]
    if status.distance is not None:
        text = f'{1000.0 * status.distance:.1f} mm{", reached" if status.reached else ""}'
        lines.append(Line('Distance', text, status.reached or None))
    lines += _nearest_lines(status.nearest)
    if status.obstacle_text:
        lines.append(Line('Obstacle', status.obstacle_text, False))
    if status.speed_cap is not None:
        lines.append(Line('Speed', f'at most {status.speed_cap:g} m/s'))
    return lines


def _training_lines(status: TrainingStatus) -> list[Line]:
    lines = [
        Line('Training', status.reason, status.level is Level.OK),
        Line('Steps', f'{status.steps} of at most {status.most_steps}'),
        Line('Epoch', str(status.epoch)),
        *_nearest_lines(status.nearest),
    ]
    if status.ended_by:
        lines.append(Line('Stopped', status.ended_by, False))
    if status.success_rate is not None:
        lines.append(Line('Success', f'{100.0 * status.success_rate:.0f} % of the test goals'))
    if status.seconds_left is not None:
        lines.append(Line('Left', f'at most {duration_text(status.seconds_left)}'))
    return lines


def _nearest_lines(nearest: Nearest | None) -> list[Line]:
    if nearest is None:
        return []
    one, other, distance = nearest
    return [Line('Nearest', f'{1000.0 * distance:.0f} mm between {one} and {other}')]
