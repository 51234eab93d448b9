"""The benchmark without calibration, with few goals, and its lines on arms that are wrong."""

from mher_ros.bench import calibration
from mher_ros.bench.uncalibrated_lines import final_errors, NominalLine, VisualServo
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.tracker import TrackerOptions
import pytest


def errors(line, **wrong):
    options = ReachOptions(
        50, 0.05, robot='ur5e', tool_pose='topic', tracker=TrackerOptions(**wrong)
    )
    return final_errors(Reach(options), line, range(3))


def test_a_line_of_the_nominal_model_needs_a_right_model():
    assert errors(NominalLine).max() < 0.002
    assert errors(NominalLine, tool_offset_error=(0.0, 0.06, 0.08)).min() > 0.05
    assert errors(NominalLine, camera_turn=(0.0, 0.0, 90.0)).max() > 0.05


def test_a_line_as_seen_forgives_the_tool_and_links_but_not_a_quarter_turn():
    wrong = {'tool_offset_error': (0.0, 0.06, 0.08), 'link_error': 0.03}
    assert errors(VisualServo, camera_turn=(0.0, 0.0, 30.0), **wrong).max() < 0.05
    assert errors(VisualServo, camera_turn=(0.0, 0.0, 150.0), **wrong).max() > 0.05


@pytest.mark.slow
def test_the_table_has_the_policy_and_both_lines(tmp_path):
    found = calibration.measure('ur5e', [90], [1], 200, 2, folder=tmp_path, code='test')
    at = found.figures['turns']['90']
    assert set(at) == {'policy', 'straight_line', 'visual_servo'}
    assert len(found.samples['90']['final_errors']['visual_servo']) == 2
    assert len(found.tables[0].rows) == 3
    assert not found.figures['interrupted']
