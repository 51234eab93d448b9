"""Random postures at the start of an episode: the tool is in the box of goals, and free."""

from mher_ros.control.reachability import Reachability
from mher_ros.interface import Vector
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.workspace import Workspace
import numpy as np

STREAM = 1  # of the random numbers of these postures: goals do not depend on them
SPREAD = 0.5  # largest distance of a joint from home before the tool is moved into the box
TRIES = 100  # to draw a posture


class RandomStarts:
    """Draws postures of an arm, by inverse kinematics from postures near ``home``."""

    def __init__(
        self, arm: ArmModel, home: Vector, workspace: Workspace, keeps_orientation: bool
    ) -> None:
        """``home`` (n,) [rad or m]; ``keeps_orientation``: that of the tool is the one there."""
        self._arm, self._home, self._workspace = arm, home, workspace
        self._reachability = Reachability(arm, keeps_orientation=keeps_orientation)
        self._orientation = arm.tool_pose(home)[1]
        self._spread = 0.0 if keeps_orientation else SPREAD

    def draw(self, seed: int) -> Vector:
        """Return the joint positions (k,) [rad or m] of a seed."""
        rng, count, space = (
            np.random.default_rng((STREAM, seed)),
            len(self._arm.lower),
            self._workspace,
        )
        for _ in range(TRIES):
            near = self._home.copy()
            moved = near[:count] + rng.uniform(-self._spread, self._spread, count)
            near[:count] = np.clip(moved, self._arm.lower, self._arm.upper)
            place = rng.uniform(space.low, space.high)
            posture = self._reachability.solve(place, near, self._orientation).positions
            tool = self._arm.tool_position(posture)
            is_inside = ((space.low <= tool) & (tool <= space.high)).all()
            if is_inside and self._reachability.touching(posture) is None:
                return posture[:count]
        raise OptionError(
            'task.start=random needs postures without contacts with the tool in the box of goals; '
            f'there is none among {TRIES} random ones'
        )
