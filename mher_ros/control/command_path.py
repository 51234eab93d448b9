"""The one path from a controller to an arm: which commands are made, and when."""

import copy
import math
from typing import Any, Protocol

from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.filter.motion_qp import MotionError
from mher_ros.control.filter.safety_filter import SafetyFilter, ToolFilter
from mher_ros.control.following import Following
from mher_ros.control.motion import Command, length, Motion, ToolVelocity
from mher_ros.control.resting_arm import RestingArm, STILL_FOR
from mher_ros.control.safety_monitor import SafetyMonitor, SafetyOptions, Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.outputs import OUTPUTS
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BLIND = 0.02  # commanded displacement without a measured one that starts ``follow_timeout`` [m]
FROZEN = 0.1  # motion of the tool by the joints while its measured pose stays the same [m]
JOINT_ERROR = 0.5  # largest distance of a joint from its set-point [rad or m]
NOTHING: Vector = np.empty(0)
JUMPS = (Status.JOINTS_JUMPED, Status.CLOCK_JUMPED)
"""Statuses in which the previous state is used instead of the latest."""
EARLY = 0.1  # part of a command period by which a command may be early, if a state is
GRID = 0.98  # part of a period between commands, so that they meet states of the same rate
GRACE = 0.5  # part of a command period for which a command waits for a state
SENDING = 0.05  # part of a command period that sending may take without delaying the next command
LEAD, LONGEST_LEAD = 0.4, 1e-3
"""Part of a command period, and time [s], by which a command is made before it may be sent."""
PAUSE = 2.5  # command periods, but at least longest_tick, after which an arm is at rest
LATER, SOONER = 0.5, 0.05
"""Weights of the newest time in the mean time between commands, if it is longer or shorter."""
UNDONE = ('_rests', '_due', '_sent_at', '_sent_by', '_left_at', '_has_left', 'is_moving')
"""Attributes that a command changes, besides the filter."""
START = 5.0  # longest time for which a goal waits for the start of its motion [s]
RECENT = 1.0  # time after the last command for which the arm may still move towards it [s]


class Controller(Protocol):
    """Source of motions: a policy, a straight line or a learning agent."""

    def begin(self, now: float) -> None:
        """Prepare for the start of a motion."""

    def ask(self, now: float) -> Motion | None:
        """Return the motion that is asked for; None: hold still. ValueError: it is invalid."""

    def progress(self, tool: Vector) -> tuple[float, float]:
        """Return the distance of the tool (3,) from its goal, and the threshold [m]."""


class CommandPath:
    """
    Makes commands for one arm as its controller asks, within all limits.

    Call ``take_state`` for each joint state, and ``tick`` after each state and from ``due`` on: it
    returns a command or None. Send the command at ``leaves_at``, not before; call ``sent``, and
    then ``plan``. If there is a reason not to move, commands brake within every limit. After the
    last one, ``is_stop``, ``tick`` returns None.

    A late command never asks for more than one command period of motion. A motion starts at the
    last set-point if the arm is still there, otherwise at rest at the measured position, once the
    arm has stood still for ``still_for``. If states are missing for ``longest_tick`` the arm
    brakes, and continues when there are states again.

    Times ``now`` are those of a monotonic clock [s].
    """

    def __init__(
        self,
        controller: Controller,
        arm: ArmModel,
        box: tuple[Vector, Vector],
        output: str,
        *,
        known_box: tuple[Vector, Vector] | None = None,
        limits: MotionLimits | None = None,
        safety: SafetyOptions | None = None,
        command_rate: float = 100.0,
        latch: StopLatch | None = None,
        still_for: float = STILL_FOR,
        moves_joints: bool = False,
        pose_timeout: float = 0.0,
    ) -> None:
        """
        Keep the tool in ``box``, its low and high corners (3,) [m] in the base frame.

        ``output`` is one of ``OUTPUTS``. ``known_box``: smaller box that the policy was trained
        in, if it must not leave it. ``latch`` holds stops, and may already hold one.
        ``still_for``: time that the arm must stand still before a motion starts where it is [s].
        ``moves_joints``: with the output ``none``, limit joints, too, since they are moved.
        ``pose_timeout``: time without a measured pose of the tool after which the motion is
        interrupted [s]; 0: the pose is not measured.
        """
        self._controller, self._arm, self._box = controller, arm, box
        self.limits = limits or MotionLimits()
        self._safety = safety or SafetyOptions()
        self.monitor = SafetyMonitor(
            self._safety, arm.state_names, arm.lower, arm.upper, latch, pose_timeout
        )
        self.is_tracked = pose_timeout > 0.0
        """Whether the pose of the tool is measured."""
        self.tracked: Vector | None = None
        """Its measured position (3,) [m] in the frame of goals; None until the first pose."""
        self._tool_then: Vector | None = None  # position of the tool at the last change of it
        self.period = 1.0 / command_rate
        """Time between two commands [s]."""
        self.makes_ahead = True
        """Whether commands are made before they may be sent; False if the clock has steps."""
        self.pause = max(self.limits.longest_tick, PAUSE * self.period)
        """Time without a command after which the arm is at rest [s]."""
        kind = OUTPUTS[output]
        limits_joints = kind.of_joints or (moves_joints and not kind.message)
        self.filter: SafetyFilter = (JointFilter if limits_joints else ToolFilter)(
            arm, MotionLimiter(self.limits, *(known_box or box)), self.period, kind.is_velocity
        )
        self._follows = output != 'none'
        self.is_moving = False
        """Whether commands are sent: towards a goal, or to brake."""
        self.is_received = True
        """Whether the arm's controller would receive a command, as far as it is known."""
        self._rests = True  # whether the last command is at rest
        self._due = self._sent_at = self._sent_by = self._left_at = self._state_at = -math.inf
        self._resting = RestingArm(still_for)
        self._late_since: float | None = None  # since when no command could be sent in time
        self._has_left = True  # it may have been moved by somebody else since
        self._is_new = False
        self._state_gap, self._gap = math.inf, self.period
        self._joint_count = len(arm.joint_names) if kind.of_joints else 0
        self._following = Following(self._joint_count)
        self.positions: Vector = NOTHING
        """Measured joint positions (n,) [rad or m]; empty until the first state."""
        self.velocities: Vector = NOTHING
        """Measured joint velocities (n,) [rad/s or m/s]."""
        self._tool: Vector | None = None
        self._asked: Motion | None = None
        self._is_planned = False
        self._blind = self._sent = 0.0
        self._before = self._state()
        self.leaves_at = -math.inf
        """Earliest time at which the last command may be sent: one period after the one before."""

    @property
    def tool(self) -> Vector | None:
        """Measured position of the tool (3,) [m] in the base frame; None until the first state."""
        if self._tool is None and self.positions.size:
            self._tool = self._arm.tool_position(self.positions)
        return self._tool

    def tool_seen(self, source: str) -> tuple[Vector, Vector]:
        """Return position (3,) [m] and velocity (3,) [m/s] of the tool from a source."""
        if source == 'tracked':
            assert self.tracked is not None  # without a pose nothing moves
            return self.tracked, np.zeros(3)  # its velocity is not measured
        if source == 'setpoint':
            return self.filter.tool_position, self.filter.tool_velocity
        return self._arm.tool(self.positions, self.velocities)

    def joints_seen(self, source: str) -> tuple[Vector, Vector]:
        """Return positions (n,) [rad or m] and velocities (n,) of all joints from a source."""
        setpoint, positions, velocities = self.filter, self.positions, self.velocities
        joints, speeds = setpoint.joint_positions, setpoint.joint_velocities
        if source != 'setpoint' or joints is None or speeds is None:
            return positions, velocities
        count = len(joints)
        return (
            np.concatenate((joints, positions[count:])),
            np.concatenate((speeds, velocities[count:])),
        )

    @property
    def held_orientation(self) -> Vector | None:
        """Orientation of the tool during a motion (4,) (w, x, y, z); None: there is none."""
        return self.filter.orientation if self.is_moving else None

    @property
    def velocity(self) -> Vector | None:
        """Commanded velocity of the tool (3,) [m/s]; None: nothing is commanded."""
        return self.filter.tool_velocity if self.is_moving else None

    @property
    def nearest(self) -> tuple[str, str, float] | None:
        """``SafetyFilter.nearest`` while commands are sent."""
        return self.filter.nearest if self.is_moving else None

    @property
    def due(self) -> float:
        """Time to make the next command; infinite while a goal or a state is missing."""
        if not self.is_moving and self.monitor.status is not Status.RUNNING:
            return math.inf
        if self._is_new:
            return self._earliest - self._lead
        if not self.is_moving:
            return math.inf
        # Do not wait for states that are rarer than commands, or no longer received.
        late = (1.0 + GRACE) * self.period
        waits = self._state_gap < late and self._due < self._state_at + late
        return self._due + (GRACE * self.period if waits else 0.0)

    @property
    def _earliest(self) -> float:
        """Earliest time to send the next command, after a new state."""
        return max(self._due - EARLY * self.period, self._left_at + self._least_gap)

    @property
    def _lead(self) -> float:
        return min(LEAD * self.period, LONGEST_LEAD) if self.makes_ahead else 0.0

    @property
    def _least_gap(self) -> float:
        return (1.0 - EARLY) * self.period

    def take_state(self, now: float, stamp: int, positions: Vector, velocities: Vector) -> bool:
        """Take a joint state (n,), stamped ``stamp`` [ns]; return whether it is used."""
        if not self.monitor.take_state(now, stamp, positions, velocities):
            return False
        if self.is_moving and self.monitor.status in JUMPS:
            return False  # one wrong reading must not become the position of the arm
        if self.monitor.status in JUMPS or now - self._state_at > self._safety.state_timeout:
            self._resting.clear()
        if now - self._state_at > RECENT:
            self._has_left = True  # its driver may have been restarted
        if not (self.is_received or self.is_moving):
            self._sent_at = -math.inf  # its controller does not know the last command
        self._resting.take(now, stamp, positions)
        self._resting.watch(now, math.inf if self.is_moving else self.may_move)
        still = np.array_equal(positions, self.positions)
        self._blind, self._sent = self._blind + self._sent if still else 0.0, 0.0
        self.positions, self.velocities, self._tool = positions, velocities, None
        self._state_gap, self._state_at, self._is_new = now - self._state_at, now, True
        return True

    def take_pose(self, now: float, stamp: int, position: Vector) -> None:
        """Take a measured position (3,) [m] of the tool, stamped ``stamp`` [ns]."""
        if not self.monitor.take_pose(now, stamp, position):
            return
        is_same = self.tracked is not None and np.array_equal(position, self.tracked)
        if not is_same or self._tool_then is None:
            self._tool_then = self.tool
        elif self.tool is not None and (moved := length(self.tool - self._tool_then)) > FROZEN:
            self.monitor.take_frozen_pose(now, moved)
        self.tracked = position

    def restart(self) -> None:
        """Reset states and goal, but not a stop."""
        self.monitor.restart()
        self.is_moving, self.positions, self._tool = False, NOTHING, None
        self.tracked = self._tool_then = None
        self._resting.clear()
        self._has_left = True

    def may_move_until(self, time: float) -> None:
        """Assume that the arm may move until then, after commands that are not known here."""
        self._sent_by = time - RECENT
        self._has_left = True

    @property
    def may_move(self) -> float:
        """Time until which the arm may still move after the last command [s]."""
        return self._sent_by + RECENT

    def tick(self, now: float) -> Command | None:
        """
        Return the command that is due, if any.

        It computes only what depends on the latest state and on the time; call ``plan`` when the
        command was sent.
        """
        runs = self.monitor.judge(now) is Status.RUNNING
        if not (runs or self.is_moving) or now < max(self.due, self._earliest - self._lead):
            return None
        self._before = self._state()
        leaves = max(now, self._earliest)
        if self.is_moving and not (self.filter.is_velocity or leaves <= self.may_move):
            # By now the arm may be anywhere: do not move it back to its old set-point.
            self.is_moving, self._rests = False, True
            if not runs:
                return None
        if not self.is_moving:
            if not self._begin(leaves):
                return None
        else:
            self._pass(leaves - self._sent_at)
        sees = now - self._state_at <= self.pause
        if runs and sees and not self._is_planned:
            self.plan(now)
            runs = self.monitor.status is Status.RUNNING
        if self._rests and not (runs and sees):
            self.is_moving, self._is_new, self._due = runs, False, leaves + self.period
            return None
        self.filter.now = now
        self._advance(self._asked if runs and sees else None)
        runs = self.monitor.status is Status.RUNNING
        self._rests = self.filter.is_at_rest
        self.is_moving = runs or not self._rests
        self._is_planned = self._is_new = False
        self._due += GRID * self.period
        self.leaves_at, self._has_left = leaves, False
        self._note_sent(leaves, leaves)
        return self._command(is_stop=not self.is_moving)

    def sent(self, before: float, after: float) -> None:
        """
        Record that the last command was sent between these times.

        Pauses count from ``before``, and so does the time to the next command if sending was fast;
        otherwise this command may have been sent late, and the time counts from ``after``. So does
        the time for which its set-point is recent.
        """
        self._note_sent(before, after)
        self._late_since = None

    def _note_sent(self, before: float, after: float) -> None:
        left = max(before, after - SENDING * self.period)
        self._sent_at, self._sent_by, self._left_at = before, after, left
        self._due = max(self._due, left + self._least_gap)

    def give_up(self) -> Command | None:
        """
        Return a command of zero velocity if the arm moves and would keep its last velocity.

        It ignores all limits, so it is only for a node that ends and can no longer brake.
        """
        if not (self.is_moving and self.filter.is_velocity):
            return None
        self.filter.rest()
        self.is_moving, self._rests = False, True
        return self._command(is_stop=True)

    def is_outdated(self, now: float) -> bool:
        """Return whether the arm, still moving when the last command was made, rests by now."""
        last = self._before['_sent_at']
        return bool(self.leaves_at - last <= self.pause < now - last)

    def withhold(self, now: float) -> None:
        """Undo the last command, which was too late to be sent."""
        self.__dict__.update(self._before)
        self._is_planned = False
        if self._late_since is None:
            self._late_since = now
        elif now - self._late_since > START:
            self._late_since = None
            self.monitor.fail(f'no command could be sent in time, for {START:g} s')

    def _state(self) -> dict[str, Any]:
        """Return everything that a command changes, so that it can be undone."""
        following = self._following
        return {
            'filter': copy.copy(self.filter),
            '_following': copy.copy(following) if self.filter.is_velocity else following,
            **{name: getattr(self, name) for name in UNDONE},
        }

    def plan(self, now: float) -> None:
        """Compute the next motion, after the command was sent: this delays no command."""
        if not self.is_moving or self.monitor.judge(now) is not Status.RUNNING:
            return
        tool = self.tool
        assert tool is not None
        self._is_planned = True
        self.filter.now = now
        try:
            self.filter.prepare(self.positions)
            self._asked = self._in_reach(self._controller.ask(now), tool)
        except (MotionError, ValueError) as error:  # from the QP, or from the policy
            self.monitor.fail(str(error))
            return
        if self._follows:
            self._watch_arm(now, tool)
        seen = tool if self._follows else self.filter.tool_position
        distance, threshold = self._controller.progress(seen)
        self.monitor.approach(
            now, distance, threshold, self.filter.obstruction, self.filter.singularity
        )

    def _advance(self, asked: Motion | None) -> None:
        """Advance the set-point by one command period: as asked, or braking."""
        try:
            if asked is None:
                self.filter.brake()
            else:
                self.filter.advance(asked)
        except MotionError as error:
            self.monitor.fail(str(error))
            self.filter.brake()
        self._sent += length(self.filter.tool_velocity) * self.period

    def _pass(self, seconds: float) -> None:
        """Account for the motion of the arm in the time since the last command [s]."""
        setpoint = self.filter
        if setpoint.is_velocity:
            lasted = min(seconds, self.pause)
            joints = setpoint.joint_velocities
            self._following.command(
                setpoint.tool_velocity * lasted, None if joints is None else joints * lasted
            )
            if lasted > (1.0 + GRACE) * self.period:
                setpoint.extrapolate(lasted - self.period)
            self._gap += (LATER if lasted > self._gap else SOONER) * (lasted - self._gap)
            setpoint.expect_gap(max(self._gap, self.period))
        if seconds > self.pause:
            setpoint.rest()  # the driver has stopped the arm

    def _watch_arm(self, now: float, tool: Vector) -> None:
        """Check whether the arm follows its commands."""
        setpoint, (low, high) = self.filter, self._box
        behind, most = length(setpoint.tool_position - tool), math.inf
        if setpoint.is_velocity:
            behind, most = self._following.error(now, tool, self.positions)
        if self._blind > BLIND or self._joint_error > JOINT_ERROR:
            behind = math.inf
        self.monitor.follow(now, behind, most)
        out = np.maximum(low - tool, tool - high)
        self.monitor.stay_inside(max(0.0, float(out.max())))

    @property
    def _joint_error(self) -> float:
        """Largest distance of a joint from its set-point [rad or m]; 0 if there is none."""
        return 0.0 if self.filter.is_velocity else self._joint_distance

    @property
    def _joint_distance(self) -> float:
        """Largest distance of a joint from its set-point, with any output [rad or m]."""
        sent = self.filter.joint_positions
        return 0.0 if sent is None else float(np.abs(sent - self.positions[: len(sent)]).max())

    def _holds_setpoint(self, is_recent: bool) -> bool:
        """Return whether the arm's controller still holds the last set-point."""
        if self._sent_at == -math.inf or not self._follows:
            return is_recent and self._sent_at > -math.inf
        if self._has_left and not is_recent:
            return False
        assert self.tool is not None
        far = length(self.filter.tool_position - self.tool)
        return self._resting.holds(self.positions, self._joint_distance, far, is_recent)

    def _begin(self, now: float) -> bool:
        """
        Start a motion, and return True; False: it cannot start yet.

        It starts at the last set-point while the arm holds it, even if the arm sags: its
        controller knows only the set-point. Otherwise it starts where the arm is. Long after the
        last command, the arm must stand still.
        """
        self._is_new, is_recent = False, now <= self.may_move  # if False, look at the next state
        if not self.is_received:
            # The first command that is received must not be ahead of the arm.
            self.monitor.wait(now, Status.NO_SUBSCRIBER, 'there is no subscriber', START)
            return False
        holds = self._holds_setpoint(is_recent)
        if not (is_recent and holds):
            if is_recent and not self.filter.is_velocity:
                return False
            spread = self._resting.spread()
            if spread is None:
                self.monitor.wait(now, Status.ARM_MOVES, 'there are few joint states', START)
                return False
            if not self.monitor.stand_still(now, spread):
                return False
        if holds:
            self._pass(now - self._sent_at)
        else:
            self.filter.begin(self._resting.position())
            self._has_left = True  # until the first command
        self.monitor.start_motion()
        self._following = Following(self._joint_count)
        self.is_moving, self._rests = True, self.filter.is_at_rest
        self._controller.begin(now)
        self._is_planned, self._blind, self._sent = False, 0.0, 0.0
        return True

    def _in_reach(self, asked: Motion | None, tool: Vector) -> Motion | None:
        """Return the motion, limited so that the set-point stays near the tool (3,) [m]."""
        ahead = self.filter.tool_position - tool
        distance, most_ahead = length(ahead), self._safety.max_following_error
        if asked is None or not self._follows:
            return asked
        if not isinstance(asked, ToolVelocity):  # joints wait for the arm instead
            waits = distance >= most_ahead or self._joint_error > JOINT_ERROR
            return None if waits else asked
        if distance < most_ahead:
            return asked
        wanted = asked.value
        away = float(wanted @ ahead) / distance
        most = math.sqrt(self.limits.acceleration * max(0.0, 2.0 * most_ahead - distance))
        return asked if away <= most else ToolVelocity(wanted - ahead * ((away - most) / distance))

    def _command(self, is_stop: bool) -> Command:
        setpoint = self.filter
        return Command(
            setpoint.tool_position,
            setpoint.tool_velocity,
            setpoint.orientation,
            setpoint.joint_positions,
            setpoint.joint_velocities,
            is_stop,
        )
