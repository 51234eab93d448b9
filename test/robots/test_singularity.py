"""What the section `singularity` of a robot file may say, and the condition number."""

import dataclasses
import math

from mher_ros.robots.arm_model import condition_number
from mher_ros.robots.robot import load_robot, RobotError
from mher_ros.robots.singularity import SingularityOptions
import numpy as np
import pytest
import yaml

LEAST = {'model': 'a.urdf', 'tool_frame': 'tip', 'joints': ['elbow'], 'output': 'joint_position'}


def read(folder, **section):
    path = folder / 'mine.yaml'
    path.write_text(yaml.safe_dump({**LEAST, 'singularity': section}))
    return load_robot(path).singularity


def test_the_section_is_read_and_has_defaults(tmp_path):
    assert read(tmp_path) == SingularityOptions('slow', 30.0, 60.0)
    given = {'action': 'stop', 'slow_at': 10.0, 'stop_at': 12.5}
    assert dataclasses.asdict(read(tmp_path, **given)) == given


@pytest.mark.parametrize(
    ('section', 'key'),
    [
        ({'action': 'ignore'}, 'singularity.action'),
        ({'slow_at': 0.5}, 'singularity.slow_at'),
        ({'slow_at': math.nan}, 'singularity.slow_at'),
        ({'slow_at': 80.0}, 'singularity.slow_at'),
        ({'stop_at': 30.0}, 'singularity.stop_at'),
        ({'stop': 30.0}, 'singularity.stop'),
    ],
)
def test_what_is_wrong_is_named(tmp_path, section, key):
    with pytest.raises(RobotError, match=key):
        read(tmp_path, **section)


def test_rotations_count_as_0_3_m_and_only_from_six_joints_on():
    rows = np.diag([1.0, 1.0, 0.5, 1.0, 1.0, 1.0])
    assert condition_number(rows) == pytest.approx(1.0 / 0.3)
    assert condition_number(rows[:, :5]) == pytest.approx(2.0)
    assert condition_number(np.zeros((6, 6))) == math.inf
