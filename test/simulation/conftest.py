"""Every model that is shown, made once."""

import functools

from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.tasks import make
import pytest

MODELS = (
    'fetch_reach',
    'sawyer_reach',
    'reacher',
    'point2d_large',
    'point2d_four_room',
    'fetch_reach joints',
    'sawyer_reach joints',
)


@functools.cache
def load(name):
    """Return (model, names of its robot's joints)."""
    task, _, joints = name.partition(' ')
    if joints:
        plant = JointPlant(task)
        return plant.model, plant.joint_names
    env = make(task)
    env.reset(seed=0)
    return env.scene()[0], env.joint_names


@pytest.fixture(params=MODELS)
def shown(request):
    """Return (model, names of its robot's joints) of one of all models that are shown."""
    return load(request.param)
