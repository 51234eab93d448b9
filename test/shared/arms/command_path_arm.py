"""An arm behind the command path, without ROS; it follows commands unless a test changes that."""

from collections import deque
import functools

from arm_models import load_arm
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.resting_arm import STILL_FOR
from mher_ros.robots.workspace import Workspace
from mher_ros.tasks import make
import numpy as np

TICK = 0.01
"""Time between two states unless a test says otherwise [s]."""
GAIN = 0.4
SECOND = 1_000_000_000
"""In nanoseconds."""


class CommandPathArm:
    """One arm, its controller, and a clock that only the test moves."""

    def __init__(
        self,
        output,
        name='fetch',
        task=None,
        policy=None,
        box=None,
        avoids_collisions=False,
        **options,
    ):
        self.robot, self.model = load_arm(name, avoids_collisions)
        self.interface = interface_of(task or self.robot.simulation_task)
        self.policy = policy or proportional(self.interface)
        self.asked = []
        """When the policy was asked."""
        self.workspace = Workspace(
            self.interface.goal_low,
            self.interface.goal_high,
            self.robot.workspace.origin,
            self.robot.workspace.scale,
            box or self.robot.box,
        )
        self.output = output
        self.controller = GoalController(
            self._ask, self.interface, self.model, self.workspace, output, **options
        )
        self.path = self.controller.path
        self.monitor = self.path.monitor
        home = self.robot.home
        self.positions = np.array([home.get(joint, 0.0) for joint in self.model.state_names])
        self.velocities = np.zeros(len(self.positions))
        self.now, self.stamp = 100.0, 1_000 * SECOND
        self.told = deque(maxlen=100)
        """Times and joint positions of the last states that were used."""
        self.commands = []
        """Commands, each with its time."""
        self.last_command = None
        self.is_stuck = False
        self.delay = 0.0
        """Delay of commands [s]."""
        self.lag = 0.0
        """Time constant of a first-order lag of joint velocities [s]."""
        self.noise = 0.0
        """Standard deviation of the measured joint positions [rad]."""
        self._random = np.random.default_rng(3)

    @property
    def tool(self):
        return self.model.tool(self.positions, self.velocities)[0]

    def start(self, goal=None):
        """Send states and a goal: by default one 10 cm from the tool."""
        self.rest()
        goal = self.tool + (0.06, 0.06, 0.05) if goal is None else goal
        self.controller.take_goal(self.now, goal, 'project')

    def rest(self):
        """Send the states of an arm that stands still, until a motion may begin."""
        for _ in range(round(STILL_FOR / TICK) + 1):
            self.pass_time(TICK)
            self.send_state()

    def send_state(self, positions=None, velocities=None, stamp=None):
        """Send the state of the arm, or the one given; return whether it is used."""
        noise = self.noise * self._random.standard_normal(len(self.positions))
        told = self.positions + noise if positions is None else positions
        is_used = self.path.take_state(
            self.now,
            self.stamp if stamp is None else stamp,
            told,
            self.velocities.copy() if velocities is None else velocities,
        )
        if is_used:
            self.told.append((self.now, told))
        return is_used

    def pass_time(self, seconds):
        """Let the arm follow its last command."""
        self.now += seconds
        self.stamp += round(seconds * SECOND)
        before = self.positions.copy()
        command = self._current_command()
        if command is not None and not self.is_stuck:
            self._move(command, seconds)
        self.velocities = (self.positions - before) / seconds

    def tick(self, seconds=TICK):
        """Let time pass, send a valid state, and return the command for it, if any."""
        self.pass_time(seconds)
        self.send_state()
        return self.answer()

    def run(self, ticks, seconds=TICK):
        """Return the commands for this number of states."""
        return [self.tick(seconds) for _ in range(ticks)]

    def answer(self):
        """Return the command that is due, if any, when it may be sent."""
        command = self.path.tick(self.now)
        if command is not None and self.now < self.path.leaves_at:
            self.pass_time(self.path.leaves_at - self.now)
        self.note(command)
        self.path.plan(self.now)
        return command

    def brake(self):
        """Let time pass without states until no more commands are sent; return the last one."""
        while self.path.is_moving:
            self.pass_time(TICK)
            self.answer()
        return self.commands[-1][1]

    def note(self, command):
        if command is not None and self.output != 'none':
            self.last_command = command
        if command is not None:
            self.commands.append((self.now, command))
        return command

    def _current_command(self):
        if not self.delay:
            return self.last_command
        before = self.now - self.delay
        return next((sent for time, sent in reversed(self.commands) if time <= before), None)

    def _ask(self, observation, goal):
        self.asked.append(self.now)
        return self.policy(observation, goal)

    def _move(self, command, seconds):
        count = len(self.model.joint_names)
        most = self.model.velocity_limits
        if self.output == 'joint_velocity':
            speeds = command.joint_velocities
        elif self.output in ('joint_position', 'joint_trajectory'):
            speeds = (command.joint_positions - self.positions[:count]) / seconds
        else:
            wanted = command.tool_velocity
            if self.output == 'pose':
                wanted = (command.tool_position - self.tool) / seconds
            speeds = joint_velocities(self.model, self.positions, wanted)
        speeds = np.clip(speeds, -most, most)
        if self.lag:
            before = self.velocities[:count]
            speeds = before + (speeds - before) * min(1.0, seconds / self.lag)
        self.positions[:count] += speeds * seconds


def joint_velocities(model, positions, tool_velocity):
    """Return the smallest joint velocities (k,) for a velocity of the tool (3,)."""
    count = len(model.joint_names)
    columns = [model.tool(positions, one)[1] for one in np.eye(len(positions))[:count]]
    rows = np.array(columns).T
    return rows.T @ np.linalg.solve(rows @ rows.T + 1e-6 * np.eye(3), tool_velocity)


@functools.cache
def interface_of(task):
    env = make(task)
    env.close()
    return env.interface


def proportional(interface, gain=GAIN):
    """Return a policy that moves straight to the goal, with a proportional velocity."""
    first = interface.achieved_index[0]
    scales = np.array([field.scale for field in interface.action[:3]])

    def act(observation, goal):
        action = np.zeros(len(interface.action), np.float32)
        left = goal - observation[first : first + 3]
        action[:3] = np.clip(gain * left / scales, -1.0, 1.0)
        return action

    return act
