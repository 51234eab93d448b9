"""Collision avoidance, as it is by default, costs no goal that the arm reaches without contact."""

from command_path_arm import CommandPathArm
from mher_ros.control.reachability import Reachability
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import GoalError
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.simulation.urdf_writer import link_name
import mujoco
import numpy as np
import pytest

GOALS = 25
LONGEST = 1500  # commands to a goal
TASKS = {
    'fetch': 'fetch_reach',
    'sawyer': 'sawyer_reach',
    'ur5e': 'fetch_reach',
    'panda': 'fetch_reach',
}
TOO_CLOSE = 0.01
"""The clearance [m]: at a goal that is refused, MuJoCo finds no larger distance."""


class Judge:
    """Distances between the links of an arm by the geoms of its simulation."""

    def __init__(self, robot, arm):
        task = robot.simulation_task
        self._plant = JointPlant(task) if task else UrdfPlant(robot)
        self._order = [arm.state_names.index(name) for name in self._plant.command_names]
        pairs = range(len(arm.collision.pairs))
        self._pairs = {frozenset(arm.collision.names(pair)) for pair in pairs}

    def least(self, positions):
        """Return the least distance [m] of links that are kept apart; ``positions`` (n,)."""
        model, data = self._plant.model, self._plant.data
        data.qpos[:] = positions[self._order]
        mujoco.mj_kinematics(model, data)
        links = [link_name(model, body).removesuffix('_fixed') for body in model.geom_bodyid]
        return min(
            mujoco.mj_geomDistance(model, data, one, other, 1.0, None)
            for one in range(model.ngeom)
            for other in range(one)
            if frozenset((links[one], links[other])) in self._pairs
        )


@pytest.mark.parametrize('name', TASKS)
def test_goals_are_reached_or_refused_for_a_contact(name):
    robot = load_robot(name)
    arm = CommandPathArm(
        robot.output, name, TASKS[name], avoids_collisions=robot.collision.enabled
    )
    assert arm.model.collision is not None
    reachability, judge = Reachability(arm.model), Judge(robot, arm.model)
    random, space = np.random.default_rng(11), arm.workspace
    low, high = np.maximum(space.low, space.box_low), np.minimum(space.high, space.box_high)
    reached = 0
    for goal in random.uniform(low, high, (GOALS, 3)):
        arm.rest()
        orientation = arm.path.held_orientation
        try:
            reachability.check_goal(goal, arm.positions, orientation)
        except GoalError as error:
            assert error.code == 'in_collision'
            there = reachability.solve(goal, arm.positions, orientation)
            assert judge.least(there.positions) < TOO_CLOSE
            continue
        arm.controller.take_goal(arm.now, goal)
        for _ in range(LONGEST):
            arm.tick()
            if arm.controller.reached:
                break
        assert arm.controller.reached, arm.monitor.last_drop
        reached += 1
        arm.monitor.drop_goal('the next one follows')
        while arm.path.is_moving:
            arm.tick()
    assert reached > 0.9 * GOALS
