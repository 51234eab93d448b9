"""The examples, run as a person runs them."""

from pathlib import Path
import re
import sys

import mher_ros
import pytest
from ros_peer import renaming

pytestmark = pytest.mark.ros

EXAMPLES = Path(mher_ros.__file__).parent.parent / 'examples'


@pytest.fixture(scope='module')
def deployed(shared_world, policy):
    """Return a function that runs an example in the namespace of a simulated Fetch's policy."""
    remap = {'__ns': '/left'}
    shared_world.node('sim_node', remap, robot='fetch')
    patient = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}
    node = shared_world.node('policy_node', remap, robot='fetch', policy=str(policy), **patient)
    node.wait_for('active: waiting for goals')
    return lambda name, *words: shared_world.start(
        sys.executable, EXAMPLES / name, *words, *renaming(remap)
    )


@pytest.mark.slow
def test_send_goals_tells_how_near_the_tool_got(deployed):
    run = deployed('send_goals.py', '--timeout', 40, '1.25', '0.65', '0.6', '1.4', '0.85', '0.5')
    for goal in (r'\[1.25, 0.65, 0.6\]', r'\[1.4, 0.85, 0.5\]'):
        told = run.wait_for(f'{goal}: reached, ', patience=60.0)
        assert float(re.search(r', ([0-9.]+) mm away', told)[1]) < 20.0
    assert run.end() == 0


@pytest.mark.slow
def test_send_goals_does_not_wait_for_a_goal_that_is_refused(deployed):
    run = deployed('send_goals.py', '--timeout', 1000, '9', '9', '9')
    run.wait_for(r'\[9.0, 9.0, 9.0\]: the goal was refused \(outside_workspace\): ')
    assert run.end() == 1


def test_send_goals_takes_whole_goals_only(deployed):
    wrong = deployed('send_goals.py', '1', '2')
    wrong.wait_for('three numbers for each goal are expected, got 2')
    assert wrong.end() == 2
