"""Arms that do not come along, as somebody would write them down on the first day."""

UR10 = """
description: Universal Robots UR10
model: python://example-robot-data/robots/ur_description/urdf/ur10_robot.urdf
base_frame: base_link
tool_frame: tool0
joints: [shoulder_pan_joint, shoulder_lift_joint, elbow_joint,
         wrist_1_joint, wrist_2_joint, wrist_3_joint]
output: joint_trajectory
"""
KINOVA = """
description: Kinova Jaco 2, six joints
model: python://example-robot-data/robots/kinova_description/robots/kinova.urdf
tool_frame: j2s6s200_end_effector
joints: [j2s6s200_joint_1, j2s6s200_joint_2, j2s6s200_joint_3,
         j2s6s200_joint_4, j2s6s200_joint_5, j2s6s200_joint_6]
output: joint_trajectory
"""
TEXTS = {'ur10': UR10, 'kinova': KINOVA}
UR10_HOME = """
home: {shoulder_pan_joint: 0.0, shoulder_lift_joint: -1.5708, elbow_joint: 1.5708,
       wrist_1_joint: -1.5708, wrist_2_joint: -1.5708, wrist_3_joint: 0.0}
"""
KINOVA_PLACED = """
home: {j2s6s200_joint_1: 4.7, j2s6s200_joint_2: 2.9, j2s6s200_joint_3: 1.3, j2s6s200_joint_4: 4.2,
       j2s6s200_joint_5: 1.4, j2s6s200_joint_6: 0.0}
workspace:
  origin: [0.2, -0.26, 0.5]
"""


def write_arm(folder, name, more=''):
    """Write the YAML file of an arm, with further keys; return its path."""
    path = folder / f'{name}.yaml'
    path.write_text(TEXTS[name] + more)
    return path
