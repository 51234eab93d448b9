"""Arms as their files describe them: joints, limits, and where the tool is."""

from concurrent.futures import ThreadPoolExecutor
import math

from arm_models import load_arm
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.description import DescriptionError
from mher_ros.robots.robot import arm_names, load_robot
from mher_ros.simulation.joint_plant import JointPlant
import mujoco
import numpy as np
import pytest
import yaml

URDF = """
<robot name="arm">
  <link name="floor"/> <link name="stand"/> <link name="lift"/> <link name="upper"/>
  <link name="fore"/> <link name="tip"/> <link name="camera"/> <link name="finger"/>
  <joint name="bolts" type="fixed">
    <parent link="floor"/> <child link="stand"/> <origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 1.1"/>
  </joint>
  <joint name="torso" type="prismatic">
    <parent link="stand"/> <child link="lift"/> <axis xyz="0 0 2"/>
    <limit lower="0" upper="0.4" effort="1" velocity="0.1"/>
  </joint>
  <joint name="shoulder" type="revolute">
    <parent link="lift"/> <child link="upper"/> <axis xyz="0 1 0"/>
    <origin xyz="0 0 0.1" rpy="0.5 0 0"/>
    <limit lower="-1" upper="2" effort="1" velocity="3"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/> <child link="fore"/> <axis xyz="1 0 1"/>
    <origin xyz="0.4 0 0" rpy="0 1.5707963 0.4"/> <limit effort="1" velocity="4"/>
  </joint>
  <joint name="wrist" type="fixed">
    <parent link="fore"/> <child link="tip"/> <origin xyz="0 0.1 0.3" rpy="1 2 3"/>
  </joint>
  <joint name="mount" type="fixed">
    <parent link="floor"/> <child link="camera"/> <origin xyz="1 0 0" rpy="0 0 1.5707963"/>
  </joint>
  <joint name="grip" type="prismatic">
    <parent link="tip"/> <child link="finger"/> <mimic joint="shoulder"/>
    <limit lower="0" upper="1" velocity="1"/>
  </joint>
</robot>
"""
LINKS = URDF.partition('<joint')[0]

MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="ball" pos="5 5 5"> <freejoint/> <geom size="0.1"/> </body>
    <body name="stand" pos="0.1 0.2 0.3" quat="0.9 0.1 0.2 0.3">
      <geom size="0.1"/>
      <body name="arm" pos="0 0 0.5" quat="0.5 0.5 0.1 0.2">
        <joint name="turn" axis="0 1 1" pos="0.1 0.05 0" ref="0.4" range="-1 2"/>
        <joint name="push" type="slide" axis="1 0 0" ref="0.1" range="-0.3 0.3"/>
        <geom size="0.1"/>
        <body name="hand" pos="0.3 0 0">
          <joint name="twist" axis="0 0 1" pos="0 0.1 0"/>
          <geom size="0.1"/> <site name="tip" pos="0.1 0.2 0.3" quat="0.1 0.2 0.3 0.4"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def build(tmp_path):
    """Return a function that makes the arm of a text, with some keys of its YAML file changed."""

    def make(text=URDF, **changes):
        keys = {'model': 'arm.xml', 'tool_frame': 'tip', 'joints': ['shoulder', 'elbow']}
        (tmp_path / 'arm.xml').write_text(text)
        path = tmp_path / 'arm.yaml'
        path.write_text(yaml.safe_dump({**keys, 'output': 'twist', **changes}))
        return ArmModel(load_robot(path))

    return make


def test_joints_that_are_not_commanded_are_read_after_those_that_are(build):
    arm = build(joints=['elbow', 'shoulder'])
    assert arm.joint_names == ('elbow', 'shoulder')
    assert arm.state_names == ('elbow', 'shoulder', 'torso')


def test_the_tool_is_where_mujoco_has_it_whatever_the_order_of_the_joints(build):
    # MuJoCo reads URDF itself: a second opinion on origins, axes and their order.
    spec = mujoco.MjSpec.from_string(URDF)
    spec.compiler.fusestatic, spec.compiler.boundmass, spec.compiler.boundinertia = False, 1, 1
    theirs = spec.compile()
    data = mujoco.MjData(theirs)
    arm = build(joints=['elbow', 'shoulder'], base_frame='floor')
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = rng.uniform(-0.5, 0.5, (2, 3))
        for name, position, velocity in zip(arm.state_names, *state, strict=True):
            data.joint(name).qpos, data.joint(name).qvel = position, velocity
        mujoco.mj_forward(theirs, data)
        position, velocity = arm.tool(*state)
        np.testing.assert_allclose(position, data.body('tip').xpos, atol=1e-12)
        np.testing.assert_allclose(arm.tool_pose(state[0])[0], position, atol=1e-15)
        orientation = arm.tool_pose(state[0])[1]
        assert abs(orientation @ data.body('tip').xquat) == pytest.approx(1.0, abs=1e-12)
        jacobian = np.zeros((3, theirs.nv))
        mujoco.mj_jacBody(theirs, data, jacobian, None, theirs.body('tip').id)
        np.testing.assert_allclose(velocity, jacobian @ data.qvel, atol=1e-12)


def test_positions_are_told_in_the_base_frame(build):
    state = np.array((0.3, -0.7, 0.2))
    in_floor = build(base_frame='floor').tool_pose(state)[0]
    assert build().base_frame == 'floor'  # the root
    stand = np.array((0.1, 0.2, 0.3))
    in_stand = build(base_frame='stand').tool_pose(state)[0]
    assert np.linalg.norm(in_stand) == pytest.approx(np.linalg.norm(in_floor - stand))
    # On a branch of its own, turned by a quarter and 1 m away.
    x, y, z = in_floor
    in_camera = build(base_frame='camera').tool_pose(state)[0]
    np.testing.assert_allclose(in_camera, (y, 1.0 - x, z), atol=1e-6)


def test_joints_before_the_base_are_of_no_interest(build):
    assert build(base_frame='lift').state_names == ('shoulder', 'elbow')


def test_the_tool_may_be_a_point_that_the_model_has_no_link_for(build):
    state = np.array((0.3, -0.7, 0.2))
    position, orientation = build().tool_pose(state)
    shift = np.empty(3)
    mujoco.mju_rotVecQuat(shift, np.array((0.1, -0.2, 0.3)), orientation)
    moved = build(tool_offset=[0.1, -0.2, 0.3]).tool_pose(state)[0]
    np.testing.assert_allclose(moved, position + shift, atol=1e-12)


def test_limits_are_the_models_unless_others_are_given(build):
    arm = build()
    np.testing.assert_array_equal(arm.lower, (-1.0, -np.inf))
    np.testing.assert_array_equal(arm.upper, (2.0, np.inf))
    np.testing.assert_array_equal(arm.velocity_limits, (3.0, 4.0))
    given = {'shoulder': {'upper': 1.5}, 'elbow': {'lower': -2, 'upper': 2, 'velocity': 0.5}}
    arm = build(joint_limits=given)
    np.testing.assert_array_equal(arm.lower, (-1.0, -2.0))
    np.testing.assert_array_equal(arm.upper, (1.5, 2.0))
    np.testing.assert_array_equal(arm.velocity_limits, (3.0, 0.5))


@pytest.mark.parametrize(
    ('text', 'changes', 'complaint'),
    [
        (URDF, {'tool_frame': 'tcp'}, "no frame 'tcp'; it has camera, finger, .*tip"),
        (URDF, {'base_frame': 'base'}, "no frame 'base'; it has camera"),
        (URDF, {'joints': ['knee']}, "no joint 'knee' moves tip; .* torso, shoulder, elbow"),
        (URDF, {'base_frame': 'finger'}, "'finger' is moved by grip"),
        (URDF, {'tool_frame': 'finger'}, 'grip is one that mimics shoulder'),
        (URDF, {'joint_limits': {'shoulder': {'upper': -2}}}, 'got -1.0 and -2.0'),
        (URDF.replace('velocity="4"', ''), {}, 'elbow: the model has no velocity limit'),
        (URDF.replace('continuous', 'floating'), {}, 'elbow is a floating one'),
        (URDF.replace('0 1 0', '0 0 0'), {}, "joint 'shoulder' .* axis with a length"),
        (URDF.replace('0 1 0', '0 nan 0'), {}, "joint 'shoulder' .* three finite numbers"),
        (URDF.replace('<child link="tip"/>', ''), {}, "joint 'wrist' .* a child link"),
        (URDF.replace('<child link="tip"/>', '<child link="end"/>'), {}, "'end', which is no"),
        (LINKS + '</robot>', {}, 'one root link; got floor, stand'),
        (
            '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>',
            {},
            'xacro',
        ),
        ('not xml', {}, "XML is expected, got 'not xml'"),
        ('<sdf/>', {}, r'<robot> \(URDF\) or <mujoco> \(MJCF\) is expected, got <sdf>'),
        (
            '<mujoco><worldbody><body pos="here"/></worldbody></mujoco>',
            {},
            'MuJoCo cannot read the model',
        ),
        (MJCF, {'joints': ['turn']}, 'turn: the model has no velocity limit'),
        (MJCF, {'joints': ['turn'], 'tool_frame': 'toe'}, "no frame 'toe'; it has .*tip, world"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(build, text, changes, complaint):
    with pytest.raises(DescriptionError, match=complaint):
        build(text, **changes)


def test_an_mjcf_file_does_as_well(build):
    names = ['turn', 'push', 'twist']
    arm = build(MJCF, joints=names, joint_limits={name: {'velocity': 1.0} for name in names})
    np.testing.assert_array_equal(arm.lower, (-1.0, -0.3, -np.inf))
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = rng.uniform(-0.5, 0.5, (2, 3))
        for name, position, velocity in zip(names, *state, strict=True):
            data.joint(name).qpos, data.joint(name).qvel = position, velocity
        mujoco.mj_forward(model, data)
        position, velocity = arm.tool(*state)
        np.testing.assert_allclose(position, data.site('tip').xpos, atol=1e-12)
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, jacobian, None, model.site('tip').id)
        np.testing.assert_allclose(velocity, jacobian @ data.qvel, atol=1e-12)


def test_a_model_from_a_topic_must_have_come():
    with pytest.raises(DescriptionError, match='takes its model from robot_description; none'):
        ArmModel(load_robot('ur5e'))


def test_wrong_numbers_of_joints_are_refused(build):
    with pytest.raises((IndexError, ValueError)):
        build().tool(np.zeros(2), np.zeros(2))


# The arms that come with this package


@pytest.mark.parametrize('name', arm_names())
def test_home_is_within_the_limits(name):
    robot, model = load_arm(name)
    home = np.array([robot.home[name] for name in robot.joints])
    assert (model.lower < home).all() and (home < model.upper).all()
    assert model.state_names == robot.joints


@pytest.mark.parametrize('name', ['fetch', 'sawyer'])
def test_the_tool_of_a_trained_arm_is_the_tasks(name):
    robot, model = load_arm(name)
    plant = JointPlant(robot.simulation_task)
    places = [plant.joint_names.index(joint) for joint in model.state_names]
    start = plant.joint_state()[0][places]
    np.testing.assert_allclose(start, [robot.home[joint] for joint in robot.joints], atol=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(5):
        position, orientation = model.tool_pose(plant.joint_state()[0][places])
        theirs = plant.tool_pose()
        np.testing.assert_allclose(position, theirs[0], atol=1e-9)
        assert abs(orientation @ theirs[1]) == pytest.approx(1.0, abs=1e-9)
        for _ in range(20):
            plant.advance(start + rng.uniform(-0.3, 0.3, len(start)))


@pytest.mark.parametrize('name', ['panda', 'ur5e'])
def test_the_gripper_points_down_at_home(name):
    robot, model = load_arm(name)
    _, orientation = model.tool_pose([robot.home[joint] for joint in robot.joints])
    down = np.empty(3)
    mujoco.mju_rotVecQuat(down, np.array((0.0, 0.0, 1.0)), orientation)
    assert math.degrees(math.acos(-down[2])) < 0.1


def test_threads_that_share_an_arm_do_not_disturb_each_other():
    # A learner observes the arm while another thread commands it, with the same model.
    _, arm = load_arm('ur5e')
    places = [np.full(len(arm.state_names), angle) for angle in (0.0, 0.5)]
    expected = [arm.tool_position(place) for place in places]

    def wrong(index):
        found = (arm.tool_position(places[index]) for _ in range(20_000))
        return sum(not np.array_equal(tool, expected[index]) for tool in found)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(wrong, range(2))) == [0, 0]
