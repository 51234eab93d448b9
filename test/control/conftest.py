"""The arms that come with this package, with the models that their simulations have."""

from arm_models import load_arm
from mher_ros.robots.robot import arm_names
import pytest


@pytest.fixture(params=arm_names())
def any_arm(request):
    """Return (robot, its model) of each arm in turn."""
    return load_arm(request.param)


@pytest.fixture
def arm():
    """Return a function that gives (robot, its model) by name."""
    return load_arm
