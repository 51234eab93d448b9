"""``mher robot check``, as a person meets it on the first day with an arm."""

import json
import os

from foreign_arms import UR10_HOME, write_arm
from mher_ros.cli import main
from mher_ros.files import share_folder
import pytest

MJCF = """<mujoco><worldbody><body name="base"><body name="one"><joint name="a" axis="0 0 1"
range="-1 1" limited="true"/><geom size="0.1"/><body name="two" pos="0.3 0 0"><joint name="b"
axis="0 0 1" range="-1 1" limited="true"/><geom size="0.1"/><body name="tool" pos="0.3 0 0"/>
</body></body></body></worldbody></mujoco>"""


def test_a_good_file_is_said_to_be_good_and_drawn(capsys, tmp_path):
    origin = 'workspace: {origin: [0.7, 0.16, 0.5]}\n'
    path = write_arm(tmp_path, 'ur10', UR10_HOME + origin)
    picture = tmp_path / 'ur10.png'
    assert main(['robot', 'check', str(path), '--picture', str(picture)]) == 0
    told = capsys.readouterr().out
    assert 'all of the workspace is reached' in told
    assert told.count(' yes ') == 9
    assert 'problem' not in told
    assert picture.stat().st_size > 10_000


def test_what_should_be_changed_is_said_with_a_proposal_and_in_the_exit_code(capsys, tmp_path):
    path = write_arm(tmp_path, 'ur10', UR10_HOME)
    assert main(['robot', 'check', str(path)]) == 1
    told = capsys.readouterr().out
    assert 'problem: workspace.origin is expected' in told
    assert '\nworkspace:\n  origin: [' in told


def test_the_workspace_of_a_policy_counts_where_one_is_named(capsys, tmp_path):
    from proportional_policy import write_proportional_policy

    policy = write_proportional_policy(tmp_path / 'policy.onnx', 'sawyer_reach')
    assert main(['robot', 'check', 'ur5e', '--policy', str(policy)]) in (0, 1)
    assert '(0.250, 0.000, 0.225)' in capsys.readouterr().out  # 0.4 x 0.2 x 0.25 m about 0.45, ...


def test_a_model_that_is_not_there_is_an_error_in_a_sentence(capsys, tmp_path):
    path = tmp_path / 'arm.yaml'
    path.write_text('model: robot_description\ntool_frame: t\njoints: [a]\noutput: none\n')
    assert main(['robot', 'check', str(path)]) == 2
    assert '--urdf' in capsys.readouterr().err


def test_a_model_that_cannot_be_read_is_an_error_in_a_sentence(capsys, tmp_path):
    model = tmp_path / 'arm.urdf'
    model.write_bytes(b'<robot name="\xff\xfe"/>')
    assert main(['robot', 'check', 'ur5e', '--urdf', str(model)]) == 2
    assert 'arm.urdf' in capsys.readouterr().err
    os.mkfifo(tmp_path / 'pipe')
    assert main(['robot', 'check', 'ur5e', '--urdf', str(tmp_path / 'pipe')]) == 2
    assert 'a regular file is expected' in capsys.readouterr().err


def test_an_arm_that_cannot_be_simulated_is_said_to_be_so(capsys, tmp_path):
    (tmp_path / 'arm.xml').write_text(MJCF)
    path = tmp_path / 'arm.yaml'
    path.write_text(
        'model: arm.xml\ntool_frame: tool\njoints: [a, b]\noutput: joint_position\n'
        'joint_limits: {a: {velocity: 1}, b: {velocity: 1}}\n'
    )
    main(['robot', 'check', str(path)])
    assert 'simulated: none: ' in capsys.readouterr().out


def test_stops_of_the_arm_are_simulated_on_request(capsys, tmp_path):
    path = tmp_path / 'near.yaml'
    path.write_text(
        (share_folder() / 'config' / 'robots' / 'ur5e.yaml').read_text()
        + 'collision: {clearance: 0.001}\n'
    )
    assert main(['robot', 'check', str(path), '--stopping', '--json']) == 1
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert result['problems'] == []
    stopping = result['stopping']
    assert any('collision.clearance' in problem for problem in stopping['problems'])
    assert stopping['proposal']['clearance'] > 0.001
    rows = stopping['rows']
    assert {(row['speed'], row['delay']) for row in rows} == {
        (speed, delay) for speed in (0.125, 0.25) for delay in (0.0, 0.05, 0.15)
    }
    assert all(row['worst']['deviation'] > 0.0 for row in rows)
    assert f'{len(rows)} of {len(rows)}' in told.err
    with pytest.raises(SystemExit) as ended:
        main(['robot', 'check', 'ur5e', '--stopping', '-1'])
    assert ended.value.code == 2


def test_a_check_is_printed_for_programs_on_request(capsys):
    assert main(['robot', 'check', 'panda', '--json']) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result['robot'], result['problems'], result['proposal']) == ('panda', [], None)
    assert len(result['places']) == 9 and all(place['reached'] for place in result['places'])
    assert 'stopping' not in result
