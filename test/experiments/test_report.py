import csv
import json
from xml.etree import ElementTree

from mher_ros.experiments import plots
from mher_ros.experiments.experiment import narrow
from mher_ros.experiments.jobs import Failure, Job
from mher_ros.experiments.plots import aligned, FIGURES, looks, svg
from mher_ros.experiments.report import Outcome, summary, table_text, write_report
from mher_ros.learning.presets import ALGORITHMS
import numpy as np
import pytest
from tiny_experiment import tiny_experiment, tiny_variant

RECORDS = {
    'relabelled_goals': {
        when: {
            'env_steps': 20,
            'path': [[0.0, 0.0], [1.0, 0.0]],
            'desired': [3.0, 4.0],
            'relabelled': [[0.0, 0.0], [3.0, 0.0]],
        }
        for when in ('early', 'late')
    },
    'goal_distance': {'env_steps': [20, 30], 'relabelled': [4.0, 1.0], 'achieved': [5.0, 2.0]},
    'supervised_loss': {'env_steps': [20, 30], 'loss': [2.0, 1.0], 'return': [-9.0, -5.0]},
}
PLOTS = {
    'relabelled_goals': 'goal_scatter',
    'goal_distance': 'goal_distance',
    'supervised_loss': 'loss_and_return',
}


def outcome(recorder='', failures=(), tasks=('point2d_large', 'reacher'), **more):
    variants = [
        tiny_variant(system, task=task, recorder=recorder)
        for task in tasks
        for system in ('mher', 'her')
    ]
    experiment = narrow(tiny_experiment(*variants, plot=PLOTS.get(recorder, ''), **more))
    results = {
        Job(variant, seed): {
            'rows': [
                {'env_steps': step, 'success_rate': rate * (variant.name == 'mher')}
                for step, rate in ((20, 0.5), (30, 1.0))
            ],
            'record': RECORDS.get(recorder, {}),
            'seconds': 60.0,
        }
        for variant in variants
        for seed in (1, 2)
        if (variant.name, seed) not in failures
    }
    failed = {
        Job(variants[1], seed): Failure('a < b & c', 'Traceback: <somewhere>')
        for _, seed in failures
    }
    return Outcome(experiment, (1, 2), results, failed, 90.0)


def test_everything_is_written_and_the_page_shows_it(tmp_path):
    page = write_report(outcome(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        'curves.csv',
        'curves.png',
        'curves.svg',
        'report.md',
    }
    assert (tmp_path / 'curves.png').read_bytes().startswith(b'\x89PNG')
    ElementTree.fromstring((tmp_path / 'curves.svg').read_text())
    with (tmp_path / 'curves.csv').open() as file:
        lines = list(csv.DictReader(file))
    runs = outcome().results
    assert len(lines) == sum(len(run['rows']) for run in runs.values())
    for job, run in runs.items():
        mine = [line for line in lines if line['seed'] == str(job.seed)]
        mine = [line for line in mine if line['algorithm'] == job.variant.name]
        mine = [line for line in mine if line['task'] == job.variant.task]
        assert [float(line['success_rate']) for line in mine] == [
            row['success_rate'] for row in run['rows']
        ]
        assert [int(line['epoch']) for line in mine] == list(range(1, len(mine) + 1))
    text = page.read_text()
    for expected in (
        'Does it run?',
        'all tasks',
        '(curves.png)',
        '8 of 8',
        '1, 2',
        '8.0 min',
        'relabel.goals=future',
    ):
        assert expected in text


@pytest.mark.parametrize('recorder', RECORDS)
def test_what_was_recorded_is_drawn_and_tabled(recorder, tmp_path):
    found = outcome(recorder)
    write_report(found, tmp_path)
    ElementTree.fromstring((tmp_path / f'{PLOTS[recorder]}.svg').read_text())
    figures = summary(found)['tasks']['reacher']['mher']
    expected = {
        # Goals 5 and 4 away from (3, 4).
        'relabelled_goals': {'early_distance': 4.5, 'late_distance': 4.5},
        'goal_distance': {'first_distance': 4.0, 'last_distance': 1.0},
        'supervised_loss': {'first_loss': 2.0, 'last_return': -5.0, 'correlation': -1.0},
    }[recorder]
    assert {name: figures[name]['value'] for name in expected} == pytest.approx(expected)
    assert '**reacher, recorded**' in table_text(found)


def test_missing_runs_are_shown_everywhere(tmp_path):
    found = outcome(failures=[('her', 1), ('her', 2)], tasks=('point2d_large',))
    page = write_report(found, tmp_path).read_text()
    assert 'Incomplete: 2 of 4 runs are missing.' in page
    assert 'seed 1: a < b & c' in page
    assert 'Traceback: <somewhere>' in page
    plain = json.loads(json.dumps(summary(found)))
    assert plain['complete'] is False
    assert plain['failures'] == {
        'point2d_large, her, seed 1': 'a < b & c',
        'point2d_large, her, seed 2': 'a < b & c',
    }
    assert list(plain['tasks']['point2d_large']) == ['mher']


def test_an_experiment_without_any_result_still_has_a_page(tmp_path):
    found = outcome()
    page = write_report(Outcome(found.experiment, (1, 2), {}, {}, 1.0), tmp_path).read_text()
    assert 'Incomplete: 8 of 8 runs are missing.' in page


def test_pictures_of_the_same_runs_are_the_same_bytes():
    found = outcome()
    first, second = (svg(FIGURES['curves'][0](found.experiment, found.results)) for _ in range(2))
    assert first == second


def test_a_run_that_ended_early_keeps_its_last_value():
    steps, values = aligned([([10, 20, 30], [0.1, 0.2, 0.3]), ([20], [0.9])])
    assert steps.tolist() == [10, 20, 30]
    assert np.array_equal(values, [[0.1, 0.2, 0.3], [np.nan, 0.9, 0.9]], equal_nan=True)


def test_every_algorithm_has_a_look_of_its_own():
    assert set(ALGORITHMS) <= set(plots.ALGORITHMS)
    assert len({colour for colour, _ in plots.ALGORITHMS.values()}) == len(plots.ALGORITHMS)
    studied = looks([f'alpha {value}' for value in (0, 1, 3, 5, 7)])
    assert len({tuple(look.values()) for look in studied.values()}) == 5
    assert looks(['her', 'mher'])['mher'] == looks(['mher'])['mher']
