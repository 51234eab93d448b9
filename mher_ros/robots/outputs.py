"""The table of command outputs: the kinds of commands that an arm takes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Output:
    """One kind of command."""

    message: str
    """Type of its message; empty: nothing is sent."""
    topic: str
    """Default topic."""
    of_joints: bool
    """Whether joints are commanded, not the tool."""
    is_velocity: bool
    """Whether velocities are commanded: the set-point then follows the measured arm."""
    if_killed: str
    """What the arm does if the node that commands it is killed."""


OUTPUTS = {
    'twist': Output(
        'geometry_msgs/msg/TwistStamped',
        'twist_command',
        of_joints=False,
        is_velocity=True,
        if_killed="stops after Servo's `incoming_command_timeout`",
    ),
    'pose': Output(
        'geometry_msgs/msg/PoseStamped',
        'pose_command',
        of_joints=False,
        is_velocity=False,
        if_killed='stays at the last pose',
    ),
    'joint_trajectory': Output(
        'trajectory_msgs/msg/JointTrajectory',
        'joint_trajectory',
        of_joints=True,
        is_velocity=False,
        if_killed='stays at the last point',
    ),
    'joint_position': Output(
        'std_msgs/msg/Float64MultiArray',
        'commands',
        of_joints=True,
        is_velocity=False,
        if_killed='stays at the last point',
    ),
    'joint_velocity': Output(
        'std_msgs/msg/Float64MultiArray',
        'commands',
        of_joints=True,
        is_velocity=True,
        if_killed='moves on until the timeout of the hardware interface',
    ),
    'none': Output('', '', of_joints=False, is_velocity=False, if_killed=''),
}
"""By name. ``ros/common/arm_output.py`` writes their messages; docs/deploy.md describes them."""
