"""Stops of simulated arms, judged by the poses of their links in MuJoCo."""

import dataclasses

from mher_ros.errors import MherError
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.stopping import stopping_lines, StoppingTest
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.tasks import make
import numpy as np
import pytest

INTERFACE = make('fetch_reach').interface


@pytest.fixture(scope='module')
def stops():
    """Return the stops of a UR5e by speed."""
    test = StoppingTest(load_robot('ur5e'), INTERFACE)
    return {speed: list(test.stops(speed)) for speed in (0.1, 0.2)}


def test_a_faster_arm_needs_longer_to_stop(stops):
    slow, fast = (np.median(stops[speed], axis=0) for speed in (0.1, 0.2))
    assert (fast > slow).all()
    for speed, found in stops.items():
        assert len(found) >= 4
        for stop in found:
            assert 0.9 * speed <= stop.speed <= speed
            # No shorter than with the acceleration limit of 1 m/s^2, from this speed to rest.
            assert stop.tool >= 0.45 * stop.speed**2
            assert stop.time >= 0.9 * stop.speed
            assert stop.link >= 0.99 * stop.tool


def test_an_arm_with_less_acceleration_needs_longer_to_stop(stops):
    robot = dataclasses.replace(load_robot('ur5e'), acceleration=0.3)
    test = StoppingTest(robot, INTERFACE)
    gentle = np.median(list(test.stops(0.2)), axis=0)
    usual = np.median(stops[0.2], axis=0)
    assert gentle[1] > usual[1] and gentle[2] > usual[2]


@pytest.mark.parametrize('payload', [0.0, 3.0])
@pytest.mark.parametrize('make_plant', [
    lambda mass: UrdfPlant(load_robot('ur5e'), mass),
    lambda mass: JointPlant('fetch_reach', payload=mass),
    lambda mass: JointPlant('sawyer_reach', payload=mass),
])  # fmt: skip
def test_a_payload_that_the_drives_do_not_know_pulls_the_tool_down(make_plant, payload):
    empty, loaded = make_plant(0.0), make_plant(payload)
    for plant in (empty, loaded):
        for _ in range(100):
            plant.advance(None)
    sag = empty.tool_pose()[0][2] - loaded.tool_pose()[0][2]
    assert loaded.model.body_mass.sum() - empty.model.body_mass.sum() == pytest.approx(payload)
    assert sag > 1e-4 if payload else sag == 0.0


def test_people_are_told_the_worst_of_each_speed():
    lines = list(stopping_lines(load_robot('ur5e'), INTERFACE, 0.0))
    assert len(lines) == 3
    assert all('8 stops' in line for line in lines[1:])


URDF = """
<robot name="arm">
  <link name="base"/>
  <link name="a">{}</link>
  <link name="tool"/>
  <joint name="one" type="revolute">
    <parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="2" effort="{effort}"/>
  </joint>
  <joint name="two" type="revolute">
    <parent link="a"/><child link="tool"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="2" effort="9"/>
  </joint>
</robot>
"""
INERTIAL = (
    '<inertial><mass value="{}"/><inertia ixx="{}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    '</inertial>'
)


@pytest.mark.parametrize(
    ('link', 'effort'),
    [
        (INERTIAL.format('abc', 1), 9),
        (INERTIAL.format('nan', 1), 9),
        (INERTIAL.format(1, 100), 9),
        ('<collision><geometry><cylinder radius="0" length="0"/></geometry></collision>', 9),
        ('', 'much'),
        ('', 'nan'),
    ],
)
def test_a_urdf_that_cannot_be_simulated_is_refused_with_the_reason(tmp_path, link, effort):
    (tmp_path / 'arm.urdf').write_text(URDF.format(link, effort=effort))
    path = tmp_path / 'arm.yaml'
    path.write_text(
        'model: arm.urdf\nbase_frame: base\ntool_frame: tool\njoints: [one, two]\n'
        'output: joint_position\nworkspace: {origin: [0.3, 0.0, 0.0]}\n'
    )
    with pytest.raises(MherError, match='masses'):
        StoppingTest(load_robot(path), INTERFACE)
