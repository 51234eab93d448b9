"""Distances of an arm from an obstacle, by MuJoCo's model of its URDF and published positions."""

import dataclasses

from mher_ros.simulation.urdf_plant import UrdfPlant
import mujoco


class ObstacleJudge:
    """Knows an arm and one obstacle of its own."""

    def __init__(self, robot, obstacle):
        plant = UrdfPlant(dataclasses.replace(robot, scene=(obstacle,)))
        self._model, self._names = plant.model, plant.command_names
        self._data, self._obstacle = mujoco.MjData(plant.model), plant.model.geom(obstacle.name).id

    def distance(self, state):
        """Return the least distance [m] of a link that moves, for a JointState."""
        model, data, ours = self._model, self._data, self._obstacle
        for name in self._names:
            position = state.position[list(state.name).index(name)]
            data.qpos[model.joint(name).qposadr[0]] = position
        mujoco.mj_kinematics(model, data)
        links = [
            geom
            for geom in range(model.ngeom)
            if model.geom_contype[geom] and model.body_weldid[model.geom_bodyid[geom]]
        ]
        return min(
            mujoco.mj_geomDistance(
                model, data, *sorted((geom, ours), key=model.geom_type.__getitem__), 2.0, None
            )
            for geom in links
            if geom != ours
        )
