"""Robot descriptions, read back by MuJoCo, against the models they describe."""

from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

from mher_ros.simulation.arms import ARMS
from mher_ros.simulation.shapes import robot_bodies, visible_shapes
from mher_ros.simulation.urdf_writer import link_name, urdf_of
from mher_ros.tasks import make
from mher_ros.tasks.mujoco_task import joint_name
import mujoco
import numpy as np
import pytest

PLENTY = 1000.0
STL = np.dtype([('normal', '<f4', 3), ('vertices', '<f4', (3, 3)), ('attribute', '<u2')])


def read_back(urdf):
    """Compile a description, without its collision shapes, with a body for each of its links."""
    robot = ElementTree.fromstring(urdf)
    for link in robot.findall('link'):
        for shape in link.findall('collision'):
            link.remove(shape)
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding='unicode'))
    spec.compiler.fusestatic = False
    # Links between the joints of one body, and some of the models' own, weigh nothing.
    spec.compiler.boundmass = spec.compiler.boundinertia = 1e-6
    spec.compiler.balanceinertia = True
    return spec.compile()


def joints_of(model, joint_names):
    """Map the ROS names of the robot's joints to their indices in the model."""
    names = {joint_name(model.joint(index).name): index for index in range(model.njnt)}
    return {name: index for name, index in names.items() if name in joint_names}


def random_pose(model, read, joints, rng):
    """Put both models in one random configuration and return their data."""
    ours, theirs = mujoco.MjData(model), mujoco.MjData(read)
    for name, index in joints.items():
        limited = model.jnt_limited[index]
        value = rng.uniform(*(model.jnt_range[index] if limited else (-3.0, 3.0)))
        ours.qpos[model.jnt_qposadr[index]] = value
        theirs.joint(name).qpos = value
    mujoco.mj_kinematics(model, ours)
    mujoco.mj_kinematics(read, theirs)
    return ours, theirs


def assert_links_follow(model, joint_names):
    read = read_back(urdf_of(model, 'robot', joint_names))
    joints, rng = joints_of(model, joint_names), np.random.default_rng(0)
    assert read.nq == len(joints)
    for _ in range(50):
        ours, theirs = random_pose(model, read, joints, rng)
        for body in robot_bodies(model, joint_names):
            link = theirs.body(link_name(model, body))
            np.testing.assert_allclose(link.xpos, ours.xpos[body], atol=1e-9, err_msg=link.name)
            np.testing.assert_allclose(link.xmat, ours.xmat[body], atol=1e-9, err_msg=link.name)


def test_links_are_where_the_models_bodies_are(shown):
    assert_links_follow(*shown)


def test_joints_have_the_models_names_axes_types_and_limits(shown):
    model, joint_names = shown
    read = read_back(urdf_of(model, 'robot', joint_names))
    joints = joints_of(model, joint_names)
    assert [read.joint(index).name for index in range(read.njnt)] == list(joints)
    for name, index in joints.items():
        same = read.joint(name).id
        assert read.jnt_type[same] == model.jnt_type[index]
        np.testing.assert_allclose(read.jnt_axis[same], model.jnt_axis[index], atol=1e-12)
        if model.jnt_limited[index]:
            assert read.jnt_limited[same]
            np.testing.assert_array_equal(read.jnt_range[same], model.jnt_range[index])
        elif model.jnt_type[index] == mujoco.mjtJoint.mjJNT_SLIDE:
            # A prismatic joint of a description has to have limits.
            np.testing.assert_array_equal(read.jnt_range[same], (-PLENTY, PLENTY))
        else:
            assert not read.jnt_limited[same]


def test_links_weigh_what_the_bodies_do(shown):
    model, joint_names = shown
    read = read_back(urdf_of(model, 'robot', joint_names))
    for body in robot_bodies(model, joint_names)[1:]:
        if model.body_mass[body] > 1e-6 and model.body_inertia[body].min() > 1e-6:
            same = read.body(link_name(model, body))
            assert same.mass == pytest.approx(model.body_mass[body])
            np.testing.assert_allclose(same.ipos, model.body_ipos[body], atol=1e-12)
            np.testing.assert_allclose(
                sorted(same.inertia), sorted(model.body_inertia[body]), rtol=1e-6
            )


def test_it_is_one_tree_of_uniquely_named_parts_from_the_root(shown):
    for root in ('world', 'square'):
        robot = ElementTree.fromstring(urdf_of(shown[0], 'robot', shown[1], root))
        assert robot.tag == 'robot'
        links = [link.get('name') for link in robot.findall('link')]
        joints = robot.findall('joint')
        assert max(Counter(links).values()) == 1
        assert max(Counter(joint.get('name') for joint in joints).values()) == 1
        parents = {j.find('child').get('link'): j.find('parent').get('link') for j in joints}
        assert len(parents) == len(joints) == len(links) - 1
        assert set(links) - set(parents) == {root}
        for link in links:
            seen = [link]
            while seen[-1] != root:
                seen.append(parents[seen[-1]])
                assert len(seen) <= len(links)


def test_what_is_no_part_of_the_robot_is_left_out():
    for task, foreign in (
        ('fetch_reach', 'mocap'),
        ('sawyer_reach', 'mocap'),
        ('reacher', 'target'),
    ):
        env = make(task)
        bodies = {env.model.body(index).name for index in range(env.model.nbody)}
        assert {foreign, f'robot0:{foreign}'} & bodies
        assert foreign not in urdf_of(env.model, task, env.joint_names)


def test_every_shape_is_a_visual_of_its_link_with_its_pose_and_colour(shown):
    model, joint_names = shown
    robot = ElementTree.fromstring(urdf_of(model, 'robot', joint_names))
    colours = {
        material.get('name'): tuple(map(float, material.find('color').get('rgba').split()))
        for material in robot.findall('material')
    }
    visuals = {
        (link.get('name'), visual.get('name')): visual
        for link in robot.findall('link')
        for visual in link.findall('visual')
    }
    shapes = visible_shapes(model, joint_names)
    assert len(visuals) == len(shapes) > 0
    for shape in shapes:
        visual = visuals[link_name(model, shape.body), shape.name]
        assert colours[visual.find('material').get('name')] == shape.rgba
        origin = visual.find('origin')
        np.testing.assert_array_equal(
            np.array(origin.get('xyz').split(), float), np.array(shape.position)
        )
        (geometry,) = visual.find('geometry')
        assert geometry.tag == shape.kind
        if shape.kind == 'mesh':
            address = urlparse(geometry.get('filename'))
            assert address.scheme == 'file'
            assert Path(unquote(address.path)) == shape.mesh
            assert shape.mesh.is_file()


def test_every_visual_is_a_collision_shape_too(shown):
    model, joint_names = shown
    robot = ElementTree.fromstring(urdf_of(model, 'robot', joint_names))
    planes = {shape.name for shape in visible_shapes(model, joint_names) if shape.touched}
    for link in robot.findall('link'):
        seen, touched = link.findall('visual'), link.findall('collision')
        assert [shape.get('name') for shape in seen] == [shape.get('name') for shape in touched]
        for one, other in zip(seen, touched, strict=True):
            for part in ('origin', 'geometry'):
                if part == 'geometry' and one.get('name') in planes:  # only a part is shown
                    continue
                assert ElementTree.tostring(one.find(part)).strip() == (
                    ElementTree.tostring(other.find(part)).strip()
                )


def test_visuals_read_back_stand_where_the_models_geoms_do(shown):
    model, joint_names = shown
    urdf = urdf_of(model, 'robot', joint_names).replace('file://', '')
    options = 'discardvisual="false" strippath="false" fusestatic="false"'
    read = read_back(
        urdf.replace('<material', f'<mujoco><compiler {options}/></mujoco><material', 1)
    )
    shapes = visible_shapes(model, joint_names)
    assert read.ngeom == len(shapes)
    ours, theirs = random_pose(
        model, read, joints_of(model, joint_names), np.random.default_rng(1)
    )
    for geom, (shape, *pose) in enumerate(zip(shapes, *shapes.poses(ours), strict=True)):
        assert read.body(read.geom_bodyid[geom]).name == link_name(model, shape.body)
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, pose[1])
        if shape.kind != 'mesh':
            np.testing.assert_allclose(theirs.geom_xpos[geom], pose[0], atol=1e-9)
            np.testing.assert_allclose(theirs.geom_xmat[geom], rotation, atol=1e-9)
            continue
        # A mesh gets a frame anew as it is read, so what it fills is compared.
        mesh = read.geom_dataid[geom]
        vertices = read.mesh_vert[read.mesh_vertadr[mesh] :][: read.mesh_vertnum[mesh]]
        there = vertices @ theirs.geom_xmat[geom].reshape(3, 3).T + theirs.geom_xpos[geom]
        facets = np.frombuffer(shape.mesh.read_bytes(), STL, offset=84)
        here = facets['vertices'].reshape(-1, 3) @ rotation.reshape(3, 3).T + pose[0]
        np.testing.assert_allclose(there.min(0), here.min(0), atol=1e-5)
        np.testing.assert_allclose(there.max(0), here.max(0), atol=1e-5)


def test_limits_that_the_maker_tells_are_in_it():
    for task, arm in ARMS.items():
        env = make(task)
        robot = ElementTree.fromstring(urdf_of(env.model, task, env.joint_names))
        found = {joint.get('name'): joint.find('limit') for joint in robot.findall('joint')}
        for name, limits in {**arm.joints, **arm.other_joints}.items():
            assert float(found[name].get('effort')) == limits.effort
            assert float(found[name].get('velocity')) == limits.velocity


def test_anchors_references_and_several_joints_on_a_body_are_followed():
    model = mujoco.MjModel.from_xml_string(
        """
        <mujoco><compiler angle="radian"/><worldbody>
          <body name="first" pos="0.1 0.2 0.3" euler="0 1.5707963267948966 0.4">
            <joint name="slide" type="slide" axis="1 2 3" ref="0.3"/>
            <joint name="turn" axis="0 1 1" pos="0.1 -0.2 0.05" ref="-0.7"/>
            <joint name="twist" axis="1 0 0" pos="0 0.3 0"/>
            <geom size="0.1"/>
            <body name="second" pos="0 0 0.5" euler="0.3 -1.5707963267948966 0">
              <joint name="hinge" axis="0 0 1" ref="1.2" limited="true" range="0.5 2"/>
              <geom size="0.1"/>
              <body name="fixed" pos="0.3 0 0" euler="1 2 3"><geom size="0.1"/></body>
            </body>
          </body>
        </worldbody></mujoco>
        """
    )
    assert_links_follow(model, ('slide', 'turn', 'twist', 'hinge'))


def test_joint_that_a_description_cannot_have_is_refused():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint name="knee" type="ball"/><geom size="1"/></body>'
        '</worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match='joint knee: .*got ball'):
        urdf_of(model, 'robot', ('knee',))


def test_links_of_one_name_are_refused():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body name="hand"><geom size="1"/></body>'
        '<body name="robot0:hand"><geom size="1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match='names of links are unique, got hand twice'):
        urdf_of(model, 'robot', ())
