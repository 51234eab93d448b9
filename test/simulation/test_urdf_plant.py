"""Arms with a URDF, with their masses, forces and contacts."""

import dataclasses

from foreign_arms import KINOVA_PLACED, write_arm
from mher_ros.errors import MherError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.model_file import parse_model
from mher_ros.robots.robot import arm_names, load_robot, Span
from mher_ros.robots.scene import Obstacle
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.shapes import visible_shapes
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.simulation.urdf_writer import link_frames
import mujoco
import numpy as np
import pytest

INERTIAL = (
    '<inertial><mass value="{mass}"/>'
    '<inertia ixx="{ixx}" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
)
LINK = '<link name="{0}">{1}<collision><geometry><box size="0.3 0.1 0.1"/></geometry></collision>'
# A lift that is not commanded moves the arm; a finger is moved by it.
URDF = """
<robot name="arm">
  <link name="base"/>
  {lift}</link>
  {upper}</link>
  {lower}</link>
  <link name="tool"/>
  {finger}</link>
  <joint name="lift_joint" type="prismatic">
    <parent link="base"/> <child link="lift"/> <axis xyz="0 0 1"/>
    <limit lower="0" upper="1" effort="100" velocity="1"/>
  </joint>
  <joint name="one" type="revolute">
    <parent link="lift"/> <child link="upper"/> <axis xyz="0 0 1"/> <origin xyz="0.3 0 0"/>
    <limit lower="-2" upper="2" effort="100" velocity="1"/>
  </joint>
  <joint name="two" type="revolute">
    <parent link="upper"/> <child link="lower"/> <axis xyz="0 0 1"/> <origin xyz="0.4 0 0"/>
    <limit lower="-2" upper="2" effort="100" velocity="1"/>
  </joint>
  <joint name="end" type="fixed">
    <parent link="lower"/> <child link="tool"/> <origin xyz="0.6 0 0"/>
  </joint>
  <joint name="grip" type="revolute">
    <parent link="tool"/> <child link="finger"/> <axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
</robot>
"""
ROBOT = """
model: arm.urdf
base_frame: base
tool_frame: tool
joints: [two, one]
home: {two: 0.3, one: -0.2, lift_joint: 0.4, grip: 0.5}
output: joint_position
workspace: {origin: [0.8, 0.0, 0.4]}
"""


def write_robot(tmp_path, mass=2.0, ixx=0.01, more=''):
    links = {
        name: LINK.format(name, INERTIAL.format(mass=mass, ixx=ixx) if mass else '')
        for name in ('lift', 'upper', 'lower', 'finger')
    }
    (tmp_path / 'arm.urdf').write_text(URDF.format(**links))
    path = tmp_path / 'arm.yaml'
    path.write_text(ROBOT + more)
    return load_robot(path)


@pytest.fixture(params=['panda', 'ur5e', 'lift'])
def robot(request, tmp_path):
    return write_robot(tmp_path) if request.param == 'lift' else load_robot(request.param)


def commanded(plant):
    """Return positions and velocities of the commanded joints."""
    places = [plant.joint_names.index(name) for name in plant.command_names]
    return [values[places] for values in plant.joint_state()]


def test_it_starts_as_the_kinematic_simulation_does(robot):
    plant, kinematic = UrdfPlant(robot), KinematicPlant(robot)
    for name in ('joint_names', 'command_names', 'frame', 'period'):
        assert getattr(plant, name) == getattr(kinematic, name)
    np.testing.assert_array_equal(plant.joint_state(), kinematic.joint_state())
    np.testing.assert_array_equal(plant.tool_pose()[0], kinematic.tool_pose()[0])
    np.testing.assert_array_equal(plant.tool_pose()[1], kinematic.tool_pose()[1])
    assert plant.description('any') == kinematic.description('any')


def test_joints_that_are_not_commanded_are_at_home_and_stay_there(tmp_path):
    plant = UrdfPlant(write_robot(tmp_path))
    assert plant.joint_names == ('lift_joint', 'one', 'two', 'grip')
    for _ in range(100):
        plant.advance(np.array((0.8, 0.5)))
    positions, velocities = plant.joint_state()
    np.testing.assert_allclose(positions, (0.4, 0.5, 0.8, 0.5), atol=1e-2)
    np.testing.assert_array_equal(positions[[0, 3]], (0.4, 0.5))
    np.testing.assert_array_equal(velocities[[0, 3]], 0.0)
    assert plant.tool_pose()[0][2] == pytest.approx(0.4)
    assert plant.data.body('lift').xpos[2] == pytest.approx(0.4)


def test_its_model_is_where_its_kinematics_are(robot):
    plant = UrdfPlant(robot)
    arm = ArmModel(robot.simulated())
    start, random = commanded(plant)[0], np.random.default_rng(0)
    for _ in range(5):
        target = np.clip(start + random.uniform(-0.3, 0.3, len(start)), arm.lower, arm.upper)
        for _ in range(200):
            plant.advance(target)
        np.testing.assert_allclose(commanded(plant)[0], target, atol=1e-4)
        position, orientation = plant.tool_pose()
        drawn = plant.data.body(robot.tool_frame)
        np.testing.assert_allclose(drawn.xpos, position, atol=1e-9)
        assert abs(drawn.xquat @ orientation) == pytest.approx(1.0, abs=1e-9)


def test_no_joint_is_faster_than_its_limit(robot):
    plant, arm = UrdfPlant(robot), ArmModel(robot.simulated())
    start, random = commanded(plant)[0], np.random.default_rng(0)
    for _ in range(4):
        target = start + random.uniform(-0.4, 0.4, len(start))
        for _ in range(150):
            plant.advance(target)
            velocities = commanded(plant)[1]
            if plant.data.ncon:
                break
            assert (np.abs(velocities) <= 1.001 * arm.velocity_limits).all()


def test_it_holds_its_weight(robot):
    plant = UrdfPlant(robot)
    start = commanded(plant)[0]
    assert np.abs(plant.data.qfrc_bias).max() > 1.0 or robot.name == 'arm'  # its axes are upright
    for _ in range(500):
        plant.advance(None)
    np.testing.assert_allclose(commanded(plant)[0], start, atol=1e-9)


def test_it_is_seen_as_the_kinematic_simulation_is(robot):
    seen = []
    for plant in (UrdfPlant(robot), KinematicPlant(robot)):
        shapes = visible_shapes(plant.model, plant.joint_names)
        positions, orientations = shapes.poses(plant.data)
        looks = [(one.kind, one.size, one.rgba) for one in shapes]
        seen.append((looks, positions, np.abs(orientations)))
    assert len(seen[0][0]) == len(seen[1][0]) > 3
    for one, other in zip(*map(sort, seen), strict=True):
        assert one[0] == other[0]
        np.testing.assert_allclose(one[1], other[1], atol=1e-9)


def test_each_link_has_one_frame_where_the_kinematic_simulation_has_it(robot):
    plant, kinematic = UrdfPlant(robot), KinematicPlant(robot)
    frames = {
        one: {
            name: np.concatenate((one.data.xpos[body], np.abs(one.data.xquat[body])))
            for body, name in link_frames(one.model, one.joint_names, one.frame).items()
        }
        for one in (plant, kinematic)
    }
    links = {link.get('name') for link in parse_model(plant.description('any')).findall('link')}
    assert set(frames[plant]) == links - {plant.frame}
    assert set(frames[kinematic]) <= set(frames[plant])
    for name, pose in frames[kinematic].items():
        np.testing.assert_allclose(frames[plant][name], pose, atol=1e-9)


def sort(seen):
    looks, positions, orientations = seen
    rows = [
        (look, np.concatenate((place, turn)))
        for look, place, turn in zip(looks, positions, orientations, strict=True)
    ]
    return sorted(rows, key=lambda row: (row[0], row[1].round(6).tolist()))


def folded(robot):
    """Return the plant of an arm whose finger was moved back to the lift."""
    limits = {name: Span(lower=-3.2, upper=3.2, velocity=2.0) for name in ('one', 'two')}
    plant = UrdfPlant(dataclasses.replace(robot, joint_limits=limits))
    for _ in range(600):
        plant.advance(np.array((3.1, 0.0)))
    return plant


def test_links_that_touch_hold_each_other_up_even_if_the_filter_may_let_them(tmp_path):
    for more in ('', 'collision: {ignore: [[finger, lift]]}\n'):
        plant = folded(write_robot(tmp_path, more=more))
        assert plant.contacts().number > 0
        assert commanded(plant)[0][0] < 3.09


def test_links_that_touch_at_home_do_not_hold_each_other_up(tmp_path):
    robot = write_robot(tmp_path)
    plant = folded(dataclasses.replace(robot, home={**robot.home, 'two': 3.0, 'one': 0.0}))
    assert plant.contacts().number == 0
    assert commanded(plant)[0][0] == pytest.approx(3.1, abs=1e-3)


def test_contacts_are_told_with_their_links_and_forgotten_with_a_reset(tmp_path):
    plant = folded(write_robot(tmp_path))
    told = plant.contacts()
    assert told.number >= 1
    assert told.deepest > 1e-3
    assert set(told.between.split(' and ')) <= {'lift', 'lower', 'finger'}
    plant.reset()
    plant.advance(None)
    assert plant.contacts() == (0, 0.0, '')


@pytest.mark.parametrize('mass', ['nan', 'inf', '-1', 'two', '1e300'])
def test_a_mass_that_is_none_is_refused(tmp_path, mass):
    robot = write_robot(tmp_path, mass=mass)
    with pytest.raises(MherError, match=rf'simulated with masses: .*{mass[:2]}'):
        simulated_robot(robot)


@pytest.mark.parametrize('ixx', ['nan', '-inf', 'x'])
def test_an_inertia_that_is_none_is_refused(tmp_path, ixx):
    robot = write_robot(tmp_path, ixx=ixx)
    with pytest.raises(MherError, match=f'simulated with masses: .*{ixx}'):
        simulated_robot(robot)


@pytest.mark.parametrize(
    ('given', 'reason'),
    [
        ({'mass': 0}, 'no link .* has a mass'),
        ({'ixx': 5.0}, 'moment of inertia of lift is larger'),
    ],
)
def test_without_usable_masses_it_is_simulated_without_forces_and_says_so(tmp_path, given, reason):
    robot = write_robot(tmp_path, **given)
    arm = simulated_robot(robot)
    assert isinstance(arm._plant, KinematicPlant)
    assert arm.contacts() is None
    with pytest.raises(MherError, match=reason) as refused:
        UrdfPlant(robot)
    assert str(refused.value) == arm.no_forces


@pytest.mark.parametrize('name', arm_names())
def test_arms_of_this_package_have_forces_and_contacts(name):
    arm = simulated_robot(load_robot(name))
    assert arm.no_forces == ''
    assert arm.untouched == ()
    assert arm.contacts() == (0, 0.0, '')


def test_links_whose_shapes_for_contacts_cannot_be_used_are_told(tmp_path):
    write_robot(tmp_path)
    path = tmp_path / 'arm.urdf'
    mesh = '<mesh filename="none.dae"/>'
    path.write_text(path.read_text().replace('<box size="0.3 0.1 0.1"/>', mesh, 2))
    assert simulated_robot(load_robot(tmp_path / 'arm.yaml')).untouched == ('lift', 'upper')


def test_an_arm_of_collada_meshes_touches_an_obstacle(tmp_path):
    robot = load_robot(write_arm(tmp_path, 'kinova', KINOVA_PLACED))
    tool = ArmModel(robot).tool_position(np.array([robot.home[name] for name in robot.joints]))
    place = tuple((tool + (0.0, 0.0, -0.16)).tolist())
    table = Obstacle('table', 'box', place, size=(0.6, 0.6, 0.1))
    plant = UrdfPlant(dataclasses.replace(robot, scene=(table,)))
    assert plant.untouched == ()
    target = commanded(plant)[0].copy()
    target[1] += 0.6
    for _ in range(200):
        plant.advance(target)
    number, _, between = plant.contacts()
    assert number > 0
    assert 'table' in between


def test_the_task_reach_simulates_the_same_arm_to_the_bit():
    task = Reach(ReachOptions(robot='ur5e', episode_steps=50, threshold=0.05))
    other = simulated_robot(load_robot('ur5e'))
    task.reset(seed=0)
    controller = task.lockstep_controller()
    controller.reset()
    action = np.full(6, 0.3, np.float32)
    for _ in range(10):
        task.move(action)
        for index in range(task.commands_per_step):
            state = other.joint_state()
            other.advance(controller.answer(*state, action if index == 0 else None))
        np.testing.assert_array_equal(task.joint_state(), other.joint_state())
    assert task.scene()[0].nu == 6


def test_same_commands_same_motion_to_the_bit():
    robot = dataclasses.replace(load_robot('panda'))
    one, other = UrdfPlant(robot), UrdfPlant(robot)
    random = np.random.default_rng(0)
    for _ in range(40):
        one.advance(random.uniform(-2.0, 2.0, 7))
    one.reset()
    for _ in range(20):
        target = random.uniform(-2.0, 2.0, 7)
        for _ in range(30):
            one.advance(target)
            other.advance(target)
            np.testing.assert_array_equal(one.joint_state(), other.joint_state())
    assert mujoco.mju_isBad(one.data.qpos[0]) == 0
