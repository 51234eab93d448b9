from mher_ros.experiments.jobs import attempt, Job
import numpy as np
import pytest
from tiny_experiment import bits, tiny_variant


def recorded(system, recorder, seed=1):
    result = attempt(Job(tiny_variant(system, recorder=recorder), seed))
    assert isinstance(result, dict), result
    return result


@pytest.mark.parametrize('recorder', ['relabelled_goals', 'goal_distance', 'supervised_loss'])
def test_looking_changes_nothing_in_a_run(recorder):
    watched = recorded('mher', recorder)
    alone = attempt(Job(tiny_variant('mher'), 1))
    assert watched['record']
    assert bits(watched)[0] == bits(alone)[0]
    assert watched['record'] == recorded('mher', recorder)['record']


def test_goals_of_her_lie_on_the_trajectory_and_those_of_mher_need_not():
    her = recorded('her', 'relabelled_goals')['record']
    mher = recorded('mher', 'relabelled_goals')['record']
    for look, steps in (('early', 20), ('late', 40)):
        assert her[look]['env_steps'] == steps
        assert len(her[look]['desired']) == 2
        assert _distance_to_path(her[look]).max() == 0.0
        assert _distance_to_path(mher[look]).max() > 0.0


def test_cher_relabels_with_the_goals_that_its_curriculum_picks():
    her = recorded('her', 'relabelled_goals')['record']['early']
    cher = recorded('cher', 'relabelled_goals')['record']['early']
    # 64 of 128 candidates make a batch: half of the goals, and still real ones.
    assert len(cher['relabelled']) == len(her['relabelled']) / 2
    assert _distance_to_path(cher).max() == 0.0


def test_distances_and_losses_have_a_value_for_each_evaluation():
    distance = recorded('her', 'goal_distance')['record']
    assert distance['env_steps'] == [20, 30, 40]
    # Point2D's box has a half side of 5.
    assert 0.0 < min(distance['relabelled']) < max(distance['relabelled']) < 10 * 2**0.5
    loss = recorded('mher', 'supervised_loss')['record']
    assert loss['env_steps'] == [20, 30, 40]
    # Two action entries that differ by at most 2; 10 rewards of 0 or -1, discounted by 0.99.
    assert 0.0 < min(loss['loss']) < max(loss['loss']) < 8.0
    assert -(1 - 0.99**10) / 0.01 - 1e-9 <= min(loss['return']) <= 0.0


def _distance_to_path(look):
    goals, path = np.array(look['relabelled']), np.array(look['path'])
    return np.linalg.norm(goals[:, None] - path, axis=-1).min(axis=1)
