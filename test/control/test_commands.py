import functools

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.control.commands import CommandEncoding
from mher_ros.tasks import make, TASKS
import numpy as np
import pytest

PARTS = st.lists(st.floats(-1.0, 1.0, width=32), min_size=4, max_size=4)


@functools.cache
def encoding_of(task):
    interface = make(task).interface
    return interface, CommandEncoding(interface)


@pytest.mark.parametrize('task', TASKS)
@settings(deadline=None)
@given(parts=PARTS)
def test_an_action_comes_back_from_its_command_to_the_bit(task, parts):
    interface, encoding = encoding_of(task)
    action = np.array(parts[: len(interface.action)], np.float32)
    action[[field.scale == 0.0 for field in interface.action]] = 0.0
    back = encoding.action(encoding.command(action))
    assert back.dtype == np.float32
    assert back.tobytes() == action.tobytes()


def test_a_tool_is_commanded_by_its_velocity():
    _, encoding = encoding_of('fetch_reach')
    assert encoding.is_twist
    assert encoding.names == ('tool_target_x', 'tool_target_y', 'tool_target_z')
    # 0.05 m in 0.04 s
    command = encoding.command(np.array((1.0, -1.0, 0.5, 1.0), np.float32))
    np.testing.assert_allclose(command, (1.25, -1.25, 0.625), rtol=1e-7)
    _, encoding = encoding_of('sawyer_reach')
    # 0.02 m in 0.1 s
    command = encoding.command(np.array((1.0, -0.5, 0.0), np.float32))
    np.testing.assert_allclose(command, (0.2, -0.1, 0.0), rtol=1e-7)


def test_joints_are_commanded_by_their_torques():
    _, encoding = encoding_of('reacher')
    assert not encoding.is_twist
    assert encoding.names == ('torque_joint0', 'torque_joint1')
    command = encoding.command(np.array((1.0, -0.25), np.float32))
    np.testing.assert_array_equal(command, (200.0, -50.0))


def test_an_entry_that_the_arm_ignores_asks_for_nothing():
    _, encoding = encoding_of('fetch_reach')
    calm, wild = np.array((0.1, 0.2, 0.3, 0.0)), np.array((0.1, 0.2, 0.3, 1.0))
    np.testing.assert_array_equal(encoding.command(calm), encoding.command(wild))
    assert encoding.action(np.zeros(3))[3] == 0.0


def test_a_command_beyond_the_fastest_action_is_told_as_such():
    _, encoding = encoding_of('fetch_reach')
    assert encoding.action(np.array((2.5, 0.0, -12.5)))[:3] == pytest.approx((2.0, 0.0, -10.0))
