"""What motion the actions of a policy ask for."""

import dataclasses

from mher_ros.control.action_decoder import ActionDecoder
from mher_ros.control.fit import FitError
from mher_ros.control.motion import JointVelocities, ToolVelocity
from mher_ros.interface import Field
from mher_ros.tasks import make
import numpy as np
import pytest


def test_a_displacement_of_the_tool_is_its_velocity_with_the_response_of_training():
    # 50 mm in 0.04 s, of which a tool has made 0.62 by then; the arm's metre is half as long.
    motion = ActionDecoder(make('fetch_reach').interface, 0.5).decode(np.array((1, 0, -1, 1.0)))
    assert isinstance(motion, ToolVelocity)
    np.testing.assert_allclose(motion.value, (0.3875, 0.0, -0.3875))


def test_a_displacement_of_the_target_is_made_in_full():
    interface = make('sawyer_reach').interface
    motion = ActionDecoder(interface).decode(np.array((0.5, 0.0, 0.0)))
    expected = 0.5 * interface.action[0].scale / interface.control_period
    np.testing.assert_allclose(motion.value, (expected, 0.0, 0.0))


def test_displacements_of_joints_are_their_velocities():
    interface = dataclasses.replace(
        make('fetch_reach').interface,
        action_meaning='joint_displacement',
        action=(Field('shoulder', 'rad', scale=0.02), Field('elbow', 'rad', scale=0.04)),
    )
    motion = ActionDecoder(interface).decode(np.array((1.0, -0.5)))
    assert isinstance(motion, JointVelocities)
    np.testing.assert_allclose(motion.values, (0.5, -0.5))


@pytest.mark.parametrize('task', ['point2d_large', 'reacher'])
def test_actions_that_mean_nothing_to_an_arm_are_refused(task):
    interface = make(task).interface
    with pytest.raises(FitError, match=interface.action_meaning):
        ActionDecoder(interface)


def test_an_action_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match='finite'):
        ActionDecoder(make('fetch_reach').interface).decode(np.array((np.nan, 0, 0, 0)))
