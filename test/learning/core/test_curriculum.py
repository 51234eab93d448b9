"""Curriculum-guided HER: which rows are learnt from."""

from hand_made import FixedGoals
from mher_ros.learning.relabel.samplers import CurriculumSampler, GoalCurriculum
import numpy as np
import pytest
import torch


def test_a_curriculum_first_takes_what_is_unlike_the_rest(rng):
    # Two goals in one place and one apart. Nearest neighbours are 0, 0 and 2 away: sigma = 2/3,
    # the pair's likeness to the third exp(-9). With no weight on closeness, whichever comes
    # first, the second pick is of the other place: it covers 1 or 2 more instead of nothing.
    goals = np.array([[0.0], [0.0], [2.0]], np.float32)
    for _ in range(20):
        picked = GoalCurriculum(0.0, 0.0).choose(goals, np.zeros(3), 2, 0, rng)
        assert picked[0] in (0, 1)  # covers two of three
        assert picked[1] == 2


def test_a_curriculum_then_takes_what_is_close_to_the_desired_goal(rng):
    goals = np.array([[0.0], [0.0], [2.0]], np.float32)
    desired = np.array([[0.5], [0.1], [2.3]], np.float32)
    # The first pick gains at most 2 by what it covers; with lambda = 1000 the distances 0.5,
    # 0.1 and 0.3 alone decide.
    picked = GoalCurriculum(1000.0, 0.0).choose(goals, np.abs(goals - desired)[:, 0], 3, 0, rng)
    assert picked.tolist() == [1, 2, 0]


def test_the_gain_of_a_pick_weighs_cover_against_distance(rng):
    goals = np.array([[0.0], [0.0], [2.0]], np.float32)
    desired = np.array([[1.2], [1.2], [2.0]], np.float32)
    # First pick: a twin gains 2 + exp(-9) - lambda 1.2, the third 1 + 2 exp(-9) - 0.
    # lambda = 0.8: 1.040 > 1.0002, the twin; lambda = 0.9: 0.920 < 1.0002, the third.
    assert GoalCurriculum(0.8, 0.0).choose(goals, np.abs(goals - desired)[:, 0], 1, 0, rng)[0] in (
        0,
        1,
    )
    assert GoalCurriculum(0.9, 0.0).choose(goals, np.abs(goals - desired)[:, 0], 1, 0, rng)[0] == 2
    # 0.8 grows by a tenth an update: after two it is 0.968.
    assert GoalCurriculum(0.8, 0.1).weight(2) == pytest.approx(0.968)
    assert GoalCurriculum(0.8, 0.1).choose(goals, np.abs(goals - desired)[:, 0], 1, 2, rng)[0] == 2


@pytest.fixture
def curated(batches):
    """Return a function that makes batches of 4 rows out of 8 candidates."""

    def build(weight=1.0, growth=0.0, probability=0.75, source=None):
        return batches(
            CurriculumSampler,
            FixedGoals(5.0) if source is None else source,
            probability,
            curriculum=GoalCurriculum(weight, growth),
            candidates=2,
        )

    return build


def test_cher_learns_from_half_its_candidates_each_once(curated, counted_replay, rng):
    source = curated()
    for _ in range(20):
        candidates = source.sample(rng)
        assert len(candidates.steps) == 8
        # Numbered, since the same transition may be drawn twice.
        candidates.actions[:, 0] = np.arange(8)
        batch = source.relabel(candidates, 0, rng)
        assert len(set(batch.actions[:, 0].tolist())) == 4
        assert torch.equal((batch.goals == 5.0).all(1), batch.relabelled == 1.0)


def test_cher_keeps_the_share_of_relabelled_rows(curated, rng):
    source = curated(probability=0.75)
    drawn = [source.relabel(source.sample(rng), 0, rng) for _ in range(50)]
    shares = [float(batch.relabelled.mean()) for batch in drawn]
    # 3 of 4, unless fewer than one candidate has kept its goal: then the rest is new, too.
    assert np.mean(shares) == pytest.approx(0.75, abs=0.1)
    everything = curated(probability=1.0)
    assert everything.relabel(everything.sample(rng), 0, rng).relabelled.tolist() == [1.0] * 4


def test_cher_measures_closeness_to_the_goal_of_the_row_and_lets_it_grow(curated, rng):
    source = curated(weight=1e-3, growth=1.0, probability=1.0)
    candidates = source.sample(rng)
    # All new goals are (5, 5); the desired ones are 0, 1, ... 7 away from it.
    candidates.goals[:] = 5.0
    candidates.goals[:, 0] += np.arange(8)
    candidates.actions[:, 0] = np.arange(8)

    def picked(updates):
        rows = [source.relabel(candidates, updates, rng).actions[:, 0] for _ in range(200)]
        return float(torch.stack(rows).mean())

    # All goals alike: after the first pick no other covers more, so distance alone decides, and
    # of three looked at the closest is taken, whatever its weight.
    assert picked(0) < 3.0
    # Another weight changes nothing here, but a row whose own goal is the new one does.
    candidates.goals[7] = 5.0
    closest = [source.relabel(candidates, 20, rng).actions[:, 0].tolist() for _ in range(200)]
    assert np.mean([7.0 in rows for rows in closest]) > 0.7


def test_the_weight_of_closeness_grows_with_the_updates_of_the_batch(curated, rng):
    source = curated(weight=1e-4, growth=1.0, probability=1.0)
    candidates = source.sample(rng)
    goals = np.array([[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [9, 9]], np.float32)
    source.source.propose = lambda batch, rng, wanted: goals
    candidates.goals[:] = 0.0
    candidates.actions[:, 0] = np.arange(8)

    def share_of_the_odd_one(updates):
        batches = [source.relabel(candidates, updates, rng) for _ in range(200)]
        return np.mean([7.0 in batch.actions[:, 0].tolist() for batch in batches])

    # At first the one goal that is unlike the rest is taken whenever it is looked at; after 20
    # updates its distance of 12.7 weighs 105 times as much as the one more that it covers.
    assert share_of_the_odd_one(0) > 0.8
    assert share_of_the_odd_one(20) < 0.2


def test_cher_with_every_preset_is_not_her(rng):
    from mher_ros.learning.config import make_config
    from mher_ros.learning.presets import PRESETS

    for preset in PRESETS:
        assert make_config('point2d_large', 'cher', preset).relabel.candidates > 1
