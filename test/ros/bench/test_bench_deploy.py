"""The commands of the benchmarks of a deployed policy."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.ros]


def bench(world, policy, *arguments):
    done = subprocess.run(
        [sys.executable, '-m', 'mher_ros', 'bench', *arguments, '--policy', policy, '--json'],
        capture_output=True,
        text=True,
        env={**os.environ, 'ROS_DOMAIN_ID': str(world.domain)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_an_arm_is_sent_to_goals_and_judged_by_where_it_went(world, policy):
    result, told = bench(world, policy, 'deploy', '--robot', 'ur5e', '--goals', '2', '--seed', '3')
    assert result['reached'] == result['goals'] == 2
    assert 0.0 < result['median_error_mm'] <= result['p95_error_mm'] < 50.0
    assert 0.0 <= result['motion_at_goal_mm'] < 5.0
    assert 0.0 <= result['median_seconds'] < 8.0
    assert 'goal 2 of 2' in told
    assert result['straight_line']['reached'] == 2
    assert result['straight_line']['median_error_mm'] < 1.0
    assert result['policy']['median_error_mm'] == result['median_error_mm']


def test_answers_are_timed_against_those_of_a_node_that_does_nothing_else(world, policy, tmp_path):
    result, told = bench(
        world, policy, 'latency', '--seconds', '1', '--rates', '100', '--out', str(tmp_path)
    )
    conditions = result['conditions']
    assert [(one['output'], one['rate'], one['load']) for one in conditions] == [
        (output, 100, load) for output in ('twist', 'joint_trajectory') for load in (False, True)
    ]
    met = []
    for one in conditions:
        policy_times, echo_times = one['policy'], one['echo']
        assert one['ratio'] == pytest.approx(policy_times['median_us'] / echo_times['median_us'])
        assert one['ratio_vs_rclpy'] == pytest.approx(
            policy_times['median_us'] / one['rclpy']['median_us']
        )
        samples = result['samples'][f'{one["output"]}, 100{", load" if one["load"] else ""}']
        for kind in ('policy', 'echo', 'rclpy'):
            times = one[kind]
            assert 10.0 < times['median_us'] <= times['p99_us']
            assert times['p999_us'] is None
            answers = sum(samples[f'answers_of_{kind}_by_microseconds'].values())
            met.append(one['states'] - times['missed'])
            assert 0 <= met[-1] <= min(answers, one['states'])
        assert one['states'] == 100
    assert max(met) > 50  # on a machine so busy that most nodes are late, too
    assert result['ratio'] == conditions[0]['ratio']
    assert len(result['tables'][0]['rows']) == len(result['samples']) == len(conditions)
    assert 'joint_trajectory, 100, load: 1 s' in told
