"""What the page says in words."""

from __future__ import annotations

import math

from diagnostic_msgs.msg import DiagnosticStatus
from mher_ros.ros.watched_nodes import POLICY, TRAIN, WatchedNodes
from mher_ros.view.live_page import Line

__all__ = ['duration_text', 'page_lines']

STOPPED = 'stopped; press Resume'
"""What policy_node says of it speaks of services."""


def page_lines(nodes: WatchedNodes) -> list[Line]:
    """Return what there is to say of the nodes that are heard."""
    policy, training = nodes.status(POLICY), nodes.status(TRAIN)
    lines: list[Line] = []
    if policy is not None:
        lines += _policy_lines(nodes, policy)
    if training is not None:
        lines += _training_lines(nodes, training)
    if not lines:
        lines.append(Line('Policy', 'no policy_node and no train_node is running'))
    return lines


def duration_text(seconds: float) -> str:
    """Return a time [s] as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f'{hours} h {minutes} min'
    return f'{minutes} min {rest} s' if minutes else f'{rest} s'


def _policy_lines(nodes: WatchedNodes, status: DiagnosticStatus) -> list[Line]:
    figures = nodes.figures(POLICY)
    text = STOPPED if figures.get('stopped') == 'true' else status.message
    lines = [Line('Policy', text, _is_well(status))]
    distance, is_there = nodes.arrival.latest or (None, False)
    if distance is not None and math.isfinite(distance):
        text = f'{1000.0 * distance:.1f} mm{", reached" if is_there else ""}'
        lines.append(Line('Distance', text, True if is_there else None))
    cap = figures.get('speed cap [m/s]')
    if cap:
        lines.append(Line('Speed', f'at most {cap} m/s'))
    return lines


def _training_lines(nodes: WatchedNodes, status: DiagnosticStatus) -> list[Line]:
    lines = [Line('Training', status.message, _is_well(status))]
    figures = nodes.figures(TRAIN)
    steps, most = figures.get('environment steps', ''), figures.get('steps at most', '')
    if steps:
        lines.append(Line('Steps', f'{steps} of at most {most}' if most else steps))
    if figures.get('epoch'):
        lines.append(Line('Epoch', figures['epoch']))
    rate, left = nodes.number(TRAIN, 'success rate'), nodes.number(TRAIN, 'time left [s]')
    if rate is not None:
        lines.append(Line('Success', f'{100.0 * rate:.0f} % of the test goals'))
    if left is not None:
        lines.append(Line('Left', f'at most {duration_text(left)}'))
    return lines


def _is_well(status: DiagnosticStatus) -> bool:
    return bool(status.level == DiagnosticStatus.OK)
