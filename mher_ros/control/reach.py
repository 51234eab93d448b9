"""A policy that moves an arm's tool to goals: what the arm is commanded, and when."""

from __future__ import annotations

from collections.abc import Callable
import copy
import dataclasses
import math
from typing import Any

from mher_ros.control.arm_model import ArmModel
from mher_ros.control.fit import Observer
from mher_ros.control.following import Following
from mher_ros.control.joint_motion import MotionError
from mher_ros.control.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.safety import Guard, SafetyOptions, Status
from mher_ros.control.setpoints import JointSetpoint, Setpoint, ToolSetpoint
from mher_ros.control.stop_latch import StopLatch
from mher_ros.control.workspace import Workspace
from mher_ros.interface import TaskInterface
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['Command', 'Reach', 'SETPOINTS']

Vector = NDArray[np.float64]
Policy = Callable[[Vector, Vector], NDArray[np.float32]]

SETPOINTS: dict[str, tuple[type[Setpoint], bool]] = {
    'twist': (ToolSetpoint, True),
    'pose': (ToolSetpoint, False),
    'joint_trajectory': (JointSetpoint, False),
    'joint_position': (JointSetpoint, False),
    'joint_velocity': (JointSetpoint, True),
    'none': (ToolSetpoint, False),
}
"""The set-point that an output commands, and whether it is tied to the measured arm."""

RESPONSE = {'tool_displacement': 0.62, 'target_displacement': 1.0}
"""
Share of an action that the tool has moved when the next one comes, by the meaning of actions.

In training a tool is pulled towards a place 50 mm away and gets 30 to 33 mm near to it.
"""
ARRIVAL = 0.6
"""Share of the acceleration that is counted on to come to rest at the goal."""
GAIN, TIED_GAIN = 20.0, 8.0
"""Speed per distance close to the goal [1/s]; the latter where the arm's delay is in the loop."""
LEAVE = 1.5
"""Distance from the goal, in thresholds, at which the policy takes over from the straight line."""
HOLD, RELEASE = 1e-4, 4e-4
"""Distances from the goal at which the set-point comes to rest, and from which it moves again."""
SAME = 0.02
"""Distance up to which a goal is the same as the one before to the check of progress [m]."""
BLIND = 0.02
"""Commanded displacement without any measured one after which ``follow_timeout`` begins [m]."""
NOTHING: Vector = np.empty(0)
JUMPS = (Status.JOINTS_JUMPED, Status.CLOCK_JUMPED)
"""When the state before is believed rather than the latest."""
EARLY = 0.1
"""Part of a command period by which a state that comes early is answered early."""
GRID = 0.98
"""Part of a period from one command to the next: so they come to meet states of the same rate."""
GRACE = 0.5
"""Part of a command period for which a command waits for a state that is due."""
PAUSE = 2.5
"""Command periods without a command after which an arm is at rest; no less than longest_tick."""
STEP_EARLY = 0.5
"""Part of a command period by which a policy's step may come early."""
LATER, SOONER = 0.5, 0.05
"""Weights of the newest in the time between commands, if it is longer and if it is shorter."""
RECENT = 1.0
"""Age of the last command up to which a motion starts from there [s]; then where the arm is."""


@dataclasses.dataclass(frozen=True)
class Command:
    """What an arm is commanded, in its base frame; which part of it is up to the arm."""

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
    is_stop: bool = False
    """Whether the arm is to stay there: nothing follows until there is a reason to move."""


class Reach:
    """
    Moves one arm to one goal after the other.

    Hand it every joint state, and call ``tick`` for each and from ``due`` on: it returns a command
    or nothing. Then call ``think``. When there is a reason not to move, its commands brake within
    every limit, and after the last, ``is_stop``, it returns nothing.

    A command never asks for more than one command period of motion, however late it is. A motion
    starts at the last command while that is recent, and else at rest where the arm is measured.
    Where states are missing for ``longest_tick`` it brakes, and goes on when they are back.

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
        latch: StopLatch | None = None,
    ) -> None:
        """
        Put policy and arm together; FitError if they do not go together.

        ``latch`` is where stops come from, and may hold one already.
        """
        self._policy, self._arm, self.workspace = policy, arm, workspace
        self.limits = limits or MotionLimits()
        self._safety = safety or SafetyOptions()
        self.guard = Guard(self._safety, arm.state_names, arm.lower, arm.upper, latch=latch)
        self._observe = Observer(interface)
        self._axes = np.array([field.scale for field in interface.action[:3]])
        self._axes *= RESPONSE[interface.action_meaning] / interface.control_period
        self._step, self._period = interface.control_period, 1.0 / command_rate
        self._pause = max(self.limits.longest_tick, PAUSE * self._period)
        self.threshold = interface.success_threshold * workspace.scale
        """Distance from the goal that counts as reached [m]."""
        box = workspace.box_low, workspace.box_high
        if interface.action_meaning == 'target_displacement':
            # In training the target never left the goals' box, so the policy knows nothing else.
            box = workspace.low, workspace.high
        kind, tied = SETPOINTS[output]
        self._setpoint = kind(arm, MotionLimiter(self.limits, *box), self._period, tied)
        self._follows = output != 'none'
        self._moving = False
        self._rests = True  # as commanded last
        self._due = self._sent_at = self._left_at = self._state_at = -math.inf
        self._is_new = False
        self._state_gap, self._gap = math.inf, self._period
        self._step_due = 0.0
        self._goal: Vector | None = None
        self._started: Vector | None = None
        self._finishing = self._holding = False
        self._following = Following()
        self._positions = NOTHING
        self._tool: Vector | None = None
        self._has_thought = False
        self._blind = self._sent = 0.0
        self._before = self._state()
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
    def positions(self) -> Vector:
        """Where the joints are (n,) [rad or m]; empty until the first state."""
        return self._positions

    @property
    def held_orientation(self) -> Vector | None:
        """How the tool is turned (4,) (w, x, y, z) during a motion; None while there is none."""
        return self._setpoint.orientation if self._moving else None

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
        return self._setpoint.tool_velocity if self._moving else None

    @property
    def is_moving(self) -> bool:
        """Whether commands leave: towards a goal, or to brake."""
        return self._moving

    @property
    def due(self) -> float:
        """When the next command may leave; infinite if it takes a goal or a state first."""
        if not self._moving and self.guard.status is not Status.RUNNING:
            return math.inf
        if self._is_new:
            return max(self._due - EARLY * self._period, self._left_at + self._least_gap)
        if not self._moving:
            return math.inf
        # Where states are rarer than commands, or have stopped, none is waited for.
        late = (1.0 + GRACE) * self._period
        waits = self._state_gap < late and self._due < self._state_at + late
        return self._due + (GRACE * self._period if waits else 0.0)

    @property
    def _least_gap(self) -> float:
        return (1.0 - EARLY) * self._period

    def take_goal(self, now: float, goal: ArrayLike, outside: str = 'reject') -> Vector:
        """Take a goal (3,) [m] and return it as it is taken; GoalError says why it is not."""
        taken = self.workspace.admit(goal, outside)
        # The same goal again, give or take noise, makes no progress.
        is_new = self._started is None or _length(taken - self._started) > SAME
        self.guard.take_goal(now, is_new)
        if is_new:
            self._started = taken
        if self._goal is None or not np.array_equal(taken, self._goal):
            self._finishing = self._holding = False
        self._goal = taken
        return taken

    def take_state(self, now: float, stamp: int, positions: Vector, velocities: Vector) -> bool:
        """Take a joint state (n,), stamped ``stamp`` [ns]; return whether it may be answered."""
        if not self.guard.take_state(now, stamp, positions, velocities):
            return False
        if self._moving and self.guard.status in JUMPS:
            return False  # One wrong reading must not be taken for where the arm is.
        still = np.array_equal(positions, self._positions)
        self._blind, self._sent = self._blind + self._sent if still else 0.0, 0.0
        self._positions, self._tool = positions, None
        self._state_gap, self._state_at, self._is_new = now - self._state_at, now, True
        return True

    def take_bad_state(self, now: float, reason: str) -> None:
        """Take note of a joint state that cannot be read."""
        self.guard.take_bad_state(now, reason)

    def restart(self) -> None:
        """Forget states and goal, but never a stop."""
        self.guard.restart()
        self._moving, self._positions, self._tool = False, NOTHING, None

    def tick(self, now: float) -> Command | None:
        """
        Return the command that is due, if any.

        Only what depends on the latest state and on the time is worked out here; call ``think``
        when the command is on its way.
        """
        runs = self.guard.judge(now) is Status.RUNNING
        if not (runs or self._moving) or now < self.due or now < self._left_at + self._least_gap:
            return None
        self._before = self._state()
        if self._moving and not self._setpoint.tied and now - self._sent_at > RECENT:
            # By now the arm may be anywhere: it is not sent back to where it was.
            self._moving, self._rests = False, True
            if not runs:
                return None
        if not self._moving:
            self._begin(now)
        else:
            self._pass(now - self._sent_at)
        sees = now - self._state_at <= self._pause
        if runs and sees and not self._has_thought:
            self.think(now)
            runs = self.guard.status is Status.RUNNING
        if self._rests and not (runs and sees):
            self._moving, self._is_new, self._due = runs, False, now + self._period
            return None
        self._advance(runs and sees and not self._holding)
        runs = self.guard.status is Status.RUNNING
        self._rests = self._setpoint.is_at_rest
        self._moving = runs or not self._rests
        self._has_thought = self._is_new = False
        self._due += GRID * self._period
        self.sent(now, now)
        return self._command(is_stop=not self._moving)

    def sent(self, before: float, after: float) -> None:
        """
        Take note that the last command left between these times.

        Pauses count from the former, distances between commands from the latter.
        """
        self._sent_at, self._left_at = before, after
        self._due = max(self._due, after + self._least_gap)

    def give_up(self) -> Command | None:
        """
        Return a command of no velocity for an arm that would go on with the last one, if it moves.

        It keeps no limit, so it is for the end of a node that cannot brake any longer.
        """
        if not (self._moving and self._setpoint.tied):
            return None
        self._setpoint.rest()
        self._moving, self._rests = False, True
        return self._command(is_stop=True)

    def withhold(self) -> None:
        """Take back the last command, which was held up for too long to be sent."""
        self.__dict__.update(self._before)
        self._has_thought = False

    def _state(self) -> dict[str, Any]:
        """Return what a command changes, so that it can be taken back."""
        return {
            '_setpoint': copy.copy(self._setpoint),
            '_following': copy.copy(self._following),
            **{name: getattr(self, name) for name in ('_rests', '_due', '_sent_at', '_moving')},
        }

    def think(self, now: float) -> None:
        """Work out where to go next; nobody need wait for it."""
        if not self._moving or self.guard.judge(now) is not Status.RUNNING:
            return
        tool, goal = self.tool, self.goal
        assert tool is not None and goal is not None
        self._has_thought = True
        try:
            self._setpoint.look(self._positions)
            self._aim(now, tool)
        except (MotionError, ValueError) as error:  # of the joints' motion, or of the policy
            self.guard.fail(str(error))
            return
        if self._follows:
            self._watch_arm(now, tool)
        seen = tool if self._follows else self._setpoint.tool_position
        self.guard.approach(now, _length(seen - goal), self.threshold)

    def _advance(self, onwards: bool) -> None:
        """Move the set-point on by one command period: onwards, or braking."""
        setpoint = self._setpoint
        try:
            if onwards:
                setpoint.advance(self._wanted)
            else:
                setpoint.brake()
        except MotionError as error:
            self.guard.fail(str(error))
            setpoint.brake()
        self._sent += _length(setpoint.tool_velocity) * self._period

    def _pass(self, seconds: float) -> None:
        """Take note of what the arm did since the last command."""
        setpoint = self._setpoint
        if setpoint.tied:
            lasted = min(seconds, self._pause)
            self._following.command(setpoint.tool_velocity * lasted)
            if lasted > (1.0 + GRACE) * self._period:
                setpoint.go_on(lasted - self._period)
            self._gap += (LATER if lasted > self._gap else SOONER) * (lasted - self._gap)
            setpoint.expect(max(self._gap, self._period))
        if seconds > self._pause:
            setpoint.rest()  # or its driver has not stopped it, and is late itself

    def _watch_arm(self, now: float, tool: Vector) -> None:
        """Look whether the arm does what it is commanded."""
        setpoint, space = self._setpoint, self.workspace
        behind, most = _length(setpoint.tool_position - tool), math.inf
        if setpoint.tied:
            behind, most = self._following.error(now, tool)
        self.guard.follow(now, behind if self._blind <= BLIND else math.inf, most)
        out = np.maximum(space.box_low - tool, tool - space.box_high)
        self.guard.stay_inside(max(0.0, float(out.max())))

    def _begin(self, now: float) -> None:
        """Start at the last command if it is recent, else at rest where the arm is."""
        if now - self._sent_at > RECENT:
            self._setpoint.begin(self._positions)
        else:
            self._pass(now - self._sent_at)
        self.guard.set_out()
        self._following = Following()
        self._moving, self._rests = True, self._setpoint.is_at_rest
        self._step_due = now
        self._has_thought, self._blind, self._sent = False, 0.0, 0.0

    def _aim(self, now: float, tool: Vector) -> None:
        """Set the velocity that is wanted (3,) [m/s]: the policy's, or straight to the goal."""
        goal, point = self.goal, self._setpoint.tool_position
        assert goal is not None
        distance = _length(goal - point)
        self._finishing = distance <= self.threshold * (LEAVE if self._finishing else 1.0)
        self._holding = self._finishing and distance <= (RELEASE if self._holding else HOLD)
        if now >= self._step_due - STEP_EARLY * self._period:
            self._decide(now)
        wanted = self._decided
        # From this speed the set-point comes to rest at the goal.
        braking = ARRIVAL * self.limits.acceleration
        gain = TIED_GAIN if self._setpoint.tied else GAIN
        most = 2.0 * distance / (1.0 / gain + math.sqrt(gain**-2 + 2.0 * distance / braking))
        if self._finishing:
            wanted = (goal - point) * (most / max(distance, HOLD))
        elif (speed := _length(wanted)) > most:
            wanted = wanted * (most / speed)
        self._wanted = self._in_reach(wanted, point - tool) if self._follows else wanted

    def _decide(self, now: float) -> None:
        """Ask the policy where to."""
        self._step_due += self._step
        if now > self._step_due:
            self.late += 1
            self._step_due = now + self._step
        setpoint, space = self._setpoint, self.workspace
        observation = self._observe(
            space.to_policy(setpoint.tool_position),
            space.velocity_to_policy(setpoint.tool_velocity),
        )
        action = self._policy(observation, space.to_policy(self.goal))  # type: ignore[arg-type]
        wanted = action[:3] * self._axes
        if not math.isfinite(wanted.sum()):
            raise ValueError(f'the policy says {action.tolist()}: finite numbers are expected')
        self._decided = space.velocity_to_arm(wanted)

    def _in_reach(self, wanted: Vector, ahead: Vector) -> Vector:
        """Return a velocity with which the set-point stays near the tool, ``ahead`` (3,) of it."""
        distance, most_ahead = _length(ahead), self._safety.leash
        if distance < most_ahead:
            return wanted
        away = float(wanted @ ahead) / distance
        most = math.sqrt(self.limits.acceleration * max(0.0, 2.0 * most_ahead - distance))
        return wanted if away <= most else wanted - ahead * ((away - most) / distance)

    def _command(self, is_stop: bool) -> Command:
        setpoint = self._setpoint
        return Command(
            setpoint.tool_position,
            setpoint.tool_velocity,
            setpoint.orientation,
            setpoint.joint_positions,
            setpoint.joint_velocities,
            is_stop,
        )


def _length(vector: Vector) -> float:
    """Return the length of a vector (3,); several times faster than numpy's norm."""
    return math.sqrt(vector @ vector)
