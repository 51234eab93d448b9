"""The benchmark of learning: what its figures are made of, and the command with real rivals."""

import json
import sys

from mher_ros.bench.learning import evaluation_points, findings, Point, reached, SYSTEMS
from mher_ros.cli import main
import numpy as np
import pytest

SAC, DDPG, SAC_OUR_PACE = 'sb3_sac', 'sb3_ddpg', 'sb3_sac_our_pace'


def there(steps, wall=1.0, cpu=1.0):
    """Return the curve of a run that has learnt after so much."""
    return [
        Point(steps, 0.95, wall, cpu),
        Point(steps + 100, 1.0, 2.0 * wall, 2.0 * cpu),
    ]


def never(steps=500):
    return [Point(steps, 0.94, 9.0, 9.0), Point(steps + 100, 0.94, 10.0, 10.0)]


def by_seed(*curves):
    return dict(enumerate(curves, 1))


def test_success_counts_from_the_first_of_two_evaluations_that_hold_it():
    rates = [0.2, 0.96, 0.94, 0.95, 0.97, 1.0]
    curve = [Point(100 * n, rate, float(n), 2.0 * n) for n, rate in enumerate(rates, 1)]
    assert reached(curve) == Point(400, 0.95, 4.0, 8.0)


def test_success_at_the_last_evaluation_alone_is_not_held():
    assert reached([Point(100, 0.9, 1.0, 1.0), Point(200, 1.0, 2.0, 2.0)]) is None
    assert reached([]) is None


def test_evaluations_come_at_least_every_tenth_of_the_way_from_250_steps_on():
    points = evaluation_points(20_000)
    assert points[:2] == [25, 50]
    assert points[-1] == 20_000
    pairs = list(zip(points, points[1:], strict=False))
    assert all(later > earlier for earlier, later in pairs)
    assert all(later - earlier <= earlier / 10 for earlier, later in pairs if earlier >= 250)


def test_trainings_by_whole_episodes_of_100_steps_meet_every_evaluation_after_1000_steps():
    assert all(steps % 100 == 0 for steps in evaluation_points(20_000) if steps > 1000)


def test_no_evaluation_comes_after_the_limit():
    assert evaluation_points(140) == [25, 50, 75, 100, 125]


def test_ratios_are_of_medians_to_the_rival_that_is_best_in_each():
    figures = findings(
        {
            'mher_fast': by_seed(there(200, 4.0, 3.0), there(300, 5.0, 3.0), there(900, 99.0)),
            SAC: by_seed(there(3000, 10.0, 60.0), there(3000, 10.0, 60.0), there(100, 1.0)),
            SAC_OUR_PACE: by_seed(there(1500, 40.0, 30.0), there(1500, 40.0, 30.0), never()),
        }
    ).figures
    assert figures['steps_ratio_vs_best_sb3'] == pytest.approx(300 / 1500)
    assert figures['best_sb3_in_steps'] == SAC_OUR_PACE
    assert figures['wall_ratio_vs_best_sb3'] == pytest.approx(5.0 / 10.0)
    assert figures['best_sb3_in_wall'] == SAC
    assert figures['cpu_ratio_vs_best_sb3'] == pytest.approx(3.0 / 30.0)
    assert figures['best_sb3_in_cpu'] == SAC_OUR_PACE


def test_runs_that_never_get_there_count_as_infinitely_long():
    found = findings(
        {
            'mher_fast': by_seed(there(200), there(200), never()),
            SAC: by_seed(there(100), never(), never()),
            DDPG: by_seed(there(800), there(800), never()),
        }
    )
    assert found.figures['best_sb3_in_steps'] == DDPG
    assert found.figures['steps_ratio_vs_best_sb3'] == pytest.approx(0.25)
    assert found.figures['median_steps'] == {'mher_fast': 200.0, SAC: None, DDPG: 800.0}
    assert found.samples['steps_wall_cpu'][SAC]['2'] == [None, None, None]
    (table,) = found.tables
    assert [row[1:3] for row in table.rows] == [
        ('2 of 3', '200 [200, never]'),
        ('1 of 3', 'never [100, never]'),
        ('2 of 3', '800 [800, never]'),
    ]
    # Python would write infinity, which is not JSON.
    json.dumps([found.figures, found.samples], allow_nan=False)


@pytest.mark.parametrize(
    'curves',
    [
        {'mher_fast': by_seed(there(200)), SAC: by_seed(never())},
        {'mher_fast': by_seed(never()), SAC: by_seed(there(200))},
        {'mher_fast': by_seed(there(200))},
        {SAC: by_seed(there(200))},
    ],
    ids=['rival never', 'ours never', 'no rival', 'ours not measured'],
)
def test_nothing_is_claimed_where_one_side_has_no_figure(curves):
    assert findings(curves).figures['steps_ratio_vs_best_sb3'] is None


def test_without_stable_baselines3_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'stable_baselines3', None)
    assert main(['bench', 'learning', '--systems', SAC]) == 2
    assert 'mher_ros[bench]' in capsys.readouterr().err


def test_unknown_systems_are_refused_with_the_names_there_are(capsys):
    assert main(['bench', 'learning', '--systems', 'mher_fast,ppo']) == 2
    refusal = capsys.readouterr().err
    assert "'ppo'" in refusal
    assert all(name in refusal for name in SYSTEMS)


def test_limits_below_the_warm_up_are_refused(capsys):
    assert main(['bench', 'learning', '--systems', 'mher_fast', '--limit', '99']) == 2
    assert 'before step 100' in capsys.readouterr().err


def test_rivals_at_our_pace_have_the_updates_of_our_preset():
    pytest.importorskip('stable_baselines3')
    learner = SYSTEMS['sb3_ddpg_our_pace'].begin(1, 200)
    learner.learn_until(99)
    # 75 steps of warm-up, then 100 updates for every 25 steps.
    assert learner.model._n_updates == 4 * (99 - 75)
    assert (learner.steps, learner.model.batch_size) == (99, 128)


def test_rivals_of_the_zoo_look_at_normalised_observations_and_act_without_noise():
    pytest.importorskip('stable_baselines3')
    learner = SYSTEMS['sb3_sac'].begin(1, 200)
    learner.learn_until(60)
    act, goals = learner.policy(), np.full((2, 3), 1.0)
    seen = np.zeros((2, 10))
    once, again = act(seen, goals), act(seen, goals)
    assert once.shape == (2, 4)
    np.testing.assert_array_equal(once, again)
    normalised = learner.model.get_vec_normalize_env()
    normalised.obs_rms['desired_goal'].mean += 1.0
    assert np.abs(act(seen, goals) - once).max() > 1e-6


@pytest.mark.slow
def test_the_command_measures_us_and_a_real_rival(tmp_path, capsys):
    pytest.importorskip('stable_baselines3')
    systems = ['mher_fast', SAC_OUR_PACE]
    command = ['bench', 'learning', '--seeds', '3-3', '--limit', '100', '--json']
    assert main([*command, '--systems', ','.join(systems), '--out', str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed['samples']['curves']) == systems
    for by_its_seed in printed['samples']['curves'].values():
        ((steps, rate, wall, cpu),) = by_its_seed['3']
        assert steps == 100
        assert 0.0 <= rate <= 1.0
        assert wall > 0.0
        assert cpu > 0.0
    assert printed['steps_ratio_vs_best_sb3'] is None
    assert (tmp_path / 'learning.png').stat().st_size > 0
    assert json.loads((tmp_path / 'learning.json').read_text())['benchmark'] == 'learning'
