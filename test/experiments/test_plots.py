import io

from mher_ros.experiments.experiment import find_experiment
from mher_ros.experiments.plots import authors_curve, panels
import numpy as np
import pytest


def curve(experiment, task, system):
    (variant,) = [
        one
        for one in find_experiment(experiment).variants
        if (one.task, one.name) == (task, system)
    ]
    return authors_curve(variant)


@pytest.mark.parametrize(('system', 'mean'), [('mher', 0.935), ('her', 0.63), ('ddpg', 0.21)])
def test_their_code_scores_what_is_known_of_it(system, mean):
    steps, rates = curve('benchmark', 'point2d_large', system)
    assert np.mean(rates) == pytest.approx(mean, abs=0.01)
    # 20 random episodes, then 30 of 100 steps.
    assert (steps[0], steps[-1], len(steps)) == (2100, 5000, 30)


def test_each_of_the_two_states_of_their_code_goes_with_its_preset():
    newest = curve('paper_point2d', 'point2d_large', 'mher')
    older = curve('paper_point2d', 'point2d_large', 'mher paper_2021')
    assert newest[1][0] == 0.36
    assert older[1][0] == 0.19


def test_what_they_did_not_run_has_no_curve():
    assert curve('benchmark', 'reacher', 'mher') is None
    assert curve('benchmark', 'point2d_large', 'cher') is None
    assert curve('alpha', 'point2d_large', 'alpha 0') is None


@pytest.mark.parametrize('count', [1, 6, 19])
@pytest.mark.parametrize('tasks', [1, 3])
def test_a_legend_keeps_within_the_figure_and_leaves_the_panels_their_room(count, tasks):
    with panels(['task'] * tasks) as (figure, axes):
        for ax in axes:
            for number in range(count):
                ax.plot([0, 1], [0, number], label=f'system {number}, achieved goals')
    figure.savefig(io.BytesIO(), format='png')  # what is outside is laid out by drawing
    box = figure.legends[0].get_window_extent()
    assert 0.0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0.0 <= box.y0
    assert axes[0].get_window_extent().height / figure.dpi > 2.0
