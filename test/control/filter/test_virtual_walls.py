"""Walls and keep-in boxes for chosen links, judged by the meshes of MuJoCo's own model."""

import dataclasses

from arm_models import load_arm
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.motion import JointVelocities, ToolVelocity
from mher_ros.control.reachability import Reachability
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import RobotError
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.robots.workspace import GoalError
from mher_ros.simulation.urdf_plant import UrdfPlant
import mujoco
import numpy as np
import pytest

PERIOD = 0.01
YAW = 0.4  # of the box [rad]
AXES = np.array(((np.cos(YAW), np.sin(YAW), 0), (-np.sin(YAW), np.cos(YAW), 0), (0, 0, 1)))
SIZE = (0.5, 0.4, 0.4)
HAND = 'panda_hand'


class Panda:
    """A Panda that does as it is commanded, and the meshes of its links."""

    def __init__(self, *scene):
        robot = dataclasses.replace(
            load_arm('panda')[0], collision=CollisionOptions(), scene=scene
        )
        self.plant = UrdfPlant(robot)
        self.arm = ArmModel(robot.simulated())
        self.positions = np.array([robot.home[joint] for joint in self.arm.joint_names])
        tool = self.arm.tool_position(self.positions)
        limiter = MotionLimiter(MotionLimits(), tool - 2.0, tool + 2.0)
        self.filter = JointFilter(self.arm, limiter, PERIOD, is_velocity=False)
        self.filter.begin(self.positions)

    def ask(self, motion, ticks):
        """Ask for a motion, and yield after each command."""
        for _ in range(ticks):
            self.filter.prepare(self.positions)
            self.filter.advance(motion)
            self.positions = self.filter.joint_positions.copy()
            yield

    def points(self, link):
        """Return the vertices of the meshes of a link in the base frame (m, 3) [m]."""
        model, data, found = self.plant.model, self.plant.data, []
        data.qpos[:] = self.positions
        mujoco.mj_kinematics(model, data)
        for geom in np.flatnonzero(model.geom_bodyid == model.body(link).id):
            mesh = model.geom_dataid[geom]
            first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
            vertices = model.mesh_vert[first : first + count]
            turn = data.geom_xmat[geom].reshape(3, 3)
            found.append(vertices @ turn.T + data.geom_xpos[geom])
        return np.vstack(found)


def middle(link, *scene):
    points = Panda(*scene).points(link)
    return (points.min(axis=0) + points.max(axis=0)) / 2.0


def box_around(centre, *links):
    return Obstacle('cage', 'keep_in', tuple(centre), (0.0, 0.0, YAW), SIZE, links=links)


def left(panda, centre, link=HAND):
    """Return the least distance of a link from the walls of the box; below 0 it is outside."""
    local = (panda.points(link) - centre) @ AXES.T
    return float((np.array(SIZE) / 2.0 - np.abs(local)).min())


def test_a_link_stays_in_its_box_and_others_do_not_care():
    centre = middle(HAND)
    panda = Panda(box_around(centre, HAND))
    assert left(panda, centre, 'panda_link2') < -0.1
    random, nearest = np.random.default_rng(4), np.inf
    for direction in (*np.eye(3), *-np.eye(3)):
        for _ in panda.ask(ToolVelocity(0.3 * direction), 150):
            nearest = min(nearest, left(panda, centre))
    for _ in range(20):
        asked = random.uniform(-1.0, 1.0, 7) * panda.arm.velocity_limits
        for _ in panda.ask(JointVelocities(asked), 40):
            nearest = min(nearest, left(panda, centre))
    assert 0.009 < nearest < 0.03  # the clearance, and what the hull is larger than the mesh


def test_a_box_without_links_keeps_all_that_move_inside():
    centre = np.array((0.2, 0.0, 0.5))
    cage = Obstacle('cage', 'keep_in', tuple(centre), size=(1.2, 1.2, 1.2))
    panda = Panda(cage)
    links = [f'panda_link{number}' for number in range(2, 8)] + [HAND]
    pairs = [panda.arm.collision.names(pair) for pair in range(len(panda.arm.collision.pairs))]
    assert {one for one, other in pairs if other == 'cage'} == set()
    assert {other for one, other in pairs if one == 'cage'} >= set(links)
    random = np.random.default_rng(5)
    for _ in range(20):
        asked = random.uniform(-1.0, 1.0, 7) * panda.arm.velocity_limits
        for _ in panda.ask(JointVelocities(asked), 60):
            pass
        for link in links:
            assert (np.abs(panda.points(link) - centre) < 0.6).all()


def test_a_link_that_starts_outside_of_its_box_only_moves_in():
    """The box is half as wide, and starts beyond the hand."""
    centre = middle(HAND) + 0.24 * AXES[0]
    panda = Panda(box_around(centre, HAND))
    inwards = 0.1 * AXES[0]
    start = last = left(panda, centre)
    assert start < -0.02
    for _ in panda.ask(ToolVelocity(-inwards), 100):
        assert left(panda, centre) > start - 1e-3
    last = left(panda, centre)
    for _ in panda.ask(ToolVelocity(inwards), 150):
        now = left(panda, centre)
        assert now > last - 1e-4
        last = min(now, 0.009)
    assert now > 0.009
    for _ in panda.ask(ToolVelocity(-inwards), 200):
        assert left(panda, centre) > 0.009


def test_a_wall_stops_only_its_links():
    edge = float(Panda().points(HAND)[:, 0].max()) + 0.06
    ends = {}
    for links in ((), (HAND,), ('panda_link3', 'panda_link4')):
        wall = Obstacle('wall', 'plane', (edge, 0.0, 0.0), (0.0, -np.pi / 2, 0.0), links=links)
        panda = Panda(wall)
        for _ in panda.ask(ToolVelocity(np.array((0.1, 0.0, 0.0))), 150):
            pass
        ends[links] = float(panda.points(HAND)[:, 0].max())
    free = ends.pop(('panda_link3', 'panda_link4'))
    assert free > edge + 0.02
    for end in ends.values():
        assert edge - 0.03 < end < edge - 0.009


def test_links_that_are_not_there_are_an_error_that_lists_the_others():
    for name in ('panda_elbow', 'panda_link0', 'panda_hand_tcp'):
        with pytest.raises(RobotError, match=rf'scene\.cage\.links.*panda_link4.*got {name}'):
            Panda(box_around((0.5, 0.0, 0.5), HAND, name))


def test_goals_are_judged_by_the_links_that_a_wall_is_for():
    home = Panda().positions
    goal = Panda().arm.tool_position(home) + (0.1, 0.0, 0.0)
    wall = Obstacle('wall', 'plane', tuple(goal - (0.03, 0, 0)), (0.0, -np.pi / 2, 0.0))
    for links, code in (
        ((), 'inside_obstacle'),
        ((HAND,), 'in_collision'),
        (('panda_link3',), ''),
    ):
        reachability = Reachability(Panda(dataclasses.replace(wall, links=links)).arm)
        if not code:
            reachability.check_goal(goal, home, None)
            continue
        with pytest.raises(GoalError) as told:
            reachability.check_goal(goal, home, None)
        assert told.value.code == code


def test_virtual_walls_are_not_in_the_simulation():
    cage = box_around(middle(HAND))
    wall = Obstacle('wall', 'plane', (0.3, 0.0, 0.0), links=(HAND,))
    post = Obstacle('post', 'box', (0.0, 1.0, 0.0), size=(0.1, 0.1, 0.1))
    model = Panda(cage, wall, post).plant.model
    names = {model.geom(geom).name for geom in range(model.ngeom)}
    assert 'post' in names
    assert not names & {'cage', 'wall'}
