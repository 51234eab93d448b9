"""A policy that leads an arm's tool to goals: what the arm is told, and when."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math

from mher_ros.control.arm_model import ArmModel
from mher_ros.control.fit import Observer
from mher_ros.control.joint_motion import MotionError
from mher_ros.control.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.references import JointReference, Reference, ToolReference
from mher_ros.control.safety import Guard, SafetyOptions, Status
from mher_ros.control.workspace import Workspace
from mher_ros.interface import TaskInterface
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['Command', 'Reach', 'REFERENCES']

Vector = NDArray[np.float64]
Policy = Callable[[Vector, Vector], NDArray[np.float32]]

REFERENCES: dict[str, Callable[[ArmModel], Reference]] = {
    'twist': lambda arm: ToolReference(arm, tied=True),
    'pose': lambda arm: ToolReference(arm, tied=False),
    'joint_trajectory': lambda arm: JointReference(arm, tied=False),
    'joint_position': lambda arm: JointReference(arm, tied=False),
    'joint_velocity': lambda arm: JointReference(arm, tied=True),
    'none': lambda arm: ToolReference(arm, tied=False),
}
"""What is led towards the goal, by the kind of command that the arm takes."""

RESPONSE = {'tool_displacement': 0.62, 'target_displacement': 1.0}
"""
Share of an action that the tool has gone when the next one comes, by the meaning of actions.

In training a tool is led towards a place 50 mm away and gets 30 to 33 mm near to it.
"""
BRAKING = 0.8
"""Share of the acceleration that is counted on to come to rest at the goal."""
BLIND = 0.02
"""How far the tool is sent, at most, while no joint state tells that it moves [m]."""
NOTHING: Vector = np.empty(0)
JUMPS = (Status.JOINTS_JUMPED, Status.CLOCK_JUMPED)
"""When the state before is believed rather than the latest."""
EARLY = 0.5
"""A policy's step is due by the state nearest to its time: up to half a tick early."""


@dataclasses.dataclass(frozen=True)
class Command:
    """What an arm is told, in its base frame; which part of it is up to the arm."""

    tool_position: Vector
    """(3,) [m]"""
    tool_velocity: Vector
    """(3,) [m/s]"""
    orientation: Vector
    """(4,) (w, x, y, z)"""
    joint_positions: Vector | None
    """(k,) [rad or m]"""
    joint_velocities: Vector | None
    """(k,) [rad/s or m/s]"""
    dt: float
    """Time since the command before [s]."""
    is_stop: bool = False
    """Whether the arm is to stay there: nothing follows until there is a reason to move."""


class Reach:
    """
    Leads one arm to one goal after the other.

    Hand it every joint state and call ``tick``: it returns what to tell the arm, or nothing. Then
    call ``think``. When there is a reason not to move, it returns one stop and then nothing. When
    that is over, it starts from where the arm is.

    Times ``now`` are those of a monotonic clock [s].
    """

    def __init__(
        self,
        policy: Policy,
        interface: TaskInterface,
        arm: ArmModel,
        workspace: Workspace,
        output: str,
        *,
        limits: MotionLimits | None = None,
        safety: SafetyOptions | None = None,
        command_rate: float = 100.0,
        stop: str | None = None,
    ) -> None:
        """
        Put policy and arm together; FitError if they do not go together.

        ``stop`` is the reason of a stop that was latched before.
        """
        self._policy, self._arm, self.workspace = policy, arm, workspace
        self.limits = limits or MotionLimits()
        self.guard = Guard(
            safety or SafetyOptions(), arm.state_names, arm.lower, arm.upper, stop=stop
        )
        self._leash = (safety or SafetyOptions()).leash
        self._observe = Observer(interface)
        self._axes = np.array([field.scale for field in interface.action[:3]])
        self._axes *= RESPONSE[interface.action_meaning] / interface.control_period
        self._period, self._tick = interface.control_period, 1.0 / command_rate
        self.threshold = interface.success_threshold * workspace.scale
        """Distance from the goal that counts as reached [m]."""
        box = workspace.box_low, workspace.box_high
        if interface.action_meaning == 'target_displacement':
            # In training the target never left the goals' box, so the policy knows nothing else.
            box = workspace.low, workspace.high
        self._limiter = MotionLimiter(self.limits, *box)
        self._reference = REFERENCES[output](arm)
        self._follows = output != 'none'
        self._moving = False
        self._last = self._due = 0.0
        self._goal: Vector | None = None
        self._positions = NOTHING
        self._tool: Vector | None = None
        self._has_thought = False
        self._blind = self._sent = 0.0
        self.late = 0
        """Steps of the policy that came more than a control period late."""

    @property
    def goal(self) -> Vector | None:
        """Where the tool is to go (3,) [m] in the base frame, if anywhere."""
        return self._goal if self.guard.has_goal else None

    @property
    def tool(self) -> Vector | None:
        """Where the tool is (3,) [m] in the base frame; None until the first state."""
        if self._tool is None and self._positions.size:
            self._tool = self._arm.tool_position(self._positions)
        return self._tool

    @property
    def distance(self) -> float:
        """How far the tool is from its goal [m]; NaN without a goal or a state."""
        goal, tool = self.goal, self.tool
        return math.nan if goal is None or tool is None else _length(tool - goal)

    @property
    def reached(self) -> bool:
        """Whether the tool is at its goal."""
        return self.distance <= self.threshold

    @property
    def velocity(self) -> Vector | None:
        """What is asked of the tool (3,) [m/s]; None while nothing is."""
        return self._limiter.velocity if self._moving else None

    def take_goal(self, now: float, goal: ArrayLike, outside: str = 'reject') -> Vector:
        """Take a goal (3,) [m] and return it as it is taken; GoalError says why it is not."""
        taken = self.workspace.admit(goal, outside)
        self.guard.take_goal(now)
        self._goal = taken
        return taken

    def take_state(self, now: float, stamp: int, positions: Vector, velocities: Vector) -> bool:
        """Take a joint state (n,), stamped ``stamp`` [ns]; return whether it may be answered."""
        if not self.guard.take_state(now, stamp, positions, velocities):
            return False
        if self._moving and self.guard.status in JUMPS:
            return False  # One wrong reading must not be where the arm is told to stop.
        still = np.array_equal(positions, self._positions)
        self._blind, self._sent = self._blind + self._sent if still else 0.0, 0.0
        self._positions, self._velocities, self._tool = positions, velocities, None
        return True

    def take_bad_state(self, now: float, reason: str) -> None:
        """Take note of a joint state that cannot be read."""
        self.guard.take_bad_state(now, reason)

    def restart(self) -> None:
        """Forget states and goal, but never a stop."""
        self.guard.restart()
        self._moving, self._positions, self._tool = False, NOTHING, None

    def halt(self, reason: str) -> Command | None:
        """Drop the goal and return a stop, if the arm is moving."""
        self.guard.drop_goal(reason)
        return self._rest()

    def watch(self, now: float) -> Command | None:
        """Return a stop if there is a reason for one: between states, when none come."""
        return None if self.guard.judge(now) is Status.RUNNING else self._rest()

    def tick(self, now: float) -> Command | None:
        """
        Return what the arm is to be told in answer to the latest state, if anything.

        Only what depends on that state and on the time is worked out here; call ``think`` when
        the command is on its way.
        """
        if self.guard.judge(now) is not Status.RUNNING:
            return self._rest()
        if not self._moving:
            self._begin(now)
        if now <= self._last:
            return None  # No time has passed: what was told last still counts.
        if not self._has_thought:
            self.think(now)
            if self.guard.status is not Status.RUNNING:
                return self._rest()
        self._has_thought = False
        dt = min(now - self._last, self.limits.longest_tick)
        self._last = now
        reference = self._reference
        velocity = self._limiter.next(reference.tool_position, self._wanted, dt)
        try:
            reference.advance(velocity, dt, self._seen, self._positions)
        except MotionError as error:
            self.guard.fail(str(error))
            return self._rest()
        self._sent += _length(reference.led) * dt
        return self._command(velocity, dt)

    def think(self, now: float) -> None:
        """Work out where to go next; nobody need wait for it."""
        tool = self.tool
        self._has_thought = True
        if tool is None or not self._moving or self.guard.judge(now) is not Status.RUNNING:
            return
        self._seen = tool
        try:
            self._reference.look(self._positions)
            if now >= self._due - EARLY * self._tick:
                self._decide(now)
        except (MotionError, ValueError) as error:  # of the joints' motion, or of the policy
            self.guard.fail(str(error))
            return
        self._wanted = self._within_reason(self._decided)
        if self._follows:
            self._watch_arm(now, tool)

    def _watch_arm(self, now: float, tool: Vector) -> None:
        """Look whether the arm does what it is told."""
        reference, space = self._reference, self.workspace
        behind = math.inf
        if self._blind <= BLIND:
            behind = _length(reference.tool_position - tool)
        self.guard.follow(now, behind, reference.most_ahead)
        out = np.maximum(space.box_low - tool, tool - space.box_high)
        self.guard.stay_inside(max(0.0, float(out.max())))

    def _begin(self, now: float) -> None:
        self._start_over()
        self._limiter.reset()
        self.guard.set_out()
        self._moving = True
        self._last, self._due = now - self._tick, now
        self._has_thought, self._blind, self._sent = False, 0.0, 0.0

    def _rest(self) -> Command | None:
        if not self._moving:
            return None
        self._moving = False
        self._limiter.reset()
        self._start_over()
        return self._command(np.zeros(3), self._tick, is_stop=True)

    def _start_over(self) -> None:
        """Put the reference where the arm is, or can stop; no told velocity takes it far away."""
        _, velocity = self._arm.tool(self._positions, self._velocities)
        share = self.limits.speed / max(self.limits.speed, _length(velocity))
        self._reference.begin(self._positions, self._velocities * share)

    def _decide(self, now: float) -> None:
        """Ask the policy where to."""
        self._due += self._period
        if now > self._due:
            self.late += 1
            self._due = now + self._period
        to_policy = self.workspace.to_policy
        observation = self._observe(
            to_policy(self._reference.tool_position),
            self.workspace.velocity_to_policy(self._limiter.velocity),
        )
        action = self._policy(observation, to_policy(self.goal))  # type: ignore[arg-type]
        wanted = action[:3] * self._axes
        if not math.isfinite(wanted.sum()):
            raise ValueError(f'the policy says {action.tolist()}: finite numbers are expected')
        self._decided = self.workspace.velocity_to_arm(wanted)

    def _within_reason(self, wanted: Vector) -> Vector:
        """Return a velocity that the point can be stopped from at the goal, and on its leash."""
        goal, point = self.goal, self._reference.tool_position
        assert goal is not None
        speed = _length(wanted)
        most = math.sqrt(2.0 * BRAKING * self.limits.acceleration * _length(goal - point))
        if speed > most:
            wanted = wanted * (most / speed)
        return self._on_leash(wanted, point - self._seen) if self._follows else wanted

    def _on_leash(self, wanted: Vector, ahead: Vector) -> Vector:
        """Return a velocity with which the point keeps within two leashes of the tool."""
        distance = _length(ahead)
        if distance < self._leash:
            return wanted
        away = float(wanted @ ahead) / distance
        most = math.sqrt(self.limits.acceleration * max(0.0, 2.0 * self._leash - distance))
        return wanted if away <= most else wanted - ahead * ((away - most) / distance)

    def _command(self, velocity: Vector, dt: float, is_stop: bool = False) -> Command:
        reference = self._reference
        return Command(
            reference.tool_position,
            velocity,
            reference.orientation,
            reference.joint_positions,
            reference.joint_velocities,
            dt,
            is_stop,
        )


def _length(vector: Vector) -> float:
    """Return the length of a vector (3,); several times faster than numpy's norm."""
    return math.sqrt(vector @ vector)
