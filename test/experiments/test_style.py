import io

from mher_ros.experiments.plots.style import panels
import pytest


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
