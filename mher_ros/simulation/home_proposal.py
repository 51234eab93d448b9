"""Proposes a home for an arm, and a workspace around it."""

import itertools
import math
from typing import NamedTuple

from mher_ros.control.reachability import corners_of, one_turn_limits
from mher_ros.interface import TaskInterface, Vector
from mher_ros.robots.workspace import Workspace
from mher_ros.simulation.workspace_places import WorkspacePlaces
import mujoco
import numpy as np

NEAR_LIMIT = 0.1  # least distance of a joint from its limit in a proposal [rad or m]
SAMPLES, TRIED = 2000, 20  # random postures for a new home; number of the best that are tried
FREE = 0.15  # least distance of a proposed workspace from the axis of the base [m]
OFFSETS = (0.0, -0.1, 0.1, -0.2, 0.2)  # of a workspace from the tool at home, on each axis [m]


class Proposal(NamedTuple):
    """A home, and a workspace around it whose corners the arm reaches."""

    home: dict[str, float]
    origin: tuple[float, ...]  # (3,) [m]


class HomeProposal:
    """Searches a home, and a workspace around it; obstacles are not considered."""

    def __init__(self, places: WorkspacePlaces, interface: TaskInterface, scale: float) -> None:
        """``scale``: of the workspace on this arm."""
        self._places, self._interface, self._scale = places, interface, scale

    def find(self, home: Vector, is_kept: bool) -> Proposal | None:
        """
        Return a home, and a workspace that the arm reaches; None: none was found.

        It is ``home`` (n,), if possible, with ``is_kept``; else its joints that are not commanded
        are those of ``home``.
        """
        names = self._places.arm.joint_names
        for posture in (*([home] if is_kept else ()), *self._postures(home)):
            origin = self._origin_at(posture)
            if origin is not None:
                joints = dict(zip(names, np.round(posture, 4).tolist(), strict=False))
                return Proposal(joints, tuple(origin.tolist()))
        return None

    def _origin_at(self, home: Vector) -> Vector | None:
        """Return the nearest suitable origin of the workspace around the tool at home."""
        tool, _ = self._places.arm.tool_pose(home)
        for offset in sorted(itertools.product(OFFSETS, repeat=3), key=lambda x: np.dot(x, x)):
            origin = np.round(tool + offset, 3)
            low, high = self._interface.goal_low, self._interface.goal_high
            workspace = Workspace(low, high, origin, self._scale)
            if min(math.hypot(x, y) for x, y, _ in corners_of(workspace)) < FREE:
                continue
            places = self._places.places(workspace, home, all_or_none=True)
            if places and all(
                place.margin >= NEAR_LIMIT and not self._places.is_singular(place.condition)
                for place in places
            ):
                return origin
        return None

    def _postures(self, home: Vector) -> list[Vector]:
        """Return postures (n,) with a well-conditioned Jacobian, the best first."""
        arm, random = self._places.arm, np.random.default_rng(0)
        low, high = one_turn_limits(arm.lower, arm.upper)
        scored = []
        for joints in random.uniform(low, high, (SAMPLES, len(low))):
            positions = home.copy()
            positions[: len(joints)] = joints
            scored.append((self._score(positions), positions))
        scored.sort(key=lambda pair: -pair[0])
        return [self._downward(posture) for score, posture in scored[:TRIED] if score > 0.0]

    def _downward(self, positions: Vector) -> Vector:
        """Return a posture with the tool at the same position, pointing down, if there is one."""
        place, orientation = self._places.arm.tool_pose(positions)
        axis, turn, down = np.empty(3), np.empty(4), np.empty(4)
        mujoco.mju_rotVecQuat(axis, np.array((0.0, 0.0, 1.0)), orientation)
        # The smallest rotation from the tool's axis to straight down.
        mujoco.mju_quatZ2Vec(turn, -axis)
        mujoco.mju_negQuat(turn, turn)
        mujoco.mju_mulQuat(down, turn, orientation)
        result = self._places.reachability.solve(place, positions, down)
        return result.positions if result.reached else positions

    def _score(self, positions: Vector) -> float:
        """Return a score: high in front of the base, pointing down, far from a singularity."""
        places = self._places
        links, (_, margin) = places.links(positions), places.margin(positions)
        tool, span = links[-1], np.ptp(links, axis=0).max()
        if margin < 3.0 * NEAR_LIMIT or tool[0] < span / 3.0 or links[1:, 2].min() < 0.05:
            return 0.0
        aside = abs(tool[1]) / max(tool[0], 1e-6)
        condition, down = places.condition(positions), -places.height(positions)
        return (1.1 + down) ** 2 / condition / (1.0 + 2.0 * aside)
