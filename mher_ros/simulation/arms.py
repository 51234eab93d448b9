"""Joint limits of arms, as their makers specify them."""

# Fetch: repository fetch_ros, file fetch_description/robots/fetch.urdf (release 0.8.3). Sawyer:
# Rethink Robotics' repository sawyer_robot, file sawyer_description/urdf/sawyer_base.urdf.xacro,
# in the variant for the robot itself; the variant for Gazebo narrows right_j6.

from collections.abc import Mapping
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class JointLimits:
    velocity: float  # [rad/s] or [m/s]
    effort: float  # [N m] or [N]
    lower: float = -math.inf
    upper: float = math.inf  # both infinite: no limits


@dataclasses.dataclass(frozen=True)
class Arm:
    """The data of an arm; joints have their ROS names."""

    joints: Mapping[str, JointLimits]  # the seven joints of the arm, from the base on
    other_joints: Mapping[str, JointLimits] = dataclasses.field(default_factory=dict)
    """Joints of the robot that are not the arm's."""
    masses: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Masses that differ from the task's model, by body [kg]."""


def known_limits(joint: str) -> JointLimits | None:
    """Return the limits of a joint by its ROS name, if they are known."""
    tables = (table for arm in ARMS.values() for table in (arm.joints, arm.other_joints))
    return next((table[joint] for table in tables if joint in table), None)


FETCH = Arm(
    joints={
        'shoulder_pan_joint': JointLimits(1.256, 33.82, -1.6056, 1.6056),
        'shoulder_lift_joint': JointLimits(1.454, 131.76, -1.221, 1.518),
        'upperarm_roll_joint': JointLimits(1.571, 76.94),
        'elbow_flex_joint': JointLimits(1.521, 66.18, -2.251, 2.251),
        'forearm_roll_joint': JointLimits(1.571, 29.35),
        'wrist_flex_joint': JointLimits(2.268, 25.7, -2.16, 2.16),
        'wrist_roll_joint': JointLimits(2.268, 7.36),
    },
    other_joints={
        'torso_lift_joint': JointLimits(0.1, 450.0, 0.0, 0.38615),
        'head_pan_joint': JointLimits(1.57, 0.32, -1.57, 1.57),
        'head_tilt_joint': JointLimits(1.57, 0.68, -0.76, 1.45),
        'r_gripper_finger_joint': JointLimits(0.05, 60.0, 0.0, 0.05),
        'l_gripper_finger_joint': JointLimits(0.05, 60.0, 0.0, 0.05),
    },
    # 4 kg each in the task's model: too heavy for the wrist.
    masses={'robot0:r_gripper_finger_link': 0.0798, 'robot0:l_gripper_finger_link': 0.0798},
)

SAWYER = Arm(
    joints={
        'right_j0': JointLimits(1.74, 80.0, -3.0503, 3.0503),
        'right_j1': JointLimits(1.328, 80.0, -3.8095, 2.2736),
        'right_j2': JointLimits(1.957, 40.0, -3.0426, 3.0426),
        'right_j3': JointLimits(1.957, 40.0, -3.0439, 3.0439),
        'right_j4': JointLimits(3.485, 9.0, -2.9761, 2.9761),
        'right_j5': JointLimits(3.485, 9.0, -2.9761, 2.9761),
        'right_j6': JointLimits(4.545, 9.0, -4.7124, 4.7124),
    }
)

ARMS: Mapping[str, Arm] = {'fetch_reach': FETCH, 'sawyer_reach': SAWYER}
"""By the task whose model contains the arm."""
