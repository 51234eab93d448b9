"""Commands are those that were recorded: rebuilding the command path changes none of them."""

import numpy as np
import pytest
from recorded_commands import CASES, PATH, told

SAME = 1e-6
"""Of positions and velocities, on any machine [m, rad, m/s or rad/s]."""


@pytest.mark.parametrize(('name', 'output'), CASES)
def test_commands_are_those_that_were_recorded(name, output):
    with np.load(PATH) as recorded:
        np.testing.assert_allclose(told(name, output), recorded[f'{name} {output}'], atol=SAME)
