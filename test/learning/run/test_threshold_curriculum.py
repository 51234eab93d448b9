"""A success threshold that starts large and shrinks as success holds."""

from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.learning.relabel.samplers import BatchSampler
from mher_ros.learning.run.threshold_curriculum import ThresholdCurriculum
from mher_ros.options import OptionError
from mher_ros.tasks import make
import numpy as np
import pytest
from training_runs import rows, run


def ended(distance):
    """Return an episode that ends at this distance from its goal, after a start at the goal."""
    path = np.array(((0.0, 0.0), (distance, 0.0)))
    return Episode(path, np.zeros((1, 2), np.float32), np.zeros(2))


def test_it_shrinks_when_enough_episodes_in_a_row_reach_it():
    task = make('point2d_large')  # its threshold is 1
    curriculum = ThresholdCurriculum(task.interface, 3.0, 2)
    seen = []
    for distance in (2.9, 3.1, 2.9, 2.9, 2.0, 2.2, 2.0, 2.0):
        curriculum.take(ended(distance))
        seen.append(curriculum.factor)
    # Two in a row within 3, then within 2.1; the next failure starts the count again.
    assert seen == pytest.approx([3.0, 3.0, 3.0, 2.1, 2.1, 2.1, 2.1, 1.47])


def test_it_never_gets_smaller_than_the_threshold():
    curriculum = ThresholdCurriculum(make('point2d_large').interface, 1.2, 1)
    for _ in range(5):
        curriculum.take(ended(0.0))
        assert curriculum.factor == 1.0


def test_rewards_of_a_batch_use_the_larger_threshold(batches, rng):
    sampler = batches(BatchSampler, None, 0.0)
    transitions = sampler.sample(rng)
    achieved = sampler.interface.achieved_goal(transitions.next_observations)
    distances = sampler.interface.distance(achieved, transitions.goals)
    for factor in (1.0, np.sort(distances)[2] / sampler.interface.success_threshold):
        sampler.threshold_factor = factor
        batch = sampler.relabel(transitions, 0, rng)
        expected = distances <= factor * sampler.interface.success_threshold
        np.testing.assert_array_equal(batch.rewards.numpy() == 0.0, expected)
    assert expected.sum() >= 3


def test_a_factor_of_one_changes_nothing_and_evaluations_use_no_factor(tiny, whole, tmp_path):
    run(tmp_path / 'same', tiny(seed=4, schedule__threshold_start=1.0))
    assert rows(tmp_path / 'same') == rows(whole[0])
    easy = tiny(seed=4, schedule__threshold_start=1000.0, schedule__threshold_episodes=100)
    trainer, _ = run(tmp_path / 'easy', easy)
    assert trainer.agent.threshold_factor == 1000.0  # every episode reaches it
    assert rows(tmp_path / 'easy') != rows(whole[0])
    assert float(rows(tmp_path / 'easy')[0]['success_rate']) < 1.0


@pytest.mark.parametrize('algorithm', ['gcsl', 'plangan'])
def test_algorithms_without_rewards_refuse_it(tiny, algorithm):
    with pytest.raises(OptionError, match='excludes schedule.threshold_start=2'):
        tiny(algorithm, schedule__threshold_start=2.0)
