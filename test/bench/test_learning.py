"""The benchmark of learning: its figures, and the command with real baselines."""

import json
from pathlib import Path
import re
import sys

from mher_ros.bench import learning
from mher_ros.bench.algorithms import ALGORITHMS, default_algorithms, Problem
from mher_ros.bench.curves import evaluation_points, KeptRuns, Point, reached, try_goals
from mher_ros.cli import main
from mher_ros.cli.arguments import INTERRUPTED
from mher_ros.files import share_folder
from mher_ros.tasks.rollouts import Evaluation
import numpy as np
import pytest

SAC, DDPG, SAC_OUR_PACE = 'sb3_sac', 'sb3_ddpg', 'sb3_sac_our_pace'


def there(steps, wall=1.0, cpu=1.0):
    """Return the curve of a run that has learnt after so much."""
    return [
        Point(steps, 0.95, 100, wall, cpu),
        Point(steps + 100, 1.0, 100, 2.0 * wall, 2.0 * cpu),
    ]


def never(steps=500):
    return [Point(steps, 0.94, 100, 9.0, 9.0), Point(steps + 100, 0.94, 100, 10.0, 10.0)]


def by_seed(*curves):
    return dict(enumerate(curves, 1))


def result_of(curves):
    return learning.result_of(curves, Problem(), period=0.04)


def test_success_counts_from_the_first_of_two_evaluations_that_hold_it():
    rates = [0.2, 0.96, 0.94, 0.95, 0.97, 1.0]
    curve = [Point(100 * n, rate, 100, float(n), 2.0 * n) for n, rate in enumerate(rates, 1)]
    assert reached(curve) == Point(400, 0.95, 100, 4.0, 8.0)


def test_success_at_the_last_evaluation_alone_is_not_held():
    assert reached([Point(100, 0.9, 100, 1.0, 1.0), Point(200, 1.0, 100, 2.0, 2.0)]) is None
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


def test_ratios_are_of_medians_to_the_baseline_that_is_best_in_each():
    figures = result_of(
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
    assert figures['interrupted'] is False


def test_ratios_come_with_intervals_over_seeds_in_figures_and_table():
    found = result_of(
        {
            'mher_fast': by_seed(there(100), there(200), there(200), there(200), there(300)),
            'her_fast': by_seed(*[there(400, cpu=4.0)] * 5),
            SAC: by_seed(*[there(2000)] * 3, never(), never()),
            DDPG: by_seed(*[never()] * 5),
        }
    )
    figures = found.figures
    assert figures['steps_ratio_vs_her_fast'] == 0.5
    assert figures['steps_ratio_vs_her_fast_interval'] == [0.25, 0.75]
    assert figures['cpu_ratio_vs_her_fast'] == 0.25
    assert figures['steps_ratio_vs_best_sb3'] == 0.1
    # In many draws most seeds are those that never get there.
    assert figures['steps_ratio_vs_best_sb3_interval'] == [0.0, 0.1]
    (table,) = found.tables
    column = table.header.index('mher fast over it: steps')
    assert [row[column] for row in table.rows] == [
        '1.00',
        '0.50 [0.25, 0.75]',
        '0.10 [0.00, 0.10]',
        '',
    ]


def test_intervals_without_an_upper_end_are_json():
    found = result_of(
        {'mher_fast': by_seed(there(100), there(100), never()), SAC: by_seed(*[there(400)] * 3)}
    )
    assert found.figures['steps_ratio_vs_best_sb3_interval'] == [0.25, None]


def test_runs_that_never_get_there_count_as_infinitely_long():
    found = result_of(
        {
            'mher_fast': by_seed(there(200), there(200), never()),
            SAC: by_seed(there(100), never(), never()),
            DDPG: by_seed(there(800), there(800), never()),
        }
    )
    assert found.figures['best_sb3_in_steps'] == DDPG
    assert found.figures['steps_ratio_vs_best_sb3'] == pytest.approx(0.25)
    assert found.figures['median_steps'] == {'mher_fast': 200.0, SAC: None, DDPG: 800.0}
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
    ids=['baseline never', 'ours never', 'no baseline', 'ours not measured'],
)
def test_nothing_is_claimed_where_one_side_has_no_figure(curves):
    assert result_of(curves).figures['steps_ratio_vs_best_sb3'] is None


def test_without_stable_baselines3_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'stable_baselines3', None)
    assert main(['bench', 'learning', '--algorithms', SAC, '--out', str(tmp_path)]) == 2
    refusal = capsys.readouterr().err
    assert 'mher_ros[bench]' in refusal


def test_the_version_of_the_baseline_is_the_same_everywhere():
    root = Path(__file__).resolve().parents[2]
    paths = ('setup.py', 'requirements/dev.in', 'requirements/dev.txt')
    pins = [re.findall(r'stable-baselines3==[\d.]+', (root / path).read_text()) for path in paths]
    assert pins[0] == pins[1] == pins[2] != []


def test_unknown_algorithms_are_refused_with_the_names_there_are(tmp_path, capsys):
    command = ['bench', 'learning', '--algorithms', 'mher_fast,ppo', '--out', str(tmp_path)]
    assert main(command) == 2
    refusal = capsys.readouterr().err
    assert "'ppo'" in refusal
    assert all(name in refusal for name in ALGORITHMS)


def test_limits_below_the_warm_up_are_refused(tmp_path, capsys):
    command = ['bench', 'learning', '--algorithms', 'mher_fast', '--limit', '49']
    assert main([*command, '--out', str(tmp_path)]) == 2
    refusal = capsys.readouterr().err
    assert 'limit' in refusal and '50' in refusal and '49' in refusal


@pytest.mark.parametrize(
    ('missed', 'tried'),
    [
        ([0, 1, 2, 3, 4], 100),
        ([0, 1, 2, 3, 4, 5], 25),
        ([0, 1, 2, 3, 4, 30], 50),
        ([95, 96, 97, 98, 99, 94], 100),
        ([], 100),
    ],
)
def test_no_more_goals_are_tried_once_more_than_5_of_100_are_missed(missed, tried):
    def evaluate(policy, seeds):
        assert len(seeds) <= 25
        successes = np.array([seed not in missed for seed in seeds])
        nothing = np.zeros(len(seeds))
        return Evaluation(nothing, successes, nothing, nothing)

    found = try_goals(evaluate, None, range(100))
    assert found == [seed not in missed for seed in range(tried)]


def interrupted_at(monkeypatch, seed, name):
    """Let every run get there at once, but for one that is interrupted; return those begun."""
    begun = []

    def run(its_name, problem, its_seed, limit, evaluate):
        begun.append((its_seed, its_name))
        if (its_seed, its_name) == (seed, name):
            raise KeyboardInterrupt
        return there(100 * its_seed)

    monkeypatch.setattr(learning, 'run', run)
    return begun


def test_an_interrupted_run_tells_of_its_whole_seeds_in_a_file_of_its_own(
    tmp_path, monkeypatch, capsys
):
    interrupted_at(monkeypatch, 2, 'her_fast')
    (tmp_path / 'learning.json').write_text('whole')
    command = ['bench', 'learning', '--seeds', '1-5', '--algorithms', 'mher_fast,her_fast']
    assert main([*command, '--out', str(tmp_path)]) == INTERRUPTED
    assert 'Interrupted' in capsys.readouterr().out
    assert (tmp_path / 'learning.json').read_text() == 'whole'
    values = json.loads((tmp_path / 'learning.partial.json').read_text())
    assert values['interrupted'] is True
    assert list(values['samples']['curves']['mher_fast']) == ['1']
    assert values['arguments']['seeds'] == [1, 2, 3, 4, 5]


def test_a_run_interrupted_in_its_first_seed_tells_nothing(tmp_path, monkeypatch, capsys):
    interrupted_at(monkeypatch, 1, 'her_fast')
    command = ['bench', 'learning', '--seeds', '1-5', '--algorithms', 'mher_fast,her_fast']
    assert main([*command, '--out', str(tmp_path)]) == INTERRUPTED
    assert capsys.readouterr().out == ''
    assert list(tmp_path.glob('*.json')) == []


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    command = ['bench', 'learning', '--algorithms', 'mher_fast,her_fast', '--out', str(tmp_path)]
    interrupted_at(monkeypatch, 2, 'her_fast')
    assert main([*command, '--seeds', '1-3']) == INTERRUPTED
    begun = interrupted_at(monkeypatch, None, None)
    capsys.readouterr()
    assert main([*command, '--seeds', '1-3', '--json']) == 0
    assert begun == [(2, 'her_fast'), (3, 'mher_fast'), (3, 'her_fast')]
    printed = capsys.readouterr()
    values = json.loads(printed.out)
    assert (values['reused_runs'], values['median_steps']['mher_fast']) == (3, 200)
    assert values['samples']['curves']['her_fast'] == {
        str(seed): [list(point) for point in there(100 * seed)] for seed in (1, 2, 3)
    }
    assert 'an earlier run' in printed.err
    begun.clear()
    assert main([*command, '--seeds', '1-3', '--fresh']) == 0
    assert len(begun) == 6


@pytest.mark.parametrize(
    ('change', 'is_same'),
    [
        ({}, True),
        ({'limit': 300}, False),
        ({'code': 'other'}, False),
        ({'changes': {'agent.batch': 32}}, False),
        ({'changes': {'task.threshold': 0.02}}, False),
        ({'task': 'sawyer_reach'}, False),
    ],
)
@pytest.mark.parametrize('name', ['mher_fast', SAC_OUR_PACE])
def test_only_runs_of_the_same_settings_are_used_again(tmp_path, name, change, is_same):
    pytest.importorskip('stable_baselines3')

    def kept(task='fetch_reach', changes=None, limit=200, code=''):
        return KeptRuns(tmp_path, Problem(task, changes or {}), limit, code)

    kept().write(name, 1, there(100))
    found = kept(**change).read(name, 1)
    assert found == (there(100) if is_same else None)
    assert kept().read(name, 2) is None


def test_runs_of_another_robot_file_are_not_used_again(tmp_path):
    file = tmp_path / 'arm.yaml'
    original = (share_folder() / 'config' / 'robots' / 'ur5e.yaml').read_text()
    file.write_text(original)
    problem = Problem('reach', {'task.robot': str(file)})
    KeptRuns(tmp_path, problem, 200).write('mher_fast', 1, there(100))
    assert KeptRuns(tmp_path, problem, 200).read('mher_fast', 1) == there(100)
    file.write_text(original.replace('0.35', '0.36'))
    assert KeptRuns(tmp_path, problem, 200).read('mher_fast', 1) is None


def test_improvement_is_more_probable_the_more_runs_need_fewer_steps():
    figures = result_of(
        {
            'mher_fast': by_seed(there(100), there(300), never(), never()),
            'her_fast': by_seed(there(200), there(300), there(400), never()),
        }
    ).figures
    # Of 16 pairs: 100 before all 4; 300 before 400 and never, and a tie; 2 ties of never.
    better = (4 + 2.5 + 0.5 + 0.5) / 16
    assert figures['probability_of_improvement_vs_her_fast'] == pytest.approx(better)
    low, high = figures['probability_of_improvement_vs_her_fast_interval']
    assert 0.0 <= low < better < high <= 1.0


def test_robot_time_is_steps_times_the_control_period():
    found = result_of({'mher_fast': by_seed(there(300)), SAC: by_seed(never())})
    assert found.figures['median_robot_seconds'] == {'mher_fast': 12.0, SAC: None}
    (table,) = found.tables
    column = table.header.index('robot time [s]')
    assert [row[column] for row in table.rows] == ['12', 'never']


def test_her_gets_our_changes_but_stays_her():
    changes = {'agent.batch': 32, 'agent.alpha': 5.0, 'relabel.goals': 'virtual'}
    problem = Problem('fetch_reach', changes)
    ours, her = problem.config('mher'), problem.config('her')
    assert (ours.agent.batch, ours.agent.alpha, ours.relabel.goals) == (32, 5.0, 'virtual')
    assert (her.agent.batch, her.agent.alpha, her.relabel.goals) == (32, 0.0, 'future')


def test_all_learn_the_changed_task_at_our_changed_pace():
    pytest.importorskip('stable_baselines3')
    problem = Problem(
        'reach',
        {
            'task.robot': 'ur5e',
            'task.threshold': 0.03,
            'agent.batch': 32,
            'schedule.episode_steps': 40,
            'schedule.warmup_episodes': 3,
            'schedule.warmup_updates': 7,
            'schedule.updates_per_episode': 60,
        },
    )
    theirs = ALGORITHMS['sb3_ddpg_our_pace'].begin(problem, 1, 200)
    env = theirs.model.get_env().envs[0].unwrapped
    assert (env.robot.name, env.interface.success_threshold) == ('ur5e', 0.03)
    assert env.interface.episode_steps == 40
    theirs.learn_until(123)
    # 7 updates after the warm-up of 3 episodes, then 60 for 40 steps: 3 after every second one.
    assert theirs.model._n_updates == 7 + 2 * 3
    ours = ALGORITHMS['her_fast'].begin(problem, 1, 200)
    assert ours._trainer._env.robot.name == 'ur5e'
    assert ours._trainer._env.interface.success_threshold == 0.03
    assert ours.learns_from == theirs.learns_from == 120


def test_only_algorithms_with_settings_for_the_task_run_by_default():
    assert default_algorithms('fetch_reach') == list(ALGORITHMS)
    expected = ['mher_fast', 'her_fast', SAC_OUR_PACE, 'sb3_ddpg_our_pace']
    assert default_algorithms('reach') == expected


def test_evaluations_of_reach_are_rarer():
    points = evaluation_points(20_000, 'reach')
    assert points[:3] == [100, 200, 300]
    pairs = list(zip(points, points[1:], strict=False))
    assert all(later - earlier <= earlier / 10 for earlier, later in pairs if earlier >= 1000)


def test_other_tasks_have_files_of_their_own(tmp_path, monkeypatch, capsys):
    interrupted_at(monkeypatch, None, None)
    command = ['bench', 'learning', '--seeds', '1-1', '--algorithms', 'mher_fast']
    command += ['--out', str(tmp_path), '--task', 'reach', '--robot', 'ur5e']
    assert main(command) == 0
    assert main([*command, '--set', 'agent.batch=32']) == 0
    names = sorted(path.stem for path in tmp_path.glob('*.json'))
    assert names[0] == 'learning-reach-ur5e'
    assert re.fullmatch('learning-reach-ur5e-[0-9a-f]{8}', names[1])
    assert 'agent.batch=32' in capsys.readouterr().out


@pytest.mark.parametrize('name', [SAC, DDPG])
def test_baselines_of_the_zoo_have_its_settings_for_fetch_reach(name):
    pytest.importorskip('stable_baselines3')
    model = ALGORITHMS[name].begin(Problem(), 1, 20_000).model
    assert (model.gamma, model.learning_rate) == (0.95, 1e-3)
    assert (model.batch_size, model.learning_starts) == (256, 1000)
    assert (model.gradient_steps, model.train_freq.frequency) == (1, 1)
    assert model.policy.net_arch == [64, 64]
    replay = model.replay_buffer
    assert replay.her_ratio == 1 - 1 / (4 + 1)
    assert replay.goal_selection_strategy.name == 'FUTURE'
    assert model.get_env().envs[0].unwrapped.interface.episode_steps == 50
    assert model.get_vec_normalize_env().norm_obs and model.get_vec_normalize_env().gamma == 0.95
    noise = None if name == SAC else [0.1] * 4
    assert (model.action_noise and model.action_noise._sigma.tolist()) == noise


def test_baselines_at_our_pace_have_the_updates_of_our_preset():
    pytest.importorskip('stable_baselines3')
    learner = ALGORITHMS['sb3_ddpg_our_pace'].begin(Problem(), 1, 200)
    learner.learn_until(49)
    assert (learner.steps, learner.model._n_updates) == (49, 0)
    # 50 steps of warm-up, updates on them, then 100 for every 25 steps.
    learner.learn_until(learner.learns_from)
    assert (learner.steps, learner.model._n_updates) == (50, 200)
    learner.learn_until(74)
    assert (learner.steps, learner.model._n_updates) == (74, 200 + 4 * (74 - 50))
    assert learner.model.batch_size == 128


def test_baselines_at_our_pace_learn_as_much_however_far_they_are_run():
    pytest.importorskip('stable_baselines3')
    learner = ALGORITHMS['sb3_ddpg_our_pace'].begin(Problem(), 1, 200)
    learner.learn_until(60)
    assert (learner.steps, learner.model._n_updates) == (60, 200 + 4 * (60 - 50))


@pytest.mark.parametrize('name, first', [('mher_fast', 50), ('mher_paper', 2100)])
def test_we_are_first_judged_when_something_has_been_learnt(name, first):
    learner = ALGORITHMS[name].begin(Problem(), 1, 20_000)
    assert learner.learns_from == first
    if name == 'mher_fast':
        learner.learn_until(first)
        assert (learner.steps, learner._trainer.agent.updates) == (50, 200)


def test_baselines_of_the_zoo_look_at_normalised_observations_and_act_without_noise():
    pytest.importorskip('stable_baselines3')
    learner = ALGORITHMS['sb3_sac'].begin(Problem(), 1, 200)
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
def test_the_command_measures_us_and_a_real_baseline(tmp_path, capsys):
    pytest.importorskip('stable_baselines3')
    algorithms = ['mher_fast', SAC_OUR_PACE]
    command = ['bench', 'learning', '--seeds', '3-3', '--limit', '50', '--json']
    assert main([*command, '--algorithms', ','.join(algorithms), '--out', str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed['samples']['curves']) == algorithms
    for by_its_seed in printed['samples']['curves'].values():
        ((steps, rate, goals, wall, cpu),) = by_its_seed['3']
        assert steps == 50
        assert goals in (25, 50, 75, 100)
        assert 0.0 <= rate <= 1.0
        assert wall > 0.0
        assert cpu > 0.0
    assert printed['steps_ratio_vs_best_sb3'] is None
    assert (tmp_path / 'learning.png').stat().st_size > 0
    assert json.loads((tmp_path / 'learning.json').read_text())['benchmark'] == 'learning'
