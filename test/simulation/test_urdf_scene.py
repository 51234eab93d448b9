"""What is seen of a URDF."""

from mher_ros.robots.description import DescriptionError
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.shapes import mesh_file, visible_shapes
from mher_ros.simulation.urdf_scene import scene_of, with_found_meshes
import mujoco
import numpy as np
import pytest

URDF = """
<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="world"/>
  <link name="base">
    <visual>
      <origin xyz="0 0 0.1"/> <geometry><box size="0.2 0.4 0.6"/></geometry>
      <material name="red"/>
    </visual>
  </link>
  <link name="arm">
    <visual>
      <origin xyz="0.1 0 0" rpy="0 1.5707963267948966 0"/>
      <geometry><cylinder radius="0.05" length="0.3"/></geometry>
      <material name=""><color rgba="0 1 0 0.5"/></material>
    </visual>
    <visual> <geometry><sphere radius="0.07"/></geometry> </visual>
  </link>
  <link name="tip">
    <visual> <geometry><mesh filename="{visual}"/></geometry> </visual>
    <collision>
      <geometry><mesh filename="{collision}" scale="2 2 2"/></geometry>
    </collision>
  </link>
  <joint name="bolts" type="fixed">
    <parent link="world"/> <child link="base"/> <origin xyz="0 0 1"/>
  </joint>
  <joint name="turn" type="continuous">
    <parent link="base"/> <child link="arm"/> <axis xyz="0 0 1"/> <origin xyz="0 0 0.5"/>
  </joint>
  <joint name="end" type="fixed">
    <parent link="arm"/> <child link="tip"/> <origin xyz="0.3 0 0"/>
  </joint>
</robot>
"""


@pytest.fixture
def stl():
    """Return a file with a mesh."""
    return mesh_file(KinematicPlant(load_robot('panda')).model, 0)


def shapes(model):
    """Return kind, size and colour of what is seen."""
    return [(shape.kind, shape.size, shape.rgba) for shape in visible_shapes(model, ('turn',))]


def test_solids_have_their_size_colour_and_place(tmp_path):
    model = scene_of(URDF.format(visual='none.stl', collision='none.stl'), 'base', tmp_path)
    box, cylinder, sphere = shapes(model)
    assert box == ('box', (0.2, 0.4, 0.6), (1.0, 0.0, 0.0, 1.0))
    assert cylinder == ('cylinder', (0.1, 0.1, 0.3), (0.0, 1.0, 0.0, 0.5))
    assert sphere[:2] == ('sphere', (0.14, 0.14, 0.14))
    data = mujoco.MjData(model)
    data.qpos[:] = np.pi / 2.0
    mujoco.mj_kinematics(model, data)
    positions, _ = visible_shapes(model, ('turn',)).poses(data)
    np.testing.assert_allclose(
        positions, ((0.0, 0.0, 0.1), (0.0, 0.1, 0.5), (0.0, 0.0, 0.5)), atol=1e-12
    )
    np.testing.assert_allclose(data.body('tip').xpos, (0.0, 0.3, 0.5), atol=1e-12)


@pytest.mark.parametrize('rgba', ['1 0 0', '1 0 0 nan', '1e39 0 0 1', 'red'])
def test_a_colour_that_is_none_is_refused(tmp_path, rgba):
    text = URDF.format(visual='none.stl', collision='none.stl').replace('0 1 0 0.5', rgba)
    with pytest.raises(DescriptionError):
        scene_of(text, 'base', tmp_path)


def test_a_mesh_that_cannot_be_read_is_replaced_by_what_collides(tmp_path, stl):
    seen = scene_of(URDF.format(visual=stl, collision='no.stl'), 'world', tmp_path)
    assert shapes(seen)[-1][0] == 'mesh'
    (tmp_path / 'fine.dae').touch()
    other = scene_of(URDF.format(visual='fine.dae', collision=stl), 'world', tmp_path)
    assert shapes(other)[-1][0] == 'mesh'
    ratio = np.ptp(other.mesh_vert, axis=0) / np.ptp(seen.mesh_vert, axis=0)
    np.testing.assert_allclose(ratio, 2.0, rtol=1e-5)


def test_a_broken_mesh_does_not_keep_an_arm_from_moving(tmp_path):
    (tmp_path / 'broken.stl').write_text('nothing')
    text = URDF.format(visual='broken.stl', collision='broken.stl')
    model = scene_of(text, 'world', tmp_path)
    assert model.njnt == 1
    assert len(shapes(model)) == 3


def test_meshes_that_are_found_get_their_full_address(tmp_path, stl):
    told = with_found_meshes(URDF.format(visual=stl, collision='no.stl'), tmp_path)
    assert f'filename="file://{stl}"' in told
    assert 'filename="no.stl"' in told


@pytest.mark.parametrize(('name', 'count'), [('panda', 9), ('ur5e', 7)])
def test_the_arms_that_come_with_this_package_are_seen(name, count):
    plant = KinematicPlant(load_robot(name))
    seen = list(visible_shapes(plant.model, plant.joint_names))
    assert sum(shape.kind == 'mesh' for shape in seen) >= count
