"""Commands are made at the rate that the option or the robot file asks for."""

from fake_arm import FakeArm
from mher_ros.control.stop_latch import StopLatch
from mher_ros.files import share_folder
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.deploy.deployment import Deployment, PolicyOptions
import numpy as np
import pytest
import yaml

pytestmark = pytest.mark.ros

SECOND = 1_000_000_000
"""In nanoseconds."""


@pytest.fixture
def rate_of(world, policy):
    """Return a function: the rate of commands if there are ``rate`` states in a second [Hz]."""
    peer = world.peer()
    arm = FakeArm(peer, 'twist')

    def measure(rate, **options):
        # No output: an arm that never moves is not missed.
        options = PolicyOptions(policy=str(policy), output='none', **options)
        deployment = Deployment(
            peer.node, options, StopRequest(), StopLatch(), Latency, lambda: None
        )
        home, names = deployment.robot.home, deployment.arm.state_names
        positions = np.array([home.get(name, 0.0) for name in names])
        path, commands, goal = deployment.path, 0, None
        waits = rate // 2  # until the arm has stood still
        for number in range(rate + waits):
            now = 100.0 + number / rate  # the clock of this test
            path.take_state(now, round(now * SECOND), positions, np.zeros(len(names)))
            if goal is None:
                goal = deployment.workspace.low
                deployment.controller.take_goal(now, goal)
            if path.tick(now) is not None:
                commands += number >= waits
                path.plan(now)
        deployment.close()
        return commands

    yield measure
    arm.close()


def test_commands_are_made_at_the_rate_of_the_option(rate_of):
    assert rate_of(500, robot='fetch', command_rate=500.0) == pytest.approx(500, abs=5)
    assert rate_of(500, robot='fetch', command_rate=50.0) == pytest.approx(50, abs=3)


def test_commands_are_made_at_the_rate_of_the_robot_file(rate_of, tmp_path):
    text = yaml.safe_load((share_folder() / 'config' / 'robots' / 'fetch.yaml').read_text())
    path = tmp_path / 'fetch.yaml'
    path.write_text(yaml.safe_dump({**text, 'command_rate': 500.0}))
    assert rate_of(500, robot=str(path)) == pytest.approx(500, abs=5)
