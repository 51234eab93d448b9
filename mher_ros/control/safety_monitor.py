"""Decides whether a command may be sent to the arm."""

from collections import deque
from collections.abc import Sequence
import dataclasses
import enum
import math
from typing import NamedTuple

from mher_ros.control.resting_arm import STILL
from mher_ros.control.stop_latch import StopLatch
from mher_ros.options import check, option, OptionError
from mher_ros.robots.workspace import GoalError
import numpy as np
from numpy.typing import ArrayLike, NDArray

SECOND = 1_000_000_000  # in nanoseconds
CLOCK_JUMP = SECOND
"""A stamp that is older by more than this is of a clock that was set back [ns]."""
BOX_SLACK = 0.02  # increase of the distance outside the box that is tolerated [m]
PROGRESS = 0.001  # decrease of the distance from the goal that counts as progress [m]
POSE_SPEED, POSE_SLACK = 3.0, 0.1
"""Speed of the tool [m/s], and distance within any time [m], beyond which its pose has jumped."""
FARTHEST_POSE = 100.0  # largest coordinate of a measured position [m]
MOST_PATIENCE = 600.0  # longest time without progress that options may allow [s]
JUMP_SLACK = 0.05  # change of a joint that is no jump within any time [rad or m]


class Status(enum.Enum):
    """Result of the monitor; the values are sentences for people."""

    RUNNING = 'commands are sent to the arm'
    NO_GOAL = 'there is no goal'
    STALE_GOAL = 'the goal is too old'
    NO_STATE = 'no joint state has been received yet'
    STALE_STATE = 'joint states are no longer received'
    BAD_STATE = 'the joint states cannot be used'
    NO_POSE = 'no measured pose of the tool has been received yet'
    STALE_POSE = 'the measured pose of the tool is no longer received'
    BAD_POSE = 'the measured pose of the tool cannot be used'
    POSE_JUMPED = 'the measured pose of the tool jumped'
    POSE_FROZEN = 'the measured pose of the tool stays the same while the arm moves'
    TWO_STATE_SOURCES = 'joint states come from more than one publisher'
    TWO_POSE_SOURCES = 'measured poses of the tool come from more than one publisher'
    OTHER_COMMANDER = 'another node can command the arm'
    NO_SUBSCRIBER = 'no node receives the commands'
    CLOCK_STOPPED = 'the simulated clock has stopped'
    OBSTACLE_LOST = 'the place of an obstacle is not known'
    OBSTACLE_REFUSED = 'an obstacle cannot be used'
    OUTSIDE_LIMITS = 'a joint is outside its limits'
    JOINTS_JUMPED = 'the joint positions jumped'
    CLOCK_JUMPED = 'the clock of the joint states was set back'
    ARM_MOVES = 'the arm does not stand still'
    NOT_FOLLOWING = 'the arm does not follow its commands'
    NO_PROGRESS = 'the tool does not approach its goal'
    BLOCKED = 'something is in the way of the arm'
    NEAR_SINGULARITY = 'a singularity is in the way of the arm'
    OUTSIDE_BOX = 'the tool has left its box'
    NO_COMMAND = 'no valid command was found'
    STOPPED = 'stopped until the stop is cleared'

    @property
    def code(self) -> str:
        """Name for programs, as it is published."""
        return self.name.lower()

    @property
    def is_trouble(self) -> bool:
        """Whether a person should check the arm."""
        return self not in (Status.RUNNING, Status.NO_GOAL, Status.STALE_GOAL)


class Change(NamedTuple):
    """A change from one status to another."""

    old: Status
    new: Status
    reason: str


@dataclasses.dataclass(frozen=True)
class SafetyOptions:
    """Conditions under which the monitor stops the arm."""

    state_timeout: float = option(
        0.2,
        'time without a joint state after which the motion is interrupted [s]',
        low=0.01,
        high=2.0,
    )
    recovery_time: float = option(
        0.2,
        'time for which joint states must be good again before the motion continues [s]',
        high=60.0,
        low=0.0,
    )
    resume_within: float = option(
        1.0,
        'time without good joint states after which the goal is dropped [s]',
        low=0.0,
        high=60.0,
    )
    goal_timeout: float = option(
        60.0, 'age at which a goal is dropped [s]; 0: never', low=0.0, high=86_400.0
    )
    limit_tolerance: float = option(
        0.05, 'how far outside its limits a joint may be [rad or m]', low=0.0, high=0.5
    )
    joint_speed: float = option(
        10.0, 'speed of a joint beyond which its state is rejected [rad/s or m/s]', low=1.0
    )
    max_following_error: float = option(
        0.08, 'largest distance of the tool from its set-point [m]', low=0.001, high=1.0
    )
    follow_timeout: float = option(
        0.5, 'time for which max_following_error may be exceeded [s]', low=0.0, high=10.0
    )
    progress_timeout: float = option(
        2.0,
        'time without progress after which a goal is dropped [s]; 0: never',
        low=0.0,
        high=MOST_PATIENCE,
    )


class SafetyMonitor:
    """
    Decides whether commands may be sent, by one status and its reason.

    Of several problems the most serious counts: a stop, then an interruption, then the joint
    states, then the goal. A stop lasts until ``clear``. A missing, late or invalid state stops the
    motion until states have been valid for ``recovery_time``; the goal is kept if that takes at
    most ``resume_within``. Everything else drops the goal: the arm waits for the next one.

    Times ``now`` are times of receipt of a monotonic clock [s].
    """

    def __init__(
        self,
        options: SafetyOptions,
        joint_names: Sequence[str],
        lower: ArrayLike,
        upper: ArrayLike,
        latch: StopLatch | None = None,
        pose_timeout: float = 0.0,
    ) -> None:
        """
        Watch joints ``joint_names`` (n); the first k have limits ``lower`` and ``upper`` (k,).

        ``latch`` holds stops, and may already hold one. ``pose_timeout``: time without a measured
        pose of the tool after which the motion is interrupted [s]; 0: the pose is not measured.
        """
        check(options)
        self._options = options
        self._names = tuple(joint_names)
        self._limits = _read_limits(self._names, lower, upper, options.limit_tolerance)
        self._changes: deque[Change] = deque(maxlen=100)
        self._now = -math.inf
        self._latch = latch or StopLatch()
        self._stops = self._latch.now.stops
        self._pose_timeout = pose_timeout
        self._interruption: tuple[Status, str] | None = None
        self.status, self.reason = Status.NO_STATE, Status.NO_STATE.value
        self.last_drop = ''
        """Code of the status or refusal for which the last goal was dropped; '': none was."""
        self.restart()

    @property
    def has_goal(self) -> bool:
        """Whether there is a goal, now or when joint states are valid again."""
        return self._goal_at is not None

    def restart(self) -> None:
        """Reset states and goal, but not a stop."""
        self._last: list[float] | None = None
        self._stamp = 0
        self._heard_at = self._good_at = self._fine_at = self._good_since = math.inf
        self._trouble: tuple[Status, str] | None = (Status.NO_STATE, Status.NO_STATE.value)
        self._pose: list[float] | None = None  # the last measured position
        self._pose_stamp = 0
        self._pose_at = self._pose_good_since = math.inf
        self._pose_trouble: tuple[Status, str] | None = None
        if self._pose_timeout:
            self._pose_trouble = Status.NO_POSE, Status.NO_POSE.value
        self._goal_at: float | None = None
        self._far_since: float | None = None
        self._waits_since: float | None = None
        self._least_outside = self._nearest = math.inf
        self._nearest_at = -math.inf
        self._idle = (Status.NO_GOAL, 'no goal has been received yet')
        self._settle()

    def judge(self, now: float) -> Status:
        """Return the status at this time; commands may be sent while it is ``RUNNING``."""
        now = self._advance(now)
        options = self._options
        if now - self._heard_at > options.state_timeout:
            silence = f'no joint state for more than {options.state_timeout:g} s'
            self._interrupt(Status.STALE_STATE, silence)
        if now - self._pose_at > self._pose_timeout > 0.0:
            silence = f'no measured pose of the tool for more than {self._pose_timeout:g} s'
            self._interrupt_pose(Status.STALE_POSE, silence)
        if self._goal_at is not None:
            trouble = self._trouble or self._pose_trouble
            if trouble is not None and now - self._fine_at > options.resume_within:
                status, reason = trouble
                self.drop_goal(
                    f'it was dropped after {options.resume_within:g} s of: {reason}', status.code
                )
            elif 0.0 < options.goal_timeout < now - self._goal_at:
                self._drop(Status.STALE_GOAL, f'it was received {options.goal_timeout:g} s ago')
        return self._settle()

    def take_state(
        self,
        now: float,
        stamp: int,
        positions: NDArray[np.float64],
        velocities: NDArray[np.float64],
    ) -> bool:
        """
        Take a joint state (n,) stamped ``stamp`` [ns]; return whether it is valid.

        ``judge`` decides whether a command may be sent.
        """
        self.judge(now)  # there may have been no states for a long time before
        now = self._now
        age = self._stamp - stamp if self._last is not None else 0
        if 0 < age <= CLOCK_JUMP:
            return False
        q, speeds = positions.tolist(), velocities.tolist()
        wrong = self._wrong(q, speeds)
        if wrong is not None:
            self._heard_at = now
            self._interrupt(*wrong)
            self._settle()
            return False
        if age > CLOCK_JUMP:
            self._drop(Status.CLOCK_JUMPED, f'by {age / SECOND:.3f} s; the goal is dropped')
        elif self._last is not None:
            passed = max(now - self._good_at, min(-age / SECOND, self._options.state_timeout))
            self._check_jump(q, passed)
        self._last, self._stamp = q, stamp
        self._heard_at = self._good_at = now
        if self._trouble is not None:
            self._recover()
        if self._trouble is None and self._pose_trouble is None:
            self._fine_at = now
        self._settle()
        return True

    def take_pose(self, now: float, stamp: int, position: NDArray[np.float64]) -> bool:
        """
        Take a measured position (3,) [m] of the tool, stamped ``stamp`` [ns].

        Return whether it is new and valid: its stamp is later than that of the last one.
        """
        self.judge(now)
        now, seen = self._now, position.tolist()
        age = self._pose_stamp - stamp if self._pose is not None else -1
        if 0 <= age <= CLOCK_JUMP:
            return False
        if not math.isfinite(sum(seen)) or max(map(abs, seen)) > FARTHEST_POSE:
            self.take_bad_pose(
                now, f'positions up to {FARTHEST_POSE:g} m are expected, got {seen}'
            )
            return False
        if self._pose is not None:
            passed = max(now - self._pose_at, min(-age / SECOND, self._pose_timeout))
            moved, most = math.dist(seen, self._pose), POSE_SPEED * max(0.0, passed) + POSE_SLACK
            if moved > most:
                reason = f'by {moved:.3f} m within {passed:.3f} s'
                self._drop(Status.POSE_JUMPED, f'{reason}; the goal is dropped')
                self._interrupt_pose(Status.POSE_JUMPED, reason)
        self._pose, self._pose_stamp, self._pose_at = seen, stamp, now
        if self._pose_trouble is not None:
            self._pose_good_since = min(self._pose_good_since, now)
            is_first = self._pose_trouble[0] is Status.NO_POSE
            if is_first or now - self._pose_good_since >= self._options.recovery_time:
                self._pose_trouble = None
        self._settle()
        return True

    def take_bad_pose(self, now: float, reason: str) -> None:
        """Record a measured pose that cannot be used."""
        self.judge(now)
        self._interrupt_pose(Status.BAD_POSE, reason)
        self._settle()

    def take_frozen_pose(self, now: float, moved: float) -> None:
        """Record that the measured pose stayed the same while the tool moved by ``moved`` [m]."""
        self.judge(now)
        reason = f'according to the joints the tool moved by {moved:.3f} m'
        self._drop(Status.POSE_FROZEN, f'{reason}; the goal is dropped')
        self._interrupt_pose(Status.POSE_FROZEN, reason)
        self._settle()

    def take_bad_state(self, now: float, reason: str) -> None:
        """Record a joint state that could not be read."""
        self.judge(now)
        self._heard_at = self._now
        self._interrupt(Status.BAD_STATE, reason)
        self._settle()

    def take_goal(self, now: float, is_new: bool = True) -> None:
        """
        Record a goal; GoalError if none is accepted now.

        ``is_new`` False: the check of progress continues.
        """
        self.judge(now)
        troubles = self._interruption, self._trouble, self._pose_trouble
        if self.status is Status.STOPPED or any(troubles):
            raise GoalError(
                f'no goal is accepted now: {self.status.value} ({self.reason})', self.status.code
            )
        self._goal_at = self._now  # nothing else: repeated goals must not hide a stuck arm
        if is_new:
            self._nearest = math.inf
        self._settle()

    def drop_goal(self, reason: str, code: str = Status.NO_GOAL.code) -> None:
        """Drop the goal: the arm brakes, and stays until the next goal."""
        self._drop(Status.NO_GOAL, reason, code)

    def stop(self, reason: str) -> None:
        """Stop the arm until ``clear``."""
        self._latch.set(reason)
        self._settle()

    def clear(self) -> None:
        """End a stop; the arm stays where it is until there is a new goal."""
        self._latch.clear()
        self._settle()

    def interrupt(self, status: Status, reason: str) -> None:
        """Drop the goal and accept none until ``resume``; not for joint states."""
        if self._interruption != (status, reason):
            self._interruption = status, reason
            self.drop_goal(reason, status.code)

    def resume(self) -> None:
        """End an interruption; the arm stays where it is until there is a new goal."""
        if self._interruption is not None:
            (_, reason), self._interruption = self._interruption, None
            self.drop_goal(f'it was dropped: {reason}')

    def update_stop(self) -> None:
        """Update the status after a change of the latch; ``judge`` does so, too."""
        self._settle()

    def fail(self, reason: str) -> None:
        """Drop the goal because of an invalid action, or because the QP has no solution."""
        self._drop(Status.NO_COMMAND, reason)

    def stand_still(self, now: float, spread: float) -> bool:
        """
        Return whether the arm stands still, so that a motion may start at its position.

        ``spread``: largest difference between the last joint states [rad or m].
        """
        if spread <= STILL:
            self._waits_since = None
            return True
        reason = f'its joint states differ by {spread:.3f} rad or m'
        self.wait(now, Status.ARM_MOVES, reason, self._options.resume_within)
        return False

    def wait(self, now: float, status: Status, reason: str, timeout: float) -> None:
        """Record that a motion cannot start yet; drop the goal after ``timeout`` [s]."""
        now = self._advance(now)
        if self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since > timeout:
            self._drop(status, f'{reason}, for {timeout:g} s; the goal is dropped')

    def follow(self, now: float, distance: float, most: float = math.inf) -> None:
        """
        Check the distance of the tool from its set-point [m].

        It is infinite if joints do not follow their commands. ``most`` [m] replaces
        ``max_following_error`` if it is smaller.
        """
        now = self._advance(now)
        if self._goal_at is None or distance <= min(self._options.max_following_error, most):
            self._far_since = None
        elif self._far_since is None:
            self._far_since = now
        elif now - self._far_since > self._options.follow_timeout:
            where = f'the tool is {distance:.3f} m from its set-point'
            if most < self._options.max_following_error:
                where = f'{distance:.3f} m of the commanded displacement are missing'
            if distance == math.inf:
                where = 'joints do not follow their commands'
            timeout = self._options.follow_timeout
            self._drop(Status.NOT_FOLLOWING, f'{where}, for more than {timeout:g} s')

    def approach(
        self,
        now: float,
        distance: float,
        threshold: float,
        obstruction: str = '',
        singularity: str = '',
    ) -> None:
        """
        Check the progress: distance of the tool from its goal, and its threshold [m].

        ``obstruction`` and ``singularity``: what holds the arm back, for people.
        """
        now, timeout = self._advance(now), self._options.progress_timeout
        if distance <= threshold or distance < self._nearest - PROGRESS:
            self._nearest, self._nearest_at = distance, now
        elif self._goal_at is not None and 0.0 < timeout < now - self._nearest_at:
            status = Status.NEAR_SINGULARITY if singularity else Status.NO_PROGRESS
            because = obstruction or singularity
            self._drop(
                Status.BLOCKED if obstruction else status,
                f'{distance:.3f} m are left, for {timeout:g} s{because and "; "}{because}; the '
                'goal is dropped',
            )

    def start_motion(self) -> None:
        """Restart the checks of progress and box for a new motion."""
        self._least_outside = self._nearest = math.inf

    def stay_inside(self, outside: float) -> None:
        """Check the distance of the tool outside its box [m], which may only decrease."""
        self._least_outside = min(self._least_outside, outside)
        if self._goal_at is not None and outside > self._least_outside + BOX_SLACK:
            self._drop(Status.OUTSIDE_BOX, f'it is {outside:.3f} m outside')

    def take_change(self) -> Change | None:
        """Return the earliest change of the status that was not returned yet."""
        return self._changes.popleft() if self._changes else None

    def _advance(self, now: float) -> float:
        """Return the time, which never decreases."""
        if now > self._now:
            self._now = now
        return self._now

    def _wrong(self, positions: list[float], speeds: list[float]) -> tuple[Status, str] | None:
        """Return what is wrong with a state, regardless of others."""
        count = len(self._names)
        if len(positions) != count or len(speeds) != count:
            return (
                Status.BAD_STATE,
                f'{count} positions and velocities are expected, '
                f'got {len(positions)} and {len(speeds)}',
            )
        if not math.isfinite(sum(positions) + sum(speeds)):
            return Status.BAD_STATE, 'finite numbers are expected, got others'
        fastest = self._options.joint_speed
        if not -fastest <= min(speeds) <= max(speeds) <= fastest:
            return Status.BAD_STATE, f'the speed of a joint is above {fastest:g} rad/s or m/s'
        wrong = [
            f'{name} is at {q:.3f}, its range is {least:.3f} to {most:.3f}'
            for name, q, (least, most) in zip(self._names, positions, self._limits, strict=False)
            if not least <= q <= most
        ]
        reason = '; '.join(wrong) + ' (with the tolerance)'
        return (Status.OUTSIDE_LIMITS, reason) if wrong else None

    def _check_jump(self, positions: list[float], passed: float) -> None:
        assert self._last is not None
        most = self._options.joint_speed * passed + JUMP_SLACK
        for name, q, last in zip(self._names, positions, self._last, strict=True):
            if not -most <= q - last <= most:
                reason = f'{name} from {last:.3f} to {q:.3f} within {passed:.3f} s'
                self._drop(Status.JOINTS_JUMPED, f'{reason}; the goal is dropped')
                # No motion starts there until further states confirm it.
                self._interrupt(Status.JOINTS_JUMPED, reason)
                return

    def _interrupt(self, status: Status, reason: str) -> None:
        self._good_since = math.inf
        if self._trouble is None or self._trouble[0] is not status:
            self._trouble = status, reason

    def _interrupt_pose(self, status: Status, reason: str) -> None:
        self._pose_good_since = math.inf
        if self._pose_trouble is None or self._pose_trouble[0] is not status:
            self._pose_trouble = status, reason

    def _recover(self) -> None:
        """Continue if states have been valid for long enough, or if this is the first one."""
        assert self._trouble is not None
        self._good_since = min(self._good_since, self._now)
        good_for = self._now - self._good_since
        if self._trouble[0] is Status.NO_STATE or good_for >= self._options.recovery_time:
            self._trouble = None

    def _drop(self, status: Status, reason: str, code: str = '') -> None:
        self._forget_goal(code or status.code)
        self._idle = status, reason
        self._settle()

    def _forget_goal(self, code: str) -> None:
        if self._goal_at is not None:
            self.last_drop = code
        self._goal_at = self._far_since = self._waits_since = None

    def _settle(self) -> Status:
        """Set the most serious status, and record a change."""
        stopped, stops = self._latch.now
        if stops != self._stops:  # also if it was cleared in the meantime
            self._stops = stops
            self._forget_goal(Status.STOPPED.code)
            self._idle = Status.NO_GOAL, 'it was dropped by a stop'
        if stopped is not None:
            status, reason = Status.STOPPED, stopped
        elif self._interruption is not None:
            status, reason = self._interruption
        elif self._trouble is not None:
            status, reason = self._trouble
        elif self._pose_trouble is not None:
            status, reason = self._pose_trouble
        elif self._goal_at is None:
            status, reason = self._idle
        else:
            status, reason = Status.RUNNING, Status.RUNNING.value
        is_news = reason != self.reason and self._interruption == (status, reason)
        if status is not self.status or is_news:
            self._changes.append(Change(self.status, status, reason))
        self.status, self.reason = status, reason
        return status


def _read_limits(
    names: Sequence[str], lower: ArrayLike, upper: ArrayLike, tolerance: float
) -> list[tuple[float, float]]:
    low, high = np.array(lower, np.float64), np.array(upper, np.float64)
    if low.ndim != 1 or low.shape != high.shape or len(low) > len(names):
        raise OptionError(
            f'a lower and an upper limit for up to {len(names)} joints are expected, '
            f'got arrays of shape {low.shape} and {high.shape}'
        )
    for name, least, most in zip(names, low, high, strict=False):
        if not least < most:
            raise OptionError(
                f'{name}: a lower limit below the upper is expected, got {least} and {most}'
            )
    return [
        (q - tolerance, p + tolerance) for q, p in zip(low.tolist(), high.tolist(), strict=True)
    ]
