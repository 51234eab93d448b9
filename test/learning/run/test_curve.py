from mher_ros.learning.run.progress import curve_of
import numpy as np
import pytest


@pytest.mark.parametrize('missing', [None, '', float('nan')])
def test_an_evaluation_without_a_figure_is_no_perfect_one(missing):
    rows = [
        {'env_steps': 25, 'success_rate': 0.5, 'final_error': missing},
        {'env_steps': 50, 'success_rate': missing, 'final_error': 0.1},
        {'env_steps': '75', 'success_rate': '0', 'final_error': 0.0, 'updates': 3},
    ]
    np.testing.assert_array_equal(curve_of(rows), [[75.0, 0.0, 0.0]])
    assert curve_of([]).shape == (0, 3)
