"""An arm that is led to goals without ROS: it does as it is told, unless a test says otherwise."""

import functools

from arm_models import load_arm
from mher_ros.control.reach import Reach
from mher_ros.control.workspace import Workspace
from mher_ros.tasks import make
import numpy as np

TICK = 0.01
"""Time between two states unless a test says otherwise [s]."""
GAIN = 0.4
SECOND = 1_000_000_000
"""In nanoseconds."""


class LedArm:
    """One arm, its controller, and a clock that only the test moves."""

    def __init__(self, output, name='fetch', task=None, policy=None, box=None, **options):
        self.robot, self.model = load_arm(name)
        self.interface = interface_of(task or self.robot.simulation_task)
        self.policy = policy or proportional(self.interface)
        self.asked = []
        """When the policy was asked."""
        self.workspace = Workspace(
            self.interface.goal_low,
            self.interface.goal_high,
            self.robot.workspace.origin,
            self.robot.workspace.scale,
            box or (self.robot.box and (self.robot.box.low, self.robot.box.high)),
        )
        self.output = output
        self.reach = Reach(
            self._ask, self.interface, self.model, self.workspace, output, **options
        )
        self.guard = self.reach.guard
        home = self.robot.home
        self.positions = np.array([home.get(joint, 0.0) for joint in self.model.state_names])
        self.velocities = np.zeros(len(self.positions))
        self.now, self.stamp = 100.0, 1_000 * SECOND
        self.commands = []
        """Commands, each with its time."""
        self.told = None
        self.is_stuck = False
        self.delay = 0.0
        """Time after which it does as it is told [s]."""
        self.noise = 0.0
        """Of the joints that are told [rad]."""
        self._random = np.random.default_rng(3)

    @property
    def tool(self):
        return self.model.tool(self.positions, self.velocities)[0]

    def start(self, goal=None):
        """Tell a state and a goal: by default one 10 cm from the tool."""
        self.tell_state()
        goal = self.tool + (0.06, 0.06, 0.05) if goal is None else goal
        self.reach.take_goal(self.now, goal, 'project')

    def tell_state(self, positions=None, velocities=None, stamp=None):
        """Tell where the arm is, unless told otherwise; return whether it may be answered."""
        noise = self.noise * self._random.standard_normal(len(self.positions))
        return self.reach.take_state(
            self.now,
            self.stamp if stamp is None else stamp,
            self.positions + noise if positions is None else positions,
            self.velocities.copy() if velocities is None else velocities,
        )

    def pass_time(self, seconds):
        """Let the arm go on as it was told last."""
        self.now += seconds
        self.stamp += round(seconds * SECOND)
        before = self.positions.copy()
        told = self._heard()
        if told is not None and not self.is_stuck:
            self._move(told, seconds)
        self.velocities = (self.positions - before) / seconds

    def tick(self, seconds=TICK):
        """Let time pass, tell a good state, and return what it is answered with."""
        self.pass_time(seconds)
        self.tell_state()
        return self.answer()

    def run(self, ticks, seconds=TICK):
        """Return the answers to so many states."""
        return [self.tick(seconds) for _ in range(ticks)]

    def answer(self):
        command = self.note(self.reach.tick(self.now))
        self.reach.think(self.now)
        return command

    def brake(self):
        """Let time pass without states until nothing more leaves; return the last command."""
        while self.reach.is_moving:
            self.pass_time(TICK)
            self.answer()
        return self.commands[-1][1]

    def note(self, command):
        if command is not None and self.output != 'none':
            self.told = command
        if command is not None:
            self.commands.append((self.now, command))
        return command

    def _heard(self):
        if not self.delay:
            return self.told
        before = self.now - self.delay
        return next((told for time, told in reversed(self.commands) if time <= before), None)

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
        self.positions[:count] += np.clip(speeds, -most, most) * seconds


def joint_velocities(model, positions, tool_velocity):
    """Return velocities of the commanded joints (k,) that move the tool so: smallest squares."""
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
    """Return a policy that goes straight to the goal, slower as it gets near."""
    first = interface.achieved_index[0]
    scales = np.array([field.scale for field in interface.action[:3]])

    def act(observation, goal):
        action = np.zeros(len(interface.action), np.float32)
        way = goal - observation[first : first + 3]
        action[:3] = np.clip(gain * way / scales, -1.0, 1.0)
        return action

    return act
