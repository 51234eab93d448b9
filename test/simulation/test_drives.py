"""The drives of every arm of this package follow their set-points, judged by joint positions."""

import dataclasses

from mher_ros.robots.robot import arm_names, load_robot, Span
from mher_ros.simulation.drives import POSITION_GAIN
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.urdf_plant import UrdfPlant
import numpy as np
import pytest

SHARE = 0.4  # of the velocity limit at which a joint moves
WAY = 0.2  # how far it moves [rad]
REST = 100  # periods after the motion


def paths(arm, joint, start, speed):
    """Return set-points and positions (t, k) while a joint moves towards the middle, and rests."""
    moving = round(WAY / speed / arm.period)
    ends = start.copy()
    ends[joint] -= WAY if start[joint] > 0.0 else -WAY
    shares = np.minimum(np.arange(1, moving + REST + 1) / moving, 1.0)
    asked = start + shares[:, None] * (ends - start)
    places = [arm.joint_names.index(name) for name in arm.command_names]
    found = []
    for one in asked:
        arm.advance(one)
        found.append(arm.joint_state()[0][places])
    return asked, np.array(found)


@pytest.mark.parametrize('name', arm_names())
def test_each_joint_follows_late_but_exactly_and_moves_no_other_one(name):
    robot = load_robot(name)
    arm = simulated_robot(robot)
    start = np.array([robot.home[joint] for joint in arm.command_names])
    for joint, limit in enumerate(arm._arm.velocity_limits):
        arm.reset()
        speed = SHARE * min(limit, 1.5)
        asked, found = paths(arm, joint, start, speed)
        # A drive is late by its position loop, and by its acceleration at the start.
        late = speed / POSITION_GAIN
        others = np.arange(len(start)) != joint
        assert np.abs(asked - found)[:, joint].max() < 1.5 * late
        assert np.abs(asked - found)[-1].max() < 1e-3
        assert np.abs(found - start)[:, others].max() < 0.01
        beyond = (found - asked[-1])[:, joint] * np.sign(asked[-1] - start)[joint]
        assert beyond.max() < 2e-3


def test_small_drives_have_less_inertia_and_friction_and_usual_ones_do_not():
    usual = UrdfPlant(load_robot('panda')).model
    np.testing.assert_array_equal(usual.dof_armature, 0.1)
    np.testing.assert_array_equal(usual.dof_damping, 1.0)
    robot = load_robot('panda')
    limits = {'panda_joint7': Span(effort=2.0)}
    small = UrdfPlant(dataclasses.replace(robot, joint_limits=limits)).model
    assert small.jnt_actfrcrange[6].tolist() == [-2.0, 2.0]
    np.testing.assert_array_equal(small.jnt_actfrcrange[:6], usual.jnt_actfrcrange[:6])
    assert 0.02 < small.dof_armature[6] < 0.04
    assert 0.2 < small.dof_damping[6] < 0.4
    np.testing.assert_array_equal(small.dof_armature[:6], 0.1)
