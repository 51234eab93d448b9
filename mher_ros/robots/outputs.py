"""The kinds of commands that an arm takes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Output:
    """One kind of command."""

    topic: str
    """Default topic."""
    of_joints: bool
    """Whether joints are commanded, not the tool."""
    is_velocity: bool
    """Whether velocities are commanded: the set-point then follows the measured arm."""


OUTPUTS = {
    'twist': Output('twist_command', of_joints=False, is_velocity=True),
    'pose': Output('pose_command', of_joints=False, is_velocity=False),
    'joint_trajectory': Output('joint_trajectory', of_joints=True, is_velocity=False),
    'joint_position': Output('commands', of_joints=True, is_velocity=False),
    'joint_velocity': Output('commands', of_joints=True, is_velocity=True),
    'none': Output('', of_joints=False, is_velocity=False),
}
"""By name; with ``none`` nothing is sent. ``ros/common/arm_output.py`` writes their messages."""
