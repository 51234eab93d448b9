from mher_ros.experiments.jobs import Job
from mher_ros.experiments.metrics import (
    early_success,
    final_success,
    first_epoch,
    mean_success,
    rank_correlation,
    steps_to,
)
from mher_ros.experiments.tables import figures_of, markdown, seed_tables, tables_of
import pytest
from tiny_experiment import tiny_experiment, tiny_variant


def rows(*rates):
    return [
        {'env_steps': 50 * (index + 1), 'success_rate': rate} for index, rate in enumerate(rates)
    ]


def lines(table):
    """Return the lines of Markdown without the rule and without padding."""
    head, _, *rest = markdown(table).splitlines()
    return [' '.join(line.split()) for line in (head, *rest)]


def results(experiment, **rates):
    """Return results of every variant: ``mher=(seed 1's rates, seed 2's rates, ...)``."""
    return {
        Job(variant, seed): {'rows': rows(*one)}
        for variant in experiment.variants
        for seed, one in enumerate(rates.get(f'{variant.task}_{variant.name}', ()), 1)
    }


@pytest.mark.parametrize(
    ('rates', 'expected'),
    [
        ((0.5, 0.96, 0.97), 100),
        ((0.96, 0.5, 0.95, 0.95), 150),  # the first one did not hold
        ((0.5, 0.96), float('inf')),  # nothing says that it held
        ((), float('inf')),
    ],
)
def test_steps_count_when_success_is_reached_and_held_once_more(rates, expected):
    assert steps_to(0.95, rows(*rates)) == expected


def test_early_success_takes_what_was_known_at_each_number_of_steps():
    known = [{'env_steps': 90, 'success_rate': 0.5}, {'env_steps': 125, 'success_rate': 1.0}]
    # Nothing at 75, then 0.5, 1.0, and still 1.0 at 150.
    assert early_success(known) == pytest.approx((0 + 0.5 + 1 + 1) / 4)


def test_figures_of_a_run():
    run = rows(0.0, 0.1, 0.9, 0.8, 0.9, 1.0, 0.9)
    assert first_epoch(0.9, run) == 3
    assert first_epoch(0.95, run[:5]) == float('inf')
    assert final_success(run) == pytest.approx((0.9 + 0.8 + 0.9 + 1.0 + 0.9) / 5)
    assert mean_success(run) == pytest.approx(4.6 / 7)


def test_rank_correlation_looks_at_order_alone():
    assert rank_correlation([1, 10, 100, 1000], [4, 3, 2, 1]) == pytest.approx(-1.0)
    # Ranks 1, 2, 3 and 1, 3, 2: 1 - 6 * 2 / (3 * 8).
    assert rank_correlation([1, 2, 3], [1, 9, 5]) == pytest.approx(0.5)
    assert rank_correlation([1, 2, 3], [7, 7, 7]) == 0.0


def test_seed_table_has_every_seed_median_and_mean():
    experiment = tiny_experiment(
        tiny_variant('mher'), tiny_variant('her'), metrics=('steps_to_95',)
    )
    found = results(
        experiment,
        point2d_large_mher=((1, 1), (0, 1, 1), (0, 0, 0, 1, 1)),
        point2d_large_her=((0, 0), (1, 1)),
    )
    (table,) = seed_tables(experiment, found)
    assert lines(table) == [
        '| steps to 95 % | seed 1 | seed 2 | seed 3 | median | mean |',
        '| mher | 50 | 100 | 200 | 100 | 117 |',
        '| her | never | 50 | | never | never |',
    ]


def test_task_tables_are_ordered_best_first_with_intervals():
    experiment = tiny_experiment(tiny_variant('ddpg'), tiny_variant('mher'))
    found = results(
        experiment,
        point2d_large_ddpg=((0, 0.2), (0, 0.4)),
        point2d_large_mher=((0.9, 1.0), (0.6, 1.0)),
    )
    (table,) = tables_of(experiment, figures_of(experiment, found))
    assert lines(table) == [
        '| algorithm | success at the end | mean success | first epoch >= 0.9 | runs |',
        # Mean success 0.95 and 0.8, first epochs 1 and 2; two seeds' interval reaches to both.
        '| mher | 0.88 [0.80, 0.95] | 0.875 [0.800, 0.950] | 1.5 [1, 2] | 2 |',
        '| ddpg | 0.15 [0.10, 0.20] | 0.150 [0.100, 0.200] | never | 2 |',
    ]


def test_over_all_tasks_stand_only_algorithms_that_were_run_on_each():
    variants = [
        tiny_variant(system, task=task)
        for task in ('point2d_large', 'reacher')
        for system in ('her', 'mher')
    ]
    experiment = tiny_experiment(*variants)
    found = results(
        experiment,
        point2d_large_mher=((1, 1), (1, 1)),
        point2d_large_her=((1, 0), (1, 0)),
        reacher_mher=((0, 0), (0, 0)),
    )
    figures = figures_of(experiment, found)
    overall, epochs, large, reacher = tables_of(experiment, figures)
    assert epochs.header == ('algorithm', 'point2d_large', 'reacher')
    assert epochs.rows == (('mher', '1', 'never'), ('her', '1', ''))
    # Mean success 1, 1, 0, 0: without a quarter at each end 1 and 0 are left.
    assert overall.rows == (('mher', '0.500'),)
    assert [row[0] for row in large.rows] == ['mher', 'her']
    assert [row[0] for row in reacher.rows] == ['mher']
    plain = figures.to_dict()
    assert plain['tasks']['point2d_large']['her']['mean_success']['value'] == 0.5
    assert plain['tasks']['reacher']['mher']['first_epoch']['value'] is None
    assert plain['overall'] == {'mher': {'value': 0.5, 'low': 0.5, 'high': 0.5}}
