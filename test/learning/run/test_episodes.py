"""Episodes that are kept to be looked at."""

import pickle
import re

from mher_ros.files import EPISODES
from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.learning.run import episodes
from mher_ros.learning.run.episodes import EpisodeRecorder, EpisodesError, read_episodes
from mher_ros.learning.run.progress import Progress
from mher_ros.learning.run.session import plan_run, start_training
from mher_ros.tasks import make
import numpy as np
import pytest
from training_runs import rows, run, stop_after

NAMES = ('base', 'elbow')
STEPS = 2


class Warnings(Progress):
    def __init__(self):
        self.told = []

    def warning(self, text):
        self.told.append(text)


def add(recorder, numbers, virtual=None):
    """Add episodes of two steps whose joints and goals count."""
    for number in numbers:
        observations = np.zeros((3, 3))
        observations[:, 0] = number + np.arange(3)
        episode = Episode(observations, np.zeros((2, 2)), np.array((number + 2.0, 0.0)))
        joints = number + np.arange(6.0).reshape(3, 2)
        recorder.add(number, 2 * number, episode, joints)
        recorder.record_goal_offsets(virtual)


def indices(path):
    return [episode.index for episode in read_episodes(path)]


def same(one, two):
    for first, second in zip(one, two, strict=True):
        for name, value in vars(first).items():
            np.testing.assert_array_equal(value, getattr(second, name), err_msg=name)


def test_what_is_kept_is_what_was_done(interface, tmp_path):
    path = tmp_path / EPISODES
    recorder = EpisodeRecorder(interface, NAMES)
    recorder.save(path)
    assert not path.exists()
    add(recorder, [0])
    add(recorder, [1], np.full((500, 2), 0.5, np.float32))
    recorder.save(path)
    first, second = read_episodes(path)
    assert (second.index, second.env_steps, second.joint_names) == (1, 2, NAMES)
    np.testing.assert_array_equal(second.joints, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(second.achieved_goals, [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    np.testing.assert_array_equal(second.goal, [3.0, 0.0])
    assert second.success and first.success
    assert first.goal_offsets.shape == (0, 2)
    np.testing.assert_array_equal(second.goal_offsets, np.full((64, 2), 0.5))


def test_a_long_run_is_thinned_out_evenly_and_keeps_its_ends(interface, tmp_path):
    path, recorder = tmp_path / EPISODES, EpisodeRecorder(interface, NAMES)
    for number in range(1111):
        add(recorder, [number])
        if number in (198, 199, 1110):
            recorder.save(path)
            kept = indices(path)
            assert len(kept) <= 200
            assert (kept[0], kept[-1]) == (0, number)
            assert len(set(np.diff(kept[:-1]))) == 1
    assert kept == [*range(0, 1111, 8), 1110]
    assert path.stat().st_size < 1e5


@pytest.mark.parametrize('stopped', [3, 250, 999])
def test_a_record_that_goes_on_is_the_same_record(interface, tmp_path, stopped):
    whole, parted = EpisodeRecorder(interface, NAMES), EpisodeRecorder(interface, NAMES)
    add(whole, range(1000))
    whole.save(tmp_path / 'whole')
    add(parted, range(stopped))
    parted.save(tmp_path / 'parted')
    resumed = EpisodeRecorder(interface, NAMES)
    resumed.resume(tmp_path / 'parted', stopped, STEPS)
    add(resumed, range(stopped, 1000))
    resumed.save(tmp_path / 'parted')
    same(read_episodes(tmp_path / 'parted'), read_episodes(tmp_path / 'whole'))


def test_episodes_after_the_checkpoint_are_dropped(interface, tmp_path):
    recorder = EpisodeRecorder(interface, NAMES)
    add(recorder, range(9))
    recorder.save(tmp_path / EPISODES)
    resumed = EpisodeRecorder(interface, NAMES)
    resumed.resume(tmp_path / EPISODES, 4, STEPS)
    resumed.save(tmp_path / EPISODES)
    assert indices(tmp_path / EPISODES) == [0, 1, 2, 3]


def test_the_episodes_of_a_run_show_how_the_arm_moved(whole):
    folder, config = whole
    recorded = read_episodes(folder / EPISODES)
    assert [episode.index for episode in recorded] == list(range(8))
    assert [episode.env_steps for episode in recorded] == [20 * index for index in range(8)]
    task = make(config.task_name, config.task)
    for episode in recorded:
        assert episode.joint_names == task.joint_names
        assert episode.joints.shape == (21, len(task.joint_names))
        for joints, achieved in zip(episode.joints, episode.achieved_goals, strict=True):
            seen = task.observe(joints.astype(np.float64), np.zeros_like(joints, np.float64))
            np.testing.assert_allclose(seen['achieved_goal'], achieved, atol=1e-5)
        reached = task.compute_reward(episode.achieved_goals[-1], episode.goal, {}) == 0.0
        assert episode.success == reached
        learnt = episode.index >= config.schedule.warmup_episodes
        assert (len(episode.goal_offsets) > 0) == learnt


def test_virtual_goals_close_in_on_the_goals_that_they_replace(tmp_path):
    # Theorem 2 of the paper, as the page shows it; half of them are real future goals here.
    changes = {'schedule.until': 0.0, 'schedule.steps': 300, 'schedule.evaluation_goals': 1}
    config, folder = plan_run('fetch_reach', seed=1, changes=changes, folder=tmp_path / 'run')
    start_training(folder, config, export=False)
    medians = [
        np.median(np.linalg.norm(episode.goal_offsets, axis=1))
        for episode in read_episodes(folder / EPISODES)
        if len(episode.goal_offsets)
    ]
    assert np.mean(medians[-2:]) < 0.5 * medians[0]


@pytest.mark.parametrize('cycles', [1, 5])
def test_a_run_stopped_and_resumed_leaves_the_same_episodes(whole, tmp_path, cycles):
    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(cycles))
    assert indices(folder / EPISODES) == list(range(cycles))
    run(folder, whole[1], resume=True)
    same(read_episodes(folder / EPISODES), read_episodes(whole[0] / EPISODES))


@pytest.mark.parametrize('trouble', ['damaged', 'unwritable'])
def test_episodes_that_cannot_be_kept_cost_a_word_but_not_the_run(whole, tmp_path, trouble):
    folder, warnings = tmp_path / 'run', Warnings()
    run(folder, whole[1], asked_to_stop=stop_after(4))
    path = folder / EPISODES
    if trouble == 'damaged':
        path.write_bytes(path.read_bytes()[:-100])
    else:
        path.unlink()
        path.mkdir()  # A file cannot take its place.
    run(folder, whole[1], resume=True, displays=[warnings])
    assert any(str(path) in text for text in warnings.told)
    assert rows(folder) == rows(whole[0])
    if trouble == 'damaged':
        assert indices(path) == [4, 5, 6, 7]


def test_episodes_of_other_joints_are_refused(interface, tmp_path):
    recorder = EpisodeRecorder(interface, NAMES)
    add(recorder, [0])
    recorder.save(tmp_path / EPISODES)
    with pytest.raises(EpisodesError, match=r"joints \['x', 'y'\], got"):
        EpisodeRecorder(interface, ('x', 'y')).resume(tmp_path / EPISODES, 1, STEPS)


def test_episodes_of_another_length_are_refused(interface, tmp_path):
    recorder = EpisodeRecorder(interface, NAMES)
    add(recorder, [0])
    recorder.save(tmp_path / EPISODES)
    with pytest.raises(EpisodesError, match='achieved goals'):
        EpisodeRecorder(interface, NAMES).resume(tmp_path / EPISODES, 1, STEPS + 1)


@pytest.mark.parametrize(
    ('name', 'value', 'said'),
    [
        ('format', np.array(1), 'format 3, got 1'),
        ('joints', np.zeros((3, 3, 2)), 'not a usable file'),
        ('goal_offset_counts', np.array([1]), 'not a usable file'),
        ('goals', np.array([[None, None], [None, None]]), 'allow_pickle'),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(interface, tmp_path, name, value, said):
    path, recorder = tmp_path / EPISODES, EpisodeRecorder(interface, NAMES)
    add(recorder, [0, 1])
    recorder.save(path)
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, name: value})
    with pytest.raises(EpisodesError, match=said):
        read_episodes(path)


def test_a_file_that_is_none_is_refused_whatever_is_in_it(interface, tmp_path):
    path, recorder = tmp_path / EPISODES, EpisodeRecorder(interface, NAMES)
    with pytest.raises(EpisodesError, match='there is no file'):
        read_episodes(path)
    add(recorder, range(3))
    recorder.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    np.save(tmp_path / 'array.npy', np.zeros(3))
    others = [b'', b'garbage', pickle.dumps([1]), (tmp_path / 'array.npy').read_bytes()]
    others += [whole[:length] for length in rng.integers(len(whole), size=50)]
    for content in others:
        path.write_bytes(content)
        with pytest.raises(EpisodesError, match=re.escape(str(path))):
            read_episodes(path)
    for _ in range(300):
        spoilt = bytearray(whole)
        spoilt[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(spoilt)
        try:
            assert len(read_episodes(path)) == 3
        except EpisodesError:
            pass


def test_the_kinds_name_every_array_of_the_file(whole):
    others = 'format', 'joint_names', 'goal_offsets', 'goal_offset_counts'
    assert set(np.load(whole[0] / EPISODES)) == {*others, *episodes.ROWS}
