"""RViz's layout for one arm: in its base frame, with a view of its workspace."""

from __future__ import annotations

from pathlib import Path
import tempfile

from mher_ros.control.robot import load_robot
from mher_ros.share import share_folder
import yaml

__all__ = ['write_layout']

BASE = 'Base at the origin'
"""The saved view of an arm that has none of its own."""


def write_layout(robot_name: str) -> Path:
    """Write a copy of deploy.rviz for the arm to a temporary file, and return its path."""
    robot = load_robot(robot_name)
    source = share_folder() / 'config' / 'rviz' / 'deploy.rviz'
    layout = yaml.safe_load(source.read_text(encoding='utf-8'))
    manager = layout['Visualization Manager']
    saved = {view['Name'].lower(): view for view in manager['Views']['Saved']}
    view = {**saved.get(robot.name.lower(), saved[BASE.lower()]), 'Name': 'Current View'}
    if robot.workspace.origin is not None:
        view['Focal Point'] = dict(zip('XYZ', robot.workspace.origin, strict=True))
    manager['Views']['Current'] = view
    if robot.base_frame:
        # Everything is in the base frame, so RViz needs no TF. The layout's own stands for one
        # that is known only once the model is.
        manager['Global Options']['Fixed Frame'] = robot.base_frame
    with tempfile.NamedTemporaryFile(
        'w', prefix='mher_ros_', suffix='.rviz', encoding='utf-8', delete=False
    ) as file:
        yaml.safe_dump(layout, file)
    return Path(file.name)
