"""A run's folder as it is shown: what is read, what is read again, what is refused."""

from mher_ros.files import EPISODES
from mher_ros.learning.run.session import start_training
from mher_ros.options import OptionError
from mher_ros.view.run_record import read_curve, RecordError, RunRecord
import numpy as np
import pytest
from recorded_runs import HEAD, RecordedRun
from tiny_runs import Run, tiny_config


@pytest.fixture
def run(tmp_path):
    """Return a run with a curve and two episodes."""
    run = RecordedRun(tmp_path / 'run')
    run.write_curve((40, 0.25, 3.0), (80, 0.5, 2.0))
    run.add_episodes(2)
    return run


def test_a_real_run_is_read_whole(tmp_path):
    start_training(tmp_path / 'run', tiny_config())
    record = RunRecord(tmp_path / 'run')
    rows = Run(tmp_path / 'run').rows()
    assert len(rows) == len(record.curve) > 1
    assert record.curve[-1].tolist() == [
        float(rows[-1][name]) for name in ('env_steps', 'success_rate', 'final_error')
    ]
    assert [episode.index for episode in record.episodes] == list(range(8))
    assert len(record.episodes[-1].goal_offsets) > 0
    assert record.problem == ''


def test_the_task_is_that_of_the_run_with_its_options(tmp_path):
    run = RecordedRun(tmp_path, **{'task.box': '2.0', 'task.threshold': '0.5'})
    record = RunRecord(run.folder)
    assert record.interface.success_threshold == 0.5
    assert record.interface.goal_high == (2.0, 2.0)
    assert 'upper="2.0"' in record.urdf
    assert set(record.rest) == {'x', 'y'}


def test_the_arm_of_a_run_of_reach_is_its_robot(tmp_path):
    run = RecordedRun(tmp_path, task='reach', **{'task.robot': 'ur5e'})
    record = RunRecord(run.folder)
    assert record.interface.task == 'reach'
    assert 'wrist_3_joint' in record.urdf and 'wrist_3_joint' in record.rest


def test_a_run_that_has_just_begun_has_nothing_to_show_yet(tmp_path):
    record = RunRecord(RecordedRun(tmp_path).folder)
    assert record.curve.shape == (0, 3)
    assert record.episodes == []


def test_only_what_has_changed_is_read_again(run):
    record = RunRecord(run.folder)
    episodes = record.episodes
    assert not record.refresh()
    run.write_curve((40, 0.25, 3.0), (80, 0.5, 2.0), (120, 1.0, 0.1))
    assert record.refresh()
    assert len(record.curve) == 3
    assert record.episodes is episodes
    run.add_episodes(1)
    assert record.refresh()
    assert len(record.episodes) == 3
    assert not record.refresh()


def test_a_file_that_breaks_under_way_is_told_once_and_what_was_read_stays(run):
    record = RunRecord(run.folder)
    (run.folder / EPISODES).write_bytes(b'PK nothing')
    assert record.refresh()
    assert str(run.folder / EPISODES) in record.problem
    assert len(record.episodes) == 2
    assert not record.refresh()
    run.write_curve((40, 0.25, 3.0))
    assert record.refresh()
    assert str(run.folder / EPISODES) in record.problem
    run.add_episodes(1)
    assert record.refresh()
    assert record.problem == ''
    assert len(record.episodes) == 3


def test_files_that_are_removed_under_way_are_not_missed(run):
    record = RunRecord(run.folder)
    (run.folder / EPISODES).unlink()
    (run.folder / 'progress.csv').unlink()
    assert not record.refresh()
    assert (len(record.curve), len(record.episodes)) == (2, 2)


@pytest.mark.parametrize('name', ['progress.csv', EPISODES])
def test_a_file_that_is_broken_from_the_first_is_refused(run, name):
    (run.folder / name).write_bytes(b'\x00\xff')
    with pytest.raises(RecordError, match=name):
        RunRecord(run.folder)


def test_a_folder_that_holds_no_run_is_refused(tmp_path):
    with pytest.raises(OptionError, match='holds no run'):
        RunRecord(tmp_path)


def test_episodes_of_another_task_are_refused(run, tmp_path):
    other = RecordedRun(tmp_path / 'other', 'fetch_reach')
    other.add_episodes(1)
    (other.folder / EPISODES).replace(run.folder / EPISODES)
    with pytest.raises(RecordError, match='2 entries, got 3'):
        RunRecord(run.folder)


def test_rows_without_a_figure_are_left_out_of_the_curve(tmp_path):
    path = tmp_path / 'progress.csv'
    path.write_text(HEAD + '40,0.5,,1.0\n80,0.75,2.0,1.0\n120,1.0,nan,1.0\n160,1.0')
    np.testing.assert_array_equal(read_curve(path), [[80.0, 0.75, 2.0]])


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'no column env_steps, final_error, success_rate'),
        ('env_steps,success_rate\n1,2\n', 'no column final_error'),
        (HEAD + '40,much,1.0,1.0\n', 'much'),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path, text, words):
    path = tmp_path / 'progress.csv'
    path.write_text(text)
    with pytest.raises(RecordError, match=words):
        read_curve(path)
