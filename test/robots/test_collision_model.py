"""Distances of solids against closed forms, and the pairs that an arm's model gives."""

import dataclasses
import math
from xml.etree import ElementTree

from arm_models import load_arm
from mher_ros.errors import MherError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import CollisionModel, PairDistances, Part
from mher_ros.robots.model_file import find_file, parse_model, read_model
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.robots.solids import hull_of, obstacle_solid, Solid
import mujoco
import numpy as np
import pytest

CHAIN = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint type="slide" axis="1 0 0"/>
      <body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint type="hinge" axis="0 0 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
BALL = Solid(np.zeros((1, 3)), 0.1)
ROD = Solid(np.array(((0.0, 0.0, -0.2), (0.0, 0.0, 0.2))), 0.05)


def obstacle(shape, size=(0.0, 0.0, 0.0), position=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0)):
    return obstacle_solid(Obstacle('it', shape, position, rpy, size))


def distance(fixed, moving, posture):
    """Return distance and normal between a fixed solid and one on the second body."""
    parts = [Part('fixed', 0, fixed, is_obstacle=True), Part('moving', 2, moving)]
    arm = mujoco.MjModel.from_xml_string(CHAIN)
    model = CollisionModel(parts, arm, load_robot('fetch'), np.array((5.0, 0.0)), 'base')
    query = PairDistances(model)
    query.move(np.array(posture))
    normals, points, _ = query.planes(np.array([0]), 10.0)
    return query.evaluate(np.array([0]))[0], normals[0], query.points_in_base([0], points)[0]


CASES = {
    'sphere and sphere': (BALL, BALL, (1.0, 0.0), 0.8),
    'in contact': (BALL, BALL, (0.15, 0.0), -0.05),
    'capsule and sphere': (ROD, BALL, (1.0, 0.3), 0.85),
    'box and sphere': (obstacle('box', (0.4, 0.4, 0.4)), BALL, (1.0, 0.0), 0.7),
    'corner of a box': (
        obstacle('box', (0.4, 0.4, 0.4), (0.0, 0.5, 0.0)),
        BALL,
        (0.6, 0.0),
        math.hypot(0.4, 0.3) - 0.1,
    ),
    'box and box': (
        obstacle('box', (0.4, 0.4, 0.4)),
        obstacle('box', (0.2, 0.2, 0.2)),
        (1.0, math.pi / 4),
        0.8 - 0.1 * math.sqrt(2.0),
    ),
    'boxes in contact': (
        obstacle('box', (0.4, 0.4, 0.4)),
        obstacle('box', (0.2, 0.2, 0.2)),
        (0.29, 0.0),
        -0.01,
    ),
    'sphere and box': (BALL, obstacle('box', (0.4, 0.4, 0.4)), (-1.0, 0.0), 0.7),
    'capsule and box': (ROD, obstacle('box', (0.4, 0.4, 0.4)), (1.0, 0.0), 0.75),
    'box and capsule': (obstacle('box', (0.4, 0.4, 0.4)), ROD, (-1.0, 0.0), 0.75),
    'plane': (
        obstacle('plane', position=(0.3, 0.0, 0.0), rpy=(0.0, math.pi / 2, 0.0)),
        obstacle('box', (0.2, 0.2, 0.2)),
        (1.0, math.pi / 4),
        0.7 - 0.1 * math.sqrt(2.0),
    ),
}


@pytest.mark.parametrize('name', CASES)
def test_distances_are_those_of_geometry(name):
    fixed, moving, posture, expected = CASES[name]
    found, normal, _ = distance(fixed, moving, posture)
    assert found == pytest.approx(expected, abs=1e-6)
    assert np.linalg.norm(normal) == pytest.approx(1.0)
    assert np.sign(normal[0]) == np.sign(posture[0])  # from the fixed one to the moving one


def test_a_cylinder_is_enclosed_closely():
    cylinder = obstacle('cylinder', (0.1, 0.6, 0.0))
    for turn in np.linspace(0.0, math.pi, 7):
        turned = obstacle('cylinder', (0.1, 0.6, 0.0), rpy=(0.0, 0.0, turn))
        for solid in (cylinder, turned):
            found, _, _ = distance(solid, BALL, (1.0, 0.0))
            assert 0.79 <= found <= 0.8 + 1e-9


def test_random_hulls_are_separated_by_the_planes_found():
    """The distance is a lower bound by its planes, and an upper one by two of the points."""
    random = np.random.default_rng(1)
    for _ in range(50):
        one, other = random.normal(0.0, 0.2, (2, 12, 3))
        posture = random.uniform(0.5, 2.0), random.uniform(-3.0, 3.0)
        found, normal, point = distance(hull_of(one), hull_of(other), posture)
        x, turn = posture
        spin = np.array(
            ((math.cos(turn), -math.sin(turn), 0), (math.sin(turn), math.cos(turn), 0), (0, 0, 1))
        )
        moved = other @ spin.T + (x, 0, 0)
        assert found == pytest.approx((moved @ normal).min() - (one @ normal).max(), abs=1e-9)
        assert point @ normal == pytest.approx((moved @ normal).min(), abs=1e-6)


@pytest.mark.parametrize('name', ['fetch', 'panda', 'sawyer', 'ur5e'])
def test_arms_are_free_of_contact_at_home(name):
    robot, arm = load_arm(name, avoids_collisions=True)
    assert arm.unprotected == ''
    model = arm.collision
    query = PairDistances(model)
    home = np.array([robot.home.get(joint, 0.0) for joint in arm.state_names])
    query.move(home[arm.order])
    distances = query.evaluate(np.arange(len(model.pairs)))
    assert (distances > model.clearances).all()
    assert (model.clearances > 0.0).all()
    pairs = [set(model.names(pair)) for pair in range(len(model.pairs))]
    tool = {'fetch': 'gripper_link', 'panda': 'panda_hand', 'sawyer': 'hand', 'ur5e': 'ee_link'}
    assert any(tool[name] in pair for pair in pairs)


def test_the_table_of_fetch_is_an_obstacle_for_its_fingers():
    model = load_arm('fetch', avoids_collisions=True)[1].collision
    pairs = [set(model.names(pair)) for pair in range(len(model.pairs))]
    assert {'table0', 'l_gripper_finger_link'} in pairs
    assert {'shoulder_pan_link', 'torso_lift_link'} not in pairs  # neighbours
    assert {'elbow_flex_link', 'forearm_roll_link'} not in pairs


def pairs_of(robot):
    """Return the names of the links of all pairs that are kept apart."""
    collision = ArmModel(robot.simulated()).collision
    return {frozenset(collision.names(pair)) for pair in range(len(collision.pairs))}


def test_an_arm_whose_meshes_are_not_found_starts_and_its_links_are_named(monkeypatch):
    """As with the robot_description of a driver whose package is not installed here."""
    monkeypatch.setenv('AMENT_PREFIX_PATH', '/nowhere')
    robot = load_robot('panda')
    text = read_model(find_file(robot.simulation_model, robot.folder))
    arm = ArmModel(robot, text.replace('package://example-robot-data', 'package://panda_driver'))
    for link in ('panda_link1', 'panda_link7', 'panda_hand'):
        assert link in arm.unprotected
    assert arm.unprotected.count('needs the ROS package panda_driver') == 1
    left = {part.name for part in arm.obstacle_slots().parts}
    assert left == {'', 'panda_leftfinger', 'panda_rightfinger'}  # boxes
    off = dataclasses.replace(robot, collision=CollisionOptions(enabled=False))
    assert ArmModel(off, text).unprotected == ''


def test_a_link_that_is_only_seen_is_named(tmp_path):
    path = tmp_path / 'arm.urdf'
    robot = dataclasses.replace(load_robot('ur5e').simulated(), folder=tmp_path)
    top = parse_model(read_model(find_file(robot.model, tmp_path)))
    for link in top.findall('link'):
        if link.get('name') == 'forearm_link':
            link.remove(link.find('collision'))
    path.write_text(ElementTree.tostring(top, encoding='unicode'))
    arm = ArmModel(dataclasses.replace(robot, model=str(path)))
    assert 'forearm_link (no collision shape)' in arm.unprotected
    # Frames without any shape are no links of which a collision could be missed.
    assert 'tool0' not in arm.unprotected
    for link in top.findall('link'):
        for shape in (*link.findall('collision'), *link.findall('visual')):
            link.remove(shape)
    path.write_text(ElementTree.tostring(top, encoding='unicode'))
    arm = ArmModel(dataclasses.replace(robot, model=str(path)))
    assert arm.unprotected.startswith('all links')
    assert arm.collision is None
    assert arm.obstacle_slots() is None


def test_pairs_of_an_srdf_may_touch(tmp_path):
    path = tmp_path / 'panda.srdf'
    path.write_text(
        '<robot name="panda"><disable_collisions link1="panda_link5" link2="panda_link1"/>'
        '<group name="arm"/></robot>'
    )
    named = frozenset(('panda_link1', 'panda_link5'))
    robot = load_robot('panda')
    before = pairs_of(robot)
    assert named in before
    options = CollisionOptions(srdf=str(path))
    assert pairs_of(dataclasses.replace(robot, collision=options)) == before - {named}


def test_an_srdf_that_is_missing_or_hostile_is_an_error_that_names_it(tmp_path):
    robot = load_robot('panda')
    path = tmp_path / 'a.srdf'
    for text in (None, '<!DOCTYPE a [<!ENTITY b "c">]><robot/>', '<robot>', '<a>' * 200):
        if text is not None:
            path.write_text(text)
        options = CollisionOptions(srdf=str(path))
        with pytest.raises(MherError, match=r'a\.srdf'):
            pairs_of(dataclasses.replace(robot, collision=options))
