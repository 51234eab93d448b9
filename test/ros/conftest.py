"""Real nodes over real DDS: a ROS domain of the test's own, and processes that end with it."""

import contextlib
import importlib.util

from proportional_policy import write_proportional_policy
import pytest
from ros_world import open_world
from tiny_runs import Run, tiny_config

WITHOUT_ROS = importlib.util.find_spec('rclpy') is None

NEEDS_ROS = 'needs ROS 2: an installation, or the wheels of PyPI'


class NeedsRos(pytest.Module):
    """A file of tests where there is no ROS."""

    def collect(self):
        pytest.skip(NEEDS_ROS, allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    text = module_path.read_text()
    if WITHOUT_ROS and ('rclpy' in text or 'pytestmark = pytest.mark.ros' in text):
        return NeedsRos.from_parent(parent, path=module_path)
    return None


def pytest_runtest_setup(item):
    if WITHOUT_ROS and item.get_closest_marker('ros'):
        pytest.skip(NEEDS_ROS)


@pytest.fixture
def world():
    """Return a ROS domain of this test's own."""
    with open_world() as world:
        yield world


@pytest.fixture(scope='module')
def shared_world():
    """Return a ROS domain that the tests of a file share."""
    with open_world() as world:
        yield world


@pytest.fixture(scope='module')
def shared_worlds():
    """Return a function that opens one more of those."""
    with contextlib.ExitStack() as worlds:
        yield lambda: worlds.enter_context(open_world())


@pytest.fixture(scope='session')
def in_process(tmp_path_factory):
    """Return a function that does the same tiny run in this process, without ROS."""
    done = {}

    def run(task='point2d_large', export=True, **changes):
        from mher_ros.learning.run.session import start_training

        key = (task, export, *sorted(changes.items()))
        if key not in done:
            folder = tmp_path_factory.mktemp('in_process') / 'run'
            start_training(folder, tiny_config(task, **changes), export=export)
            done[key] = Run(folder)
        return done[key]

    return run


@pytest.fixture(scope='session')
def tiny():
    """Return a function that makes the configuration of a tiny run."""
    return tiny_config


@pytest.fixture
def run_in():
    """Return a function that reads a run's folder."""
    return Run


@pytest.fixture(scope='session')
def policy(tmp_path_factory):
    """Return a policy file that leads Fetch, which nobody had to train."""
    return write_proportional_policy(tmp_path_factory.mktemp('policy') / 'policy.onnx')


@pytest.fixture
def deploy(world, policy):
    """Return a function that deploys the policy on an arm."""
    from deployed_policy import DeployedPolicy  # needs ROS

    all_deployed = []

    def start(output='twist', **options):
        all_deployed.append(DeployedPolicy(world, policy, output, **options))
        return all_deployed[-1]

    yield start
    for deployed in all_deployed:
        deployed.close()
