"""Sources of joint velocities up to the limits: random ones, and ones that seek contacts."""

from mher_ros.bench.plant_distances import PlantDistances
from mher_ros.control.motion import JointVelocities, Motion
from mher_ros.robots.arm_model import ArmModel
from mher_ros.simulation.dynamic_arm import DynamicArm
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

HELD = 20  # commands until random velocities, or the pair that is approached, change
CANDIDATES = 8  # pairs of which one is approached
NEAREST = 0.6  # probability that it is the nearest one
AWAY = 0.15  # probability of random velocities instead, which lead to other postures
STEERABLE = 0.01  # least speed with which the joints can bring the parts of a pair together [m/s]


class RandomJoints:
    """Asks for random joint velocities up to their limits."""

    def __init__(self, arm: ArmModel, random: np.random.Generator) -> None:
        self._most, self._random, self._asked = arm.velocity_limits, random, 0
        self._velocities: Vector = np.zeros_like(self._most)

    def begin(self, now: float) -> None:
        """Do nothing."""

    def ask(self, now: float) -> Motion | None:
        if self._asked % HELD == 0:
            self._change()
        self._asked += 1
        return JointVelocities(self._velocities)

    def _change(self) -> None:
        self._velocities = self._random.uniform(-self._most, self._most)

    def progress(self, tool: Vector) -> tuple[float, float]:
        """Return a distance of 0: there is no goal."""
        return 0.0, 0.0


class Adversary(RandomJoints):
    """
    Asks for the joint velocities that bring two parts together as fast as possible.

    The parts are those of the simulation, and so are their distances: the safety filter's own
    model of them is not used. It changes to another pair, or to random velocities, now and then.
    """

    def __init__(self, world: DynamicArm, random: np.random.Generator) -> None:
        super().__init__(world.arm, random)
        self._data, self._distances = world.data, PlantDistances(world.model)
        self._rank, self._is_random = 0, False

    def _change(self) -> None:
        random = self._random
        self._is_random = random.random() < AWAY
        self._rank = 0 if random.random() < NEAREST else int(random.integers(CANDIDATES))
        # Also for joints that do not move the pair.
        self._velocities = random.choice((-1.0, 1.0), len(self._most)) * self._most

    def ask(self, now: float) -> Motion | None:
        kept = super().ask(now)
        if self._is_random:
            return kept
        near = [
            one.gradient
            for one in self._distances.nearest(self._data.qpos, 2 * CANDIDATES)
            if np.abs(one.gradient) @ self._most > STEERABLE
        ]
        if not near:
            return kept
        gradient = near[min(self._rank, len(near) - 1)]
        # A linear function is least at a corner of the limits.
        approach = -np.sign(gradient) * self._most
        return JointVelocities(np.where(approach == 0.0, self._velocities, approach))
