from mher_ros.experiments.catalogue import EXPERIMENTS
from mher_ros.experiments.experiment import Experiment, Variant
from mher_ros.experiments.tables import early_success, markdown_tables, MEASURES, steps_to
from mher_ros.learning.config import make_config
import pytest


def rows(*rates):
    return [
        {'env_steps': 50 * (index + 1), 'success_rate': rate} for index, rate in enumerate(rates)
    ]


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
    known = [{'env_steps': 125, 'success_rate': 0.5}, {'env_steps': 175, 'success_rate': 1.0}]
    # Nothing at 100, then 0.5, 0.5, 1.0, and still 1.0 at 200.
    assert early_success(known) == pytest.approx((0 + 0.5 + 0.5 + 1 + 1) / 5)


def test_table_has_every_seed_median_and_mean():
    experiment = Experiment(
        'x', 'Which?', (Variant('a', 'fetch_reach'), Variant('b', 'fetch_reach')), ('steps_to_95',)
    )
    results = {
        'a': {1: rows(1, 1), 2: rows(0, 1, 1), 3: rows(0, 0, 0, 1, 1)},
        'b': {1: rows(0, 0), 2: rows(1, 1)},
    }
    lines = markdown_tables(experiment, results).splitlines()
    assert lines[0] == '| steps to 95 % | seed 1 | seed 2 | seed 3 | median | mean |'
    assert lines[2] == '| a | 50 | 100 | 200 | 100 | 117 |'
    assert lines[3] == '| b | never | 50 |  | never | never |'


@pytest.mark.parametrize('experiment', EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_experiment_can_be_configured_and_measured(experiment):
    assert set(experiment.measures) <= set(MEASURES)
    names = [variant.name for variant in experiment.variants]
    assert len(set(names)) == len(names)
    for variant in experiment.variants:
        make_config(variant.task, variant.algorithm, variant.preset, 0, dict(variant.changes))
