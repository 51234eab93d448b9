"""mink's own limits, as a baseline for the safety filter."""

from mher_ros.bench.plant_distances import in_order_of_types, PlantDistances
from mher_ros.control.motion import length
from mher_ros.robots.collision_model import HOME_SHARE
from mher_ros.simulation.dynamic_arm import DynamicArm
import mink
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

LM_DAMPING, DAMPING = 1.0, 1e-3  # as in mink's example of a UR5e
DETECTION = 2.0  # distance at which the limit starts, in clearances; as mink's default values


class MinkArm:
    """
    Inverse kinematics with limits of mink: position, velocity and collision.

    The target moves straight to the goal with the speed limit of the robot. Nothing else is
    limited: neither acceleration nor the speed of the tool. The joint positions are those that
    mink integrates, as in its examples.
    """

    def __init__(self, world: DynamicArm, clearance: float, speed: float) -> None:
        self._world, self._speed, model = world, speed, world.model
        self._configuration = mink.Configuration(model, world.data.qpos.copy())
        # The tool is fixed to the body of the last joint, and keeps its orientation.
        body = model.jnt_bodyid[-1]
        place, rotation = world.data.xpos[body], mink.SO3(world.data.xquat[body].copy())
        self._offset = world.tool_position() - place
        self._rotation = rotation
        self._task = mink.FrameTask(
            model.body(body).name,
            'body',
            position_cost=1.0,
            orientation_cost=1.0,
            lm_damping=LM_DAMPING,
        )
        most = world.arm.velocity_limits
        names = [model.joint(joint).name for joint in range(model.njnt)]
        self._limits: list[mink.Limit] = [
            mink.ConfigurationLimit(model),
            mink.VelocityLimit(model, dict(zip(names, most.tolist(), strict=True))),
            *_collision_limits(world, clearance),
        ]
        self._target = self._goal = world.tool_position()

    @property
    def has_arrived(self) -> bool:
        """Whether the target is at the goal."""
        return length(self._goal - self._target) < 1e-9

    def take_goal(self, goal: Vector) -> None:
        """Move to ``goal`` (3,) [m] from where the tool is."""
        self._target, self._goal = self._world.tool_position(), goal

    def next_positions(self, period: float) -> Vector | None:
        """Return the joint positions (k,) of the next command; None: the QP has no solution."""
        left = self._goal - self._target
        self._target = self._target + left * min(
            1.0, self._speed * period / max(length(left), 1e-9)
        )
        self._task.set_target(
            mink.SE3.from_rotation_and_translation(self._rotation, self._target - self._offset)
        )
        configuration = self._configuration
        try:
            velocities = mink.solve_ik(
                configuration, [self._task], period, 'daqp', DAMPING, limits=self._limits
            )
        except mink.MinkError:
            return None
        configuration.integrate_inplace(velocities, period)
        return np.asarray(configuration.q.copy())


def _collision_limits(world: DynamicArm, clearance: float) -> list[mink.Limit]:
    """Return a limit for all pairs, and one for each pair that is nearer at the start."""
    model, plant = world.model, PlantDistances(world.model)
    at_start = plant.distances(world.data.qpos)
    # As for the safety filter: of such a pair half of that distance is kept.
    near = HOME_SHARE * at_start < clearance
    groups = [(plant.pairs[~near], clearance)]
    groups += [(plant.pairs[[one]], HOME_SHARE * at_start[one]) for one in np.flatnonzero(near)]
    limits: list[mink.Limit] = []
    for pairs, least in groups:
        limit = mink.CollisionAvoidanceLimit(
            model,
            [([one], [other]) for one, other in pairs.tolist()],
            minimum_distance_from_collisions=least,
            collision_detection_distance=DETECTION * least,
        )
        if not limit.geom_id_pairs:  # mink leaves out parts of neighbouring bodies
            continue
        # mink sorts geoms by number; with MuJoCo 3.3 some gradients would have the wrong sign.
        ordered = in_order_of_types(model, np.array(limit.geom_id_pairs))
        limit.geom_id_pairs = [(one, other) for one, other in ordered.tolist()]
        limits.append(limit)
    return limits
