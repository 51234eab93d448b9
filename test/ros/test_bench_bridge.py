"""What it costs to have the arm behind topics, as the command tells it."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.ros
def test_the_command_measures_both_and_says_what_came_of_it(world):
    done = subprocess.run(
        [sys.executable, '-m', 'mher_ros', 'bench', 'bridge', '--steps', '1', '--json'],
        capture_output=True,
        text=True,
        env={**os.environ, 'ROS_DOMAIN_ID': str(world.domain)},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result['steps'] == 4000  # twenty rounds, or growth would mean nothing
    assert result['ratio'] == pytest.approx(
        result['steps_per_second'] / result['steps_per_second_in_process']
    )
    assert 0.0 < result['ratio']
    assert set(result['memory_growth_mb']) == {'env', 'sim_node'}
    assert '4000 of 4000 steps' in done.stderr
