"""With use_sim_time an arm moves, and is waited for, by simulated time."""

import threading
import time

from fake_arm import vector
from mher_ros.ros.common.status import Level
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.time import Time
from rosgraph_msgs.msg import Clock

pytestmark = pytest.mark.ros

PACE = 0.2
"""Simulated seconds per second."""
TICK = 0.002
"""Simulated time between two messages of the clock [s]."""
RATE = 100.0
"""States, and so commands, in a simulated second."""
SPEED = 0.25
"""Default cap on the tool's [m/s]."""
WINDOW = 20
"""Commands over which a speed is judged."""


class Simulation:
    """A clock that is slower than the wall's."""

    def __init__(self, peer):
        self.now, self.pace = 50.0, PACE
        self.stands = False
        self._publisher = peer.node.create_publisher(Clock, '/clock', 10)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._closing.set()
        self._thread.join()

    def _run(self):
        last = time.monotonic()
        while not self._closing.wait(TICK / self.pace):
            now = time.monotonic()
            if not self.stands:
                self.now += self.pace * (now - last)
                self._publisher.publish(Clock(clock=Time(seconds=self.now).to_msg()))
            last = now


def move(deployed):
    """Send goals until the arm moves: on a busy machine the clock itself may come late."""
    start = deployed.arm.tool

    def is_on_its_way():
        deployed.send(deployed.far_goal())
        deployed.arm.wait_for_states(20)
        return np.linalg.norm(deployed.arm.tool - start) > 0.02

    deployed.peer.wait_until(is_on_its_way, 'the arm moves')


@pytest.fixture
def simulation(world):
    simulation = Simulation(world.peer())
    yield simulation
    simulation.close()


def test_speed_and_rate_hold_in_simulated_time(deploy, simulation):
    # Time-outs are simulated, too: on a busy machine they last longer.
    deployed = deploy('joint_trajectory', simulated=lambda: simulation.now, use_sim_time=True)
    arm = deployed.arm
    arm.rate = PACE * RATE
    deployed.wait_until_active()
    arm.wait_for_states(5)
    began = simulation.now
    deployed.go()
    deployed.wait_until_reached()
    taken = simulation.now - began
    commands = arm.commands
    still = np.zeros(len(arm.positions))
    tools = np.array(
        [
            arm.model.tool(np.array(told.points[0].positions), still)[0]
            for told in commands.messages
        ]
    )
    spans = PACE * (np.array(commands.times[WINDOW:]) - commands.times[:-WINDOW])
    displacements = np.linalg.norm(tools[WINDOW:] - tools[:-WINDOW], axis=1)
    # A message may be held up on its way; by the wall clock it would be five times too fast.
    assert (displacements <= SPEED * (spans + 0.05)).all()
    assert displacements.max() > 0.5 * SPEED * WINDOW / RATE
    assert 0.5 * RATE < len(commands.messages) / taken < 1.2 * RATE


def test_a_deactivated_arm_brakes_in_simulated_time(deploy, simulation):
    deployed = deploy('twist', simulated=lambda: simulation.now, use_sim_time=True)
    arm, simulation.pace = deployed.arm, 1.0
    deployed.wait_until_active()
    arm.wait_for_states(5)
    deployed.go()
    twists = deployed.commands.messages

    def speeds():
        return [np.linalg.norm(vector(message.twist.linear)) for message in twists[before:]]

    before = 0
    deployed.peer.wait_until(lambda: speeds()[-1:] > [0.6 * SPEED], 'a fast motion')
    before = len(twists) - 1
    assert deployed.change('deactivate')
    deployed.peer.wait_until(lambda: speeds()[-1] == 0.0, 'rest')
    # By at most 1 m/s2, which takes over 0.15 s: no command stops the arm at once.
    steps = -np.diff(speeds())
    assert steps.max() <= 1.0 / RATE + 1e-6
    assert not any('clock has stopped' in line for line in deployed.node.lines)


def test_a_clock_that_stands_still_stops_the_arm(deploy, simulation):
    deployed = deploy(simulated=lambda: simulation.now, use_sim_time=True)
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    move(deployed)
    simulation.stands = True
    deployed.node.wait_for('the simulated clock has stopped')
    deployed.peer.wait_until(
        lambda: time.monotonic() - deployed.commands.times[-1] > 0.4, 'no more commands'
    )
    status = deployed.wait_for_status(lambda status: status.state == 'clock_stopped')
    assert status.level is Level.WARN
    simulation.stands = False
    deployed.node.wait_for('there is no goal')
    move(deployed)


def test_simulated_time_can_be_switched_on_while_the_arm_moves(deploy, simulation):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()
    for is_simulated in (True, False):
        value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=is_simulated)
        deployed.peer.ask(
            SetParameters,
            'policy_node/set_parameters',
            parameters=[Parameter(name='use_sim_time', value=value)],
        )
        deployed.commands.wait_for()
        deployed.arm.wait_for_states(20)
    deployed.wait_until_reached()
