"""The benchmarks of a deployed policy, as their commands tell them."""

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


@pytest.mark.parametrize('robot', ['fetch', 'ur5e'])
def test_an_arm_is_sent_to_goals_and_judged_by_where_it_went(world, policy, robot):
    result, told = bench(world, policy, 'deploy', '--robot', robot, '--goals', '3', '--seed', '3')
    assert result['reached'] == result['goals'] == 3
    assert 0.0 < result['median_error_mm'] <= result['p95_error_mm'] < 50.0
    assert 0.0 <= result['motion_at_goal_mm'] < 5.0
    assert 0.0 <= result['median_seconds'] < 8.0
    assert 'goal 3 of 3' in told


def test_answers_are_timed_against_those_of_a_node_that_does_nothing_else(world, policy):
    result, told = bench(world, policy, 'latency', '--seconds', '6')
    for output, key in (('twist', 'ratio'), ('joint_trajectory', 'joint_ratio')):
        one = result['outputs'][output]
        assert result[key] == one['ratio'] == pytest.approx(one['policy_us'] / one['echo_us'])
        assert 10.0 < one['policy_us'] and 10.0 < one['echo_us']
        assert one['states'] == 600
    assert '5 of 9 s' in told
