"""Goals of the task ``reach``: only those that the arm can reach without a contact."""

import math

from mher_ros.control.reachability import corners_of, Reachability
from mher_ros.interface import Vector
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import ArmModel, axes_of
from mher_ros.robots.robot import Robot
from mher_ros.robots.workspace import GoalError, point_text, Refusal, Workspace
from mher_ros.simulation.tracker import Tracker
import mujoco
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

TRIES = 100  # to draw a goal that can be reached
TURNED = 0.02  # largest error of the orientation of a goal that can be reached [rad]


class ReachGoals:
    """Draws goals from the workspace of an arm, with an orientation if there is a ``turn``."""

    def __init__(
        self,
        robot: Robot,
        arm: ArmModel,
        home: Vector,
        workspace: Workspace,
        *,
        tracker: Tracker | None = None,
        box: tuple[ArrayLike, ArrayLike] | None = None,
        keeps_orientation: bool = False,
        turn: float = 0.0,
    ) -> None:
        """
        Draw goals that ``arm`` reaches from ``home`` (n,).

        With a ``tracker``, goals are positions in its frame. ``box``: corners of their box in that
        frame; None: it is the workspace. Without a tracker, positions in a box cannot be checked:
        neither camera nor marker is known. ``keeps_orientation``: whether
        motions keep that of the tool. ``turn``: largest angle between the orientation of a goal
        and that at home [rad]; 0: goals are positions.
        """
        self._robot, self._arm, self._home = robot, arm, home
        self._workspace, self._tracker = workspace, tracker
        self._box = None if box is None else np.array(box)
        self._turn, self._orientation = turn, arm.tool_pose(home)[1]
        self._reachability = Reachability(
            tracker.arm if tracker else arm,
            keeps_orientation=keeps_orientation or turn > 0.0,
            most_turned=TURNED if turn else math.inf,
        )

    @property
    def box(self) -> tuple[Vector, Vector]:
        """Least and largest entries (m,) of goals."""
        corners = np.array(corners_of(self._workspace) if self._box is None else self._box)
        if self._tracker is not None and self._box is None:
            corners = self._tracker.to_camera(corners)
        low, high = corners.min(axis=0), corners.max(axis=0)
        if not self._turn:
            return low, high
        # An axis of unit length that turns by this angle moves along a chord of this length.
        axes, chord = axes_of(self._orientation), 2.0 * math.sin(0.5 * self._turn)
        return (
            np.concatenate((low, np.maximum(axes - chord, -1.0))),
            np.concatenate((high, np.minimum(axes + chord, 1.0))),
        )

    def sample(self, rng: Generator) -> Vector:
        """Return a goal (m,) that the tool can reach, and where the arm touches nothing."""
        if self._box is not None and self._tracker is None:
            return rng.uniform(*self._box)
        refusal = None
        for _ in range(TRIES):
            if self._box is None or self._tracker is None:
                goal = rng.uniform(self._workspace.low, self._workspace.high)
            else:
                goal = self._tracker.to_base(rng.uniform(*self._box))
            orientation = self._turned(rng) if self._turn else None
            try:
                self._reachability.check_goal(goal, self._home, orientation)
                if self._tracker is not None:
                    return self._seen(goal, self._tracker)
                if orientation is not None:
                    return np.concatenate((goal, axes_of(orientation)))
                return goal
            except GoalError as error:
                refusal = error
        raise OptionError(
            f'robot {self._robot.name}: a workspace with goals that the arm can reach is '
            f'expected; of {TRIES} random goals it can reach none. The last one: {refusal}'
        )

    def _turned(self, rng: Generator) -> Vector:
        """Return the orientation at home (4,), turned about a random axis."""
        axis, change, turned = rng.normal(size=3), np.empty(4), np.empty(4)
        mujoco.mju_axisAngle2Quat(
            change, axis / np.linalg.norm(axis), rng.uniform(0.0, self._turn)
        )
        mujoco.mju_mulQuat(turned, self._orientation, change)
        return turned

    def _seen(self, goal: Vector, tracker: Tracker) -> Vector:
        """Return a goal in the tracker's frame, if the filter lets the arm get there."""
        posture = self._reachability.solve(goal, self._home).positions
        tool, space = self._arm.tool_position(posture), self._workspace
        if ((tool < space.box_low) | (tool > space.box_high)).any():
            raise GoalError(
                f'at {point_text(goal)} m the tool of the nominal arm would be outside its box',
                Refusal.OUTSIDE_WORKSPACE,
            )
        return tracker.to_camera(goal)
