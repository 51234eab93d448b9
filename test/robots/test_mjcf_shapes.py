"""Collision shapes of MJCF files, beside the geoms of MuJoCo's own compiler."""

import struct

from mher_ros.errors import MherError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.mjcf_shapes import mjcf_shapes
from mher_ros.robots.model_file import find_file, parse_model, read_model
from mher_ros.robots.robot import load_robot
import mujoco
import numpy as np
import pytest
import yaml

FETCH = 'python://gymnasium-robotics/gymnasium_robotics/envs/assets/fetch/reach.xml'
KINDS = mujoco.mjtGeom
MODEL = """
<mujoco>
  <compiler angle="degree" eulerseq="ZYX" meshdir="shapes"/>
  <default>
    <mesh scale="0.1 0.2 0.1"/>
    <geom contype="1" conaffinity="1"/>
    <default class="seen"><geom type="mesh" contype="0" conaffinity="0"/></default>
    <default class="pole"><geom type="capsule" size="0.03 0.2"/></default>
  </default>
  <asset>
    <mesh file="wedge.stl"/>
    <mesh name="turned" file="wedge.stl" scale="0.3 0.1 0.2" refpos="0.1 0.2 0.3"
      refquat="0.8 0.6 0 0"/>
    <mesh name="inline" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  </asset>
  <worldbody>
    <geom type="plane" size="1 1 1" pos="0 0 -0.5" euler="10 0 0"/>
    <body name="one" pos="0 0 0.1" euler="30 20 10">
      <joint name="j0" type="hinge" axis="0 0 1" range="-90 90"/>
      <geom class="seen" mesh="wedge"/>
      <geom class="pole" pos="0.1 0 0" euler="90 0 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0.1 0.2"/>
      <frame pos="0 0 0.2" euler="0 45 0">
        <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0"/>
      </frame>
      <geom type="mesh" mesh="wedge" pos="0.3 0.2 0.1" axisangle="1 1 0 50"/>
      <body name="two" pos="1.4 0 0.5">
        <joint name="j1" type="slide" axis="1 0 0" range="0 0.5" pos="0.1 0 0"/>
        <geom type="ellipsoid" size="0.1 0.05 0.2" zaxis="1 1 0"/>
        <geom type="cylinder" size="0.05 0.1" quat="0.6 0 0.8 0"/>
        <geom type="sphere" size="0.07" pos="0 0.1 0"/>
        <geom type="mesh" mesh="turned" pos="0.1 0 0" quat="0.6 0 0 0.8"/>
        <geom type="mesh" mesh="inline" conaffinity="0"/>
        <site name="tip" pos="0.1 0 0"/>
        <body name="shade"><geom class="seen" mesh="inline"/></body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="two" body2="world"/></contact>
</mujoco>
"""


def write_wedge(folder):
    """Write a mesh that is not symmetric, and whose inertia frame is not its own frame."""
    points = np.array(((0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.1, 0.7)), np.float32)
    faces = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))
    (folder / 'shapes').mkdir()
    (folder / 'shapes' / 'wedge.stl').write_bytes(
        bytes(80)
        + struct.pack('<I', len(faces))
        + b''.join(bytes(12) + points[list(face)].tobytes() + bytes(2) for face in faces)
    )


@pytest.fixture
def folder(tmp_path):
    write_wedge(tmp_path)
    (tmp_path / 'arm.xml').write_text(MODEL)
    return tmp_path


def extents(model, geom, directions):
    """Return how far a geom of MuJoCo reaches along directions (n, 3), in its body's frame."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, model.geom_quat[geom])
    local, size = directions @ flat.reshape(3, 3), model.geom_size[geom]
    kind = KINDS(model.geom_type[geom])
    if kind == KINDS.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        reach = (model.mesh_vert[first : first + count] @ local.T).max(axis=0)
    elif kind == KINDS.mjGEOM_BOX:
        reach = np.abs(local) @ size
    elif kind == KINDS.mjGEOM_SPHERE:
        reach = np.full(len(local), size[0])
    elif kind == KINDS.mjGEOM_ELLIPSOID:
        reach = np.linalg.norm(local * size, axis=1)
    elif kind == KINDS.mjGEOM_CAPSULE:
        reach = size[0] + size[1] * np.abs(local[:, 2])
    else:
        assert kind == KINDS.mjGEOM_CYLINDER
        reach = size[0] * np.hypot(local[:, 0], local[:, 1]) + size[1] * np.abs(local[:, 2])
    return directions @ model.geom_pos[geom] + reach


def test_the_shapes_are_those_of_mujoco_and_enclose_them(folder):
    model = mujoco.MjModel.from_xml_path(str(folder / 'arm.xml'))
    shapes, excluded = mjcf_shapes(parse_model(MODEL), folder)
    assert excluded == {frozenset(('two', 'world'))}
    assert [(one.link, one.trouble) for one in shapes if one.solid is None] == [
        ('shade', 'no collision shape')
    ]
    touched = [
        geom
        for geom in range(model.ngeom)
        if model.geom_contype[geom] or model.geom_conaffinity[geom]
    ]
    shapes = [one for one in shapes if one.solid is not None]
    assert len(shapes) == len(touched) == 10
    directions = np.random.default_rng(0).normal(size=(300, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for shape, geom in zip(shapes, touched, strict=True):
        body = int(model.geom_bodyid[geom])
        assert shape.link == model.body(body).name
        if model.geom_type[geom] == KINDS.mjGEOM_PLANE:
            np.testing.assert_allclose(shape.solid.vertices[0], (0, 0, -0.5))
            np.testing.assert_allclose(shape.solid.normal, (0, 0, 1), atol=1e-12)
            continue
        expected = extents(model, geom, directions)
        found = (shape.solid.vertices @ directions.T).max(axis=0) + shape.solid.radius
        assert (found >= expected - 1e-6).all()
        loose = KINDS(model.geom_type[geom]) in (KINDS.mjGEOM_CYLINDER, KINDS.mjGEOM_ELLIPSOID)
        assert (found <= expected + (0.025 if loose else 1e-6)).all()


def arm_of(folder, **changes):
    keys = {
        'model': 'arm.xml',
        'tool_frame': 'tip',
        'joints': ['j0', 'j1'],
        'joint_limits': {'j0': {'velocity': 1.0}, 'j1': {'velocity': 1.0}},
        'output': 'joint_position',
        'scene': {'far': {'shape': 'sphere', 'position': [9, 0, 0], 'radius': 0.1}},
    }
    (folder / 'arm.yaml').write_text(yaml.safe_dump({**keys, **changes}))
    return ArmModel(load_robot(folder / 'arm.yaml'))


def test_an_arm_of_an_mjcf_file_has_parts_in_the_frames_of_its_bodies(folder):
    arm = arm_of(folder)
    assert arm.unprotected == 'shade (no collision shape)'
    places = {(part.name, part.body) for part in arm.collision.parts}
    assert places == {('world', 0), ('one', 1), ('two', 2), ('far', 0)}
    # The second joint's anchor is not the origin of its body: in the frame of the joint, the ball
    # is elsewhere.
    model = mujoco.MjModel.from_xml_path(str(folder / 'arm.xml'))
    data, query = mujoco.MjData(model), mujoco.MjData(arm.collision.model)
    data.qpos[:] = query.qpos[:] = (0.7, 0.3)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_kinematics(arm.collision.model, query)
    ball = int(np.flatnonzero(model.geom_type == KINDS.mjGEOM_SPHERE)[0])
    places = [
        query.xpos[part.body] + query.xmat[part.body].reshape(3, 3) @ part.solid.vertices[0]
        for part in arm.collision.parts
        if part.name == 'two' and part.solid.radius == pytest.approx(0.07)
    ]
    np.testing.assert_allclose(places, [data.geom_xpos[ball]], atol=1e-9)


def test_pairs_that_the_model_excludes_may_touch(folder):
    def pairs():
        collision = arm_of(folder, home={'j0': 0.0, 'j1': 0.5}).collision
        return {frozenset(collision.names(pair)) for pair in range(len(collision.pairs))}

    assert frozenset(('two', 'world')) not in pairs()
    (folder / 'arm.xml').write_text(MODEL.replace('<exclude body1="two" body2="world"/>', ''))
    assert frozenset(('two', 'world')) in pairs()


def test_the_arm_of_a_task_is_read_with_its_meshes(tmp_path):
    path = find_file(FETCH, tmp_path)
    shapes, excluded = mjcf_shapes(parse_model(read_model(path)), path.parent)
    missing = {shape.link for shape in shapes if shape.solid is None}
    assert missing == {'robot0:mocap'}
    fingers = 'robot0:r_gripper_finger_link', 'robot0:l_gripper_finger_link'
    assert frozenset(fingers) in excluded
    model = mujoco.MjModel.from_xml_path(str(path))
    directions = np.eye(3)
    for shape in (one for one in shapes if one.link.endswith('roll_link')):
        geoms = np.flatnonzero(model.geom_bodyid == model.body(shape.link).id)
        expected = np.max([extents(model, int(geom), directions) for geom in geoms], axis=0)
        found = (shape.solid.vertices @ directions.T).max(axis=0) + shape.solid.radius
        np.testing.assert_allclose(found, expected, atol=0.004)


def test_meshes_that_cannot_be_read_leave_an_arm_that_starts(folder):
    (folder / 'shapes' / 'wedge.stl').unlink()
    arm = arm_of(folder)
    assert 'wedge.stl' in arm.unprotected
    assert {part.name for part in arm.collision.parts} == {'world', 'one', 'two', 'far'}


def world(content, more=''):
    return f"""<mujoco>{more}<worldbody><body name="b"><joint name="j0" range="-90 90"/>
      <body name="c"><joint name="j1" type="slide" range="0 1"/><geom size="0.1"/>{content}
      <site name="tip"/></body></body></worldbody></mujoco>"""


def asset(content):
    return f'<asset>{content}</asset>'


MESH = '<geom type="mesh" mesh="m"/>'
HOSTILE = {
    'many geoms': world('<geom size="1"/>' * 10_000),
    'no size': world('<geom type="box"/>'),
    'not a number': world('<geom size="nan"/>'),
    'infinite': world('<geom type="capsule" size="inf 1"/>'),
    'very large': world('<geom size="1e300"/>'),
    'replicate': world('<replicate count="1000000"><geom size="1"/></replicate>'),
    'an unknown class': world('<geom class="k" size="1"/>'),
}
LEFT_OUT = {
    'a device': world(MESH, asset('<mesh name="m" file="/dev/zero.stl"/>')),
    'a device without an ending': world(MESH, asset('<mesh name="m" file="/dev/zero"/>')),
    'no asset': world(MESH),
    'nan': world(MESH, asset('<mesh name="m" vertex="nan 0 0 1 0 0 0 1 0 0 0 1"/>')),
    'far away': world(
        MESH, asset('<mesh name="m" scale="1e300 1 1" vertex="9 0 0 1 0 0 0 1 0 0 0 1"/>')
    ),
    'five numbers': world(MESH, asset('<mesh name="m" vertex="0 0 0 1 1"/>')),
    'a height field': world(
        '<geom type="hfield" hfield="h"/>',
        asset('<hfield name="h" nrow="9000" ncol="9000" size="1 1 1 1"/>'),
    ),
    'another format': world(MESH, asset('<mesh name="m" file="m.msh"/>')),
    'a signed distance field': world('<geom type="sdf" mesh="m"/>', asset('<mesh name="m"/>')),
}


@pytest.mark.parametrize('name', HOSTILE)
def test_a_hostile_geom_is_refused(tmp_path, name):
    (tmp_path / 'arm.xml').write_text(HOSTILE[name])
    with pytest.raises(MherError) as told:
        _ = arm_of(tmp_path).collision
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize('name', LEFT_OUT)
def test_a_hostile_mesh_is_left_out_with_a_reason(tmp_path, name):
    (tmp_path / 'arm.xml').write_text(LEFT_OUT[name])
    arm = arm_of(tmp_path)
    assert arm.unprotected.startswith('c (')
    assert len(arm.unprotected) < 500
    parts = arm.obstacle_slots().parts
    assert [part.solid.radius for part in parts if part.name == 'c'] == [0.1]


def test_meshes_that_are_large_together_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr('mher_ros.robots.mesh_file.MAX_TOTAL_BYTES', 500)
    write_wedge(tmp_path)  # 284 bytes
    names = [f'm{number}' for number in range(3)]
    meshes = ''.join(f'<mesh name="{name}" file="shapes/wedge.stl"/>' for name in names)
    geoms = ''.join(f'<geom type="mesh" mesh="{name}"/>' for name in names)
    (tmp_path / 'arm.xml').write_text(world(geoms, asset(meshes)))
    assert '500 bytes' in arm_of(tmp_path).unprotected
