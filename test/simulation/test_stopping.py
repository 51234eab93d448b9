"""Stops of simulated arms, judged by the poses of their links in MuJoCo."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.errors import MherError
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import CollisionOptions
from mher_ros.simulation.drives import POSITION_GAIN
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.stopping import (
    ArmPoints,
    Load,
    loads_with,
    path_deviation,
    Stop,
    stop_rows,
    StoppingReport,
    StoppingTest,
    StopRow,
)
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.tasks import make
import mujoco
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
    assert (fast[:4] > slow[:4]).all()
    for speed, found in stops.items():
        assert len(found) >= 4
        for stop in found:
            assert 0.9 * speed <= stop.speed <= speed
            # No shorter than with the acceleration limit of 1 m/s^2, from this speed to rest.
            assert stop.tool >= 0.45 * stop.speed**2
            assert stop.time >= 0.9 * stop.speed
            assert stop.arm >= 0.99 * stop.tool


def test_an_arm_with_less_acceleration_needs_longer_to_stop(stops):
    robot = dataclasses.replace(load_robot('ur5e'), acceleration=0.3)
    test = StoppingTest(robot, INTERFACE)
    gentle = np.median(list(test.stops(0.2)), axis=0)
    usual = np.median(stops[0.2], axis=0)
    assert gentle[1] > usual[1] and gentle[2] > usual[2]


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
def test_an_arm_with_a_delay_moves_on_for_that_time(output):
    robot = dataclasses.replace(load_robot('ur5e'), output=output)
    prompt, late = (
        np.median(list(StoppingTest(robot, INTERFACE, Load(delay=delay)).stops(0.15)), axis=0)
        for delay in (0.0, 0.15)
    )
    assert late[2] - prompt[2] == pytest.approx(0.15 * prompt[0], rel=0.15)
    assert Stop(*late).follows_after - Stop(*prompt).follows_after == pytest.approx(0.15, abs=0.02)
    assert late[1] - prompt[1] == pytest.approx(0.15, abs=0.05)


@settings(max_examples=3, deadline=None)
@given(st.floats(0.05, 0.25), st.floats(0.4, 1.5), st.sampled_from((0.0, 0.05, 0.15)))
def test_an_arm_stops_within_its_reaction_its_braking_and_its_deviation(
    speed, acceleration, delay
):
    robot = dataclasses.replace(load_robot('ur5e'), acceleration=acceleration)
    test = StoppingTest(robot, INTERFACE, Load(delay=delay))
    reaction = delay + 1.0 / POSITION_GAIN + 2.0 * test.world.period
    found = list(test.stops(speed))
    assert found
    for stop in found:
        # The filter brakes with 0.9 of the acceleration, of which up to 0.6 are for curvature.
        braking = stop.speed**2 / (2.0 * 0.3 * acceleration)
        assert stop.tool <= stop.speed * reaction + braking + stop.deviation


def test_points_of_the_arm_are_where_its_plant_is():
    plant = UrdfPlant(load_robot('ur5e'))
    joints = plant.data.qpos + 0.3
    found = ArmPoints(plant.model).at(joints)
    plant.data.qpos[:] = joints
    mujoco.mj_kinematics(plant.model, plant.data)
    origins = plant.data.xpos[plant.model.body_weldid != 0]
    assert np.allclose(found[: len(origins)], origins)
    corners = found[len(origins) :].reshape(-1, 8, 3)
    assert len(corners) >= 6  # one shape or more of each link
    moving = plant.model.body_weldid[plant.model.geom_bodyid] != 0
    moving &= plant.model.geom_contype > 0  # without what is only shown
    for one, (geom, place) in zip(
        corners, enumerate(plant.data.geom_xpos[moving].tolist()), strict=True
    ):
        radius = plant.model.geom_rbound[np.flatnonzero(moving)[geom]]
        assert np.linalg.norm(one - place, axis=1).max() <= 2.0 * radius


@pytest.mark.parametrize('ahead', [0.0, 0.005, 0.013])
def test_a_deviation_is_the_distance_from_the_path_not_from_its_latest_point(ahead):
    path = np.zeros((11, 2, 3))
    path[:, :, 0] = np.linspace(0.0, 0.1, 11)[:, None]  # two points on a line
    behind = path[3:5] + (ahead / 2.0, 0.0, 0.0)
    assert path_deviation(behind, path) < 1e-9
    behind[1, 1, 2] += 0.004
    assert path_deviation(behind, path) == pytest.approx(0.004)
    beyond = path[-1:] + (ahead, 0.0, 0.0)
    assert path_deviation(beyond, path) == pytest.approx(ahead)


def test_an_arm_that_cannot_carry_its_payload_is_reported():
    rows = list(stop_rows(load_robot('ur5e'), INTERFACE, (Load(payload=60.0),)))
    assert all(row.worst is None or row.worst.time >= 10.0 for row in rows)
    report = StoppingReport(load_robot('ur5e'), rows)
    assert any('60 kg' in problem for problem in report.problems)
    assert report.reaction_time == load_robot('ur5e').reaction_time


def report(deviation=0.012, follows_after=0.12, **robot):
    rows = [
        StopRow(0.25, load, 8, Stop(0.24, 0.7, 0.06, 0.07, follows_after + load.delay, deviation))
        for load in loads_with(0.0)
        if load.force == 1.0
    ]
    weak = Stop(0.24, 3.0, 0.3, 0.3, 2.0, 0.5)
    rows.append(StopRow(0.25, Load(force=0.5), 8, weak))
    return StoppingReport(dataclasses.replace(load_robot('ur5e'), **robot), rows)


def test_a_clearance_that_does_not_cover_the_deviation_is_a_problem():
    small = report(collision=CollisionOptions(enabled=True, clearance=0.011))
    assert len(small.problems) == 1 and 'collision.clearance' in small.problems[0]
    assert report(collision=CollisionOptions(enabled=True, clearance=0.013)).problems == ()
    unused = CollisionOptions(enabled=False, clearance=0.011)
    assert report(collision=unused).problems == ()


def test_a_reaction_time_below_that_of_the_drives_is_a_problem():
    options = CollisionOptions(enabled=True, clearance=0.05)
    assert report(collision=options).problems == ()
    short = report(collision=options, reaction_time=0.1)
    assert len(short.problems) == 1 and 'reaction_time' in short.problems[0]


def test_values_are_proposed_that_are_enough_and_never_less_than_now():
    proposed = report()
    assert proposed.clearance == pytest.approx(0.024)
    assert proposed.reaction_time == pytest.approx(0.27)  # with a delay of 0.15 s
    large = report(collision=CollisionOptions(clearance=0.1), reaction_time=0.5)
    assert (large.clearance, large.reaction_time) == (0.1, 0.5)


def test_every_load_is_simulated_from_half_and_from_all_of_the_speed():
    robot = load_robot('ur5e')
    rows = list(stop_rows(robot, INTERFACE, (Load(),)))
    assert [row.speed for row in rows] == [0.5 * robot.speed, robot.speed]
    assert [row.stops for row in rows] == [8, 8]
    assert {load.payload for load in loads_with(2.0)} == {0.0, 2.0}
    assert len({load.delay for load in loads_with(0.0)}) == 3
    assert len({load.force for load in loads_with(0.0)}) == 2


def test_an_arm_that_falls_is_no_stop():
    found = stop_rows(load_robot('panda'), INTERFACE, (Load(20.0, 0.5, 0.05),))
    assert all(row.worst is None or row.worst.time >= 10.0 for row in found)


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
