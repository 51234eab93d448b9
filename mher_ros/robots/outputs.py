"""The table of command outputs: the kinds of commands that an arm takes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Output:
    """One kind of command."""

    message: str
    """Type of its message; empty: nothing is sent."""
    topic: str
    """Default topic."""
    if_killed: str
    """What the arm does if the node that commands it is killed."""
    of_joints: bool = False
    """Whether joints are commanded, not the tool."""
    is_velocity: bool = False
    """Whether velocities are commanded: the set-point then follows the measured arm."""


OUTPUTS = {
    'twist': Output(
        'geometry_msgs/msg/TwistStamped',
        'twist_command',
        "stops after Servo's `incoming_command_timeout`",
        is_velocity=True,
    ),
    'pose': Output('geometry_msgs/msg/PoseStamped', 'pose_command', 'stays at the last pose'),
    'joint_trajectory': Output(
        'trajectory_msgs/msg/JointTrajectory',
        'joint_trajectory',
        'stays at the last point',
        of_joints=True,
    ),
    'joint_position': Output(
        'std_msgs/msg/Float64MultiArray', 'commands', 'stays at the last point', of_joints=True
    ),
    'joint_velocity': Output(
        'std_msgs/msg/Float64MultiArray',
        'commands',
        'moves on until the timeout of the hardware interface',
        of_joints=True,
        is_velocity=True,
    ),
    'none': Output('', '', ''),
}
"""By name. ``ros/common/arm_output.py`` writes their messages; docs/deploy.md describes them."""
