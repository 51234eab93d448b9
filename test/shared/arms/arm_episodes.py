"""Actions to try on an arm, and what it told compared."""

import numpy as np


def actions_for(task, count, seed=0):
    size = (count, len(task.interface.action))
    return np.random.default_rng(seed).uniform(-1.2, 1.2, size)


def assert_same(one, two):
    assert one.keys() == two.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], two[key])
