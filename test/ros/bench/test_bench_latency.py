"""The baselines of policy_node's latency, and the table of response times."""

import sys
import time

from mher_ros.bench.latency import measure, result_of
from mher_ros.policy.contract import PolicyFileError
from mher_ros.robots.robot import load_robot
import numpy as np
import pytest

pytestmark = pytest.mark.ros


@pytest.fixture
def answer_of(world, tmp_path):
    """Return a function that publishes to an echo_node, and returns its answer and times."""
    from sensor_msgs.msg import JointState

    def ask(raw, kind, topic, **parameters):
        path = tmp_path / 'responses.npy'
        given = [word for key, value in parameters.items() for word in ('-p', f'{key}:={value}')]
        node = world.start(
            sys.executable, '-m', 'mher_ros.bench.echo_node', path, '--ros-args', *given
        )
        peer = world.peer()
        commands = peer.listen(kind, topic)
        states = peer.talk(JointState, 'joint_states')

        def answered():
            states.publish(raw)  # again: nothing makes sure that one arrives
            return commands.messages

        peer.wait_until(answered, 'an answer')
        assert node.stop() == 0
        return commands.messages[0], np.load(path)

    return ask


UNREADABLE = bytes((0, 1, 0, 0, *range(200, 216)))


def test_the_echo_answers_with_a_twist_of_now_and_reads_no_state(answer_of):
    from geometry_msgs.msg import TwistStamped

    before = time.time_ns()
    answer, notes = answer_of(UNREADABLE, TwistStamped, 'twist_command', output='twist')
    stamp = answer.header.stamp.sec * 10**9 + answer.header.stamp.nanosec
    # The first answer may have come before the subscription.
    assert any(before < received < stamp < published for received, published in notes)
    assert answer.header.frame_id == 'world'


def test_the_echo_answers_with_a_trajectory_of_all_joints_and_reads_no_state(answer_of):
    from trajectory_msgs.msg import JointTrajectory

    answer, _ = answer_of(
        UNREADABLE, JointTrajectory, 'joint_trajectory', output='joint_trajectory'
    )
    assert tuple(answer.joint_names) == load_robot('fetch').joints
    assert len(answer.points[0].positions) == 7
    assert (answer.header.stamp.sec, answer.header.stamp.nanosec) == (0, 0)


def test_the_plain_one_reads_the_state(answer_of):
    from geometry_msgs.msg import TwistStamped
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState

    state = serialize_message(JointState(position=[0.1, 0.2, 0.3, 0.4]))
    answer, _ = answer_of(state, TwistStamped, 'twist_command', output='twist', plain='true')
    linear = answer.twist.linear
    assert (linear.x, linear.y, linear.z) == (0.1, 0.2, 0.3)


@pytest.mark.parametrize('content', [None, b'no policy'], ids=['missing', 'broken'])
def test_a_policy_that_is_none_is_refused_before_any_node_starts(tmp_path, content):
    path = tmp_path / 'policy.onnx'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PolicyFileError, match=r'policy\.onnx'):
        measure(1, [100], seed=0, policy=str(path))


def condition(output, rate, load, p999=None):
    """Return figures as of a policy_node that takes 1.5 times as long as the echo."""
    times = {'median_us': 90.0, 'p99_us': 150.0, 'p999_us': p999, 'answered': 1.0, 'missed': 2}
    return {
        'ratio': 1.5,
        'ratio_vs_rclpy': 0.75 if rate == 100 else None,
        'policy': times,
        'echo': times | {'median_us': 60.0},
        'output': output,
        'rate': rate,
        'load': load,
        'states': 1000,
    }


def test_the_ratio_is_that_at_100_hz_without_load():
    conditions = [
        condition(output, 100, load) for output in ('twist', 'joint_trajectory') for load in (0, 1)
    ]
    conditions[0]['ratio'] = 1.25
    figures = result_of(conditions, {}, 10).figures
    assert (figures['ratio'], figures['ratio_vs_rclpy']) == (1.25, 0.75)


@pytest.mark.parametrize(('rate', 'load'), [(100, True), (25, False)])
def test_a_ratio_that_was_not_measured_is_none(rate, load):
    conditions = [condition(output, rate, load) for output in ('twist', 'joint_trajectory')]
    figures = result_of(conditions, {}, 10).figures
    assert (figures['ratio'], figures['ratio_vs_rclpy']) == (None, None)


def test_a_figure_that_means_nothing_is_a_dash():
    conditions = [
        condition('twist', 25, False),
        condition('joint_trajectory', 25, False, p999=200.0),
    ]
    found = result_of(conditions, {}, 10)
    (table,) = found.tables
    assert table.header[-2:] == ('over plain rclpy', 'over the echo')
    times = '90', '150', '-', '1.000', '2', '60', '150', '-', '1.000', '2'
    assert table.rows[0] == ('twist, 25', *times, '1000', '-', '1.50')
    assert table.rows[1][3] == '200'
    assert '5000' in table.explained
