"""The benchmark of an arm behind topics."""

import json
import os
import subprocess
import sys

from mher_ros.bench.bridge import BARE, BRIDGED, DIRECT, figures_of
import numpy as np
import pytest

pytestmark = pytest.mark.ros


def test_figures_compare_medians_and_say_what_a_bridge_could_reach():
    seconds = {BRIDGED: np.full(20, 5e-4), DIRECT: np.full(20, 3e-4), BARE: np.full(20, 1e-4)}
    seconds[BRIDGED][:2], seconds[BRIDGED][-2:] = 9e-4, 6e-4
    figures = figures_of(seconds)
    assert figures['ratio'] == pytest.approx(0.6)
    assert figures['ratio_vs_round_trip'] == pytest.approx(0.2)
    assert figures['ratio_possible'] == pytest.approx(0.75)
    assert figures['overhead_microseconds'] == pytest.approx(200.0)
    assert figures['overhead_beyond_round_trip_microseconds'] == pytest.approx(100.0)


@pytest.mark.slow
def test_the_command_measures_all_three_and_says_what_came_of_it(world, tmp_path):
    command = [sys.executable, '-m', 'mher_ros', 'bench', 'bridge', '--steps', '2000', '--json']
    done = subprocess.run(
        [*command, '--out', tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, 'ROS_DOMAIN_ID': str(world.domain)},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result['steps'] == 2000
    rate, alone, bare = (
        result[f'{name}_per_second{where}']
        for name, where in (('steps', ''), ('steps', '_in_process'), ('round_trips', ''))
    )
    assert result['ratio'] == pytest.approx(rate / alone)
    assert result['ratio_vs_round_trip'] == pytest.approx(rate / bare)
    assert rate < bare
    (table,) = result['tables']
    assert [row[0] for row in table['rows'][:3]] == [BRIDGED, DIRECT, BARE]
    assert table['header'][-1] == 'over one process'
    assert table['rows'][1][-1] == '1.00'
    assert '2000 of 2000 steps' in done.stderr
