"""The benchmark of growth: its ratios, what it prepares, and the command."""

import dataclasses
import inspect
import json
import subprocess
import sys

from mher_ros.bench.measured import BenchError
from mher_ros.bench.scale import along, figures_of, measure, ratios, table_of
from mher_ros.bench.scale_axes import AXES, EPISODE_STEPS, UPDATES
import numpy as np
import pytest


def test_ratios_are_those_of_medians_to_the_default():
    assert ratios({1: [2.0, 1.0, 60.0], 3: [4.0, 70.0, 3.0], 10: [9.0, 8.0, 8.0]}, 3) == {
        1: 0.5,
        3: 1.0,
        10: 2.0,
    }


def test_figures_tell_memory_and_growth():
    seconds = {
        'replay': {10_000: [2.0], 100_000: [2.0], 1_000_000: [3.0]},
        'batch': {64: [1.0], 256: [2.0]},
    }
    memory = {10_000: 1.0, 100_000: 5.0, 1_000_000: 54.0}
    assert figures_of(seconds, memory) == {
        'replay_mb_at_1e6': 54.0,
        'update_ratio_1e6_vs_1e4': 1.5,
        'replay_mb': {'10000': 1.0, '100000': 5.0, '1000000': 54.0},
        'update_ratio_by_transitions': {'10000': 1.0, '100000': 1.0, '1000000': 1.5},
        'update_ratio_by_batch': {'64': 1.0, '256': 2.0},
    }


def test_only_the_table_of_the_replay_tells_memory():
    memory = {10_000: 0.54}
    replay = table_of(AXES['replay'], {10_000: [0.002]}, memory)
    assert replay.rows == (('10,000', '0.5', '2', '1.00'),)
    goals = table_of(AXES['goals'], {25: [0.5], 100: [2.0]}, memory)
    assert goals.rows == (('25', '500', '0.25'), ('100', '2,000', '1.00'))
    assert len(replay.header) == 4 and len(goals.header) == 3


def test_a_sample_is_the_time_of_one_of_the_things_timed():
    now, calls = 0.0, []

    def prepare(value):
        def run():
            nonlocal now
            now += value
            calls.append(value)

        return run, 4

    axis = dataclasses.replace(
        AXES['goals'], values=(8, 20), prepare=prepare, clock=lambda: now, every=3
    )
    assert along(axis, 7) == {8: [2.0, 2.0], 20: [5.0, 5.0]}
    assert calls == [8, 20] * 3


def test_every_axis_holds_its_default():
    assert all(axis.default in axis.values for axis in AXES.values())
    assert len({axis.figure for axis in AXES.values()}) == len(AXES)


def test_an_unknown_axis_is_refused_by_name():
    with pytest.raises(BenchError, match="no axis 'moon'; it has replay, members"):
        measure(1, ['moon'])


def prepared(name, value):
    """Return what is called, how many of the things timed it does, and the learner in it."""
    run, count = AXES[name].prepare(value)
    return run, count, inspect.getclosurevars(run).nonlocals['agent']


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'value', 'option'),
    [
        ('members', 2, lambda config: config.model.members),
        ('rollout', 3, lambda config: config.relabel.steps),
        ('batch', 48, lambda config: config.agent.batch),
    ],
)
def test_updates_are_those_of_a_learner_with_the_value(name, value, option):
    run, count, agent = prepared(name, value)
    assert option(agent._config) == value != AXES[name].default
    run()
    assert agent.updates == count == UPDATES


@pytest.mark.slow
def test_updates_draw_from_as_many_transitions_as_are_told():
    _, _, agent = prepared('replay', 10_000)
    assert len(agent.replay) == 10_000


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'updates'), [('collecting', 0), ('training', 3)])
def test_steps_are_counted_over_all_arms(name, updates):
    run, count, agent = prepared(name, 3)
    held = len(agent.replay)
    run()
    assert len(agent.replay) - held == count == 3 * EPISODE_STEPS
    assert agent.updates == updates


def test_what_is_not_in_the_product_is_said_to_be_so():
    assert all('not built in' in AXES[name].title for name in ('collecting', 'training'))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'values'),
    [
        ('rollout', (0, 5)),
        ('goals', (25, 26)),
        ('training', (1, 3)),
    ],
)
def test_axes_can_be_measured(name, values):
    found = along(dataclasses.replace(AXES[name], values=values), 1)
    assert list(found) == list(values)
    assert all(len(turns) == 1 and turns[0] > 0.0 for turns in found.values())


@pytest.mark.slow
def test_the_command_tells_ratios_of_its_samples(tmp_path):
    command = [sys.executable, '-m', 'mher_ros', 'bench', 'scale', '--rounds', '1', '--json']
    result = subprocess.run(
        [*command, '--axes', 'replay,collecting', '--out', tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    samples = told['samples']['update_seconds_by_transitions']
    ratio = np.median(samples['1000000']) / np.median(samples['10000'])
    assert told['update_ratio_1e6_vs_1e4'] == pytest.approx(ratio)
    assert told['update_ratio_by_transitions']['1000000'] == pytest.approx(ratio)
    samples = told['samples']['collecting_seconds_by_arms']
    ratio = np.median(samples['16']) / np.median(samples['1'])
    assert told['collecting_ratio_by_arms']['16'] == pytest.approx(ratio)
    # 14 numbers of 4 bytes a transition, and one observation more an episode: 53.8.
    assert 50.0 < told['replay_mb_at_1e6'] < 70.0
    assert told['replay_mb']['10000'] < told['replay_mb']['100000'] < told['replay_mb_at_1e6']
    assert 'update_ratio_by_batch' not in told
    assert (tmp_path / 'scale.png').exists()
