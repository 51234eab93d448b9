"""Obstacles that come and move, judged by MuJoCo's contacts in a plant with masses and drives."""

from collections import Counter
import dataclasses

from arm_models import load_arm
from mher_ros.control.command_path import CommandPath
from mher_ros.control.motion import JointVelocities, ToolVelocity
from mher_ros.control.obstacle_tracker import ObstacleTracker
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import obstacle_solid
from mher_ros.simulation.dynamic_arm import DynamicArm
import mujoco
import numpy as np
import pytest

SPEED = 0.2
"""Of an obstacle [m/s]."""
UPDATED, LATE = 0.1, 0.05
"""Time between two updates, and age of the place in an update [s]."""
TOUCH = 0.001
"""Depth of a contact that counts [m]."""
MOVES = 0.01
"""Speed of the arm towards the obstacle from which on it is the arm that hits [m/s]."""
RADIUS, FREE = 0.06, 0.1
LONGEST = 3.0
"""Time of one trial [s]."""
EVERYWHERE = 2.0


class Attacker:
    """Asks for motions towards the ball, and for random joint velocities up to their limits."""

    def __init__(self, world, random):
        self.world, self.random, self.asked = world, random, 0

    def begin(self, now):
        """Do nothing."""

    def ask(self, now):
        most = self.world.arm.velocity_limits
        if self.asked % 20 == 0:
            self.motion = JointVelocities(self.random.uniform(-most, most))
            self.seeks = self.random.random() < 0.7
        self.asked += 1
        away = self.world.plant.model.geom_pos[self.world.ball] - self.world.plant.tool_position()
        return ToolVelocity(0.25 * away / np.linalg.norm(away)) if self.seeks else self.motion

    def progress(self, tool):
        return 0.0, 0.0


class Moving:
    """A simulated arm, and a ball that moves where it is told to."""

    def __init__(
        self, name, output='joint_position', is_on=True, delay=0.0, reaction_time=0.15, **collision
    ):
        robot, _ = load_arm(name)
        ball = Obstacle('ball', 'sphere', (0.0, 0.0, 9.0), size=(RADIUS, 0.0, 0.0))
        self.plant = DynamicArm(dataclasses.replace(robot, scene=(ball,)), output, delay=delay)
        options = dataclasses.replace(robot.collision, enabled=is_on, **collision)
        robot = dataclasses.replace(robot, collision=options, reaction_time=reaction_time)
        self.arm = ArmModel(robot.simulated())
        self.output, self.ball = output, self.plant.model.geom('ball').id
        self.slots = self.arm.obstacle_slots()
        self.tracker = None if self.slots is None else ObstacleTracker(self.slots, options)

    def start(self, controller):
        box = np.full(3, -EVERYWHERE), np.full(3, EVERYWHERE)
        self.path = CommandPath(controller, self.arm, box, self.output)
        if self.slots is not None:
            self.path.filter.avoid(self.slots)
        self.plant.step(self.path)
        self.path.monitor.take_goal(self.plant.now)

    def place(self, position):
        self.plant.model.geom_pos[self.ball] = position

    def tell(self, position, age=0.0, moves=True):
        now = self.plant.now
        solid = obstacle_solid(
            Obstacle('ball', 'sphere', tuple(position), size=(RADIUS, 0.0, 0.0))
        )
        return self.tracker.put('ball', solid, now - age, now, moves=moves)

    def is_free(self, position):
        """Return whether the ball is away from the arm there."""
        self.place(position)
        model, data = self.plant.model, self.plant.data
        mujoco.mj_kinematics(model, data)
        return all(
            mujoco.mj_geomDistance(model, data, *sorted((geom, self.ball), key=type_of), 1.0, None)
            > FREE
            for geom in range(model.ngeom)
            if geom != self.ball and model.geom_contype[geom]
            for type_of in [lambda one: model.geom_type[one]]
        )

    def touched_at(self):
        """Return how fast the arm moves towards the ball where they touch [m/s]; or None."""
        model, data = self.plant.model, self.plant.data
        fastest = None
        for contact in data.contact[: data.ncon]:
            if self.ball not in contact.geom or contact.dist > -TOUCH:
                continue
            other = int(contact.geom[0] if contact.geom[1] == self.ball else contact.geom[1])
            jacobian = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, jacobian, None, contact.pos, int(model.geom_bodyid[other]))
            towards = contact.frame[:3] * (1.0 if contact.geom[1] == self.ball else -1.0)
            fastest = max(fastest or -1.0, float(towards @ jacobian @ data.qvel))
        return fastest

    def cross(self, random):
        """Let the ball pass through the arm, and return who hit whom: 'arm', 'ball' or ''."""
        tool, told, begun = self.plant.tool_position(), -1.0, self.plant.now
        while True:
            away = random.normal(size=3)
            away /= np.linalg.norm(away)
            start = tool + 0.4 * away + random.uniform(-0.1, 0.1, 3)
            if self.is_free(start):
                break
        while (passed := self.plant.now - begun) < LONGEST:
            if self.slots is not None and passed >= told + UPDATED:
                told = passed
                self.tell(start - away * SPEED * (passed - LATE), LATE)
            self.place(start - away * SPEED * passed)
            self.plant.step(self.path)
            if (speed := self.touched_at()) is not None:
                return 'arm' if speed > MOVES else 'ball'
        return ''


def count(name, output, trials, **world):
    """Return how often an arm that moves at random hit the ball, and was hit by it."""
    hits, world = Counter(), Moving(name, output, **world)
    for trial in range(trials):
        random = np.random.default_rng(trial)
        world.plant._plant.reset()
        world.place((0.0, 0.0, 9.0))
        if world.tracker is not None:
            world.tracker.forget('ball')
        world.start(Attacker(world, random))
        hits[world.cross(random)] += 1
    return hits


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
@pytest.mark.parametrize('name', ['panda', 'ur5e'])
def test_an_arm_never_hits_what_crosses_its_way(name, output):
    hits = count(name, output, 5)
    assert not hits['arm'], hits
    assert hits['ball'], hits  # while it rests: it does not give way


def test_without_the_filter_it_does():
    assert count('panda', 'joint_position', 5, is_on=False)['arm']


class Ahead(Attacker):
    """Asks for one motion of the tool."""

    def __init__(self, velocity):
        self.velocity = np.array(velocity)

    def ask(self, now):
        return ToolVelocity(self.velocity)


def meet(name, output, direction, delay, reaction_time):
    """
    Let a ball come towards a tool that is asked to move towards it, until they touch.

    Return the speed of the arm towards the ball then [m/s].
    """
    world = Moving(name, output, delay=delay, reaction_time=reaction_time)
    start, direction, told = world.plant.tool_position(), np.array(direction), -1.0
    world.start(Ahead(0.25 * direction))
    while (speed := world.touched_at()) is None:
        now = world.plant.now
        assert now < LONGEST
        ball = start + (0.8 - SPEED * now) * direction
        world.place(ball)
        if now >= told + UPDATED:
            told = now
            world.tell(ball + SPEED * LATE * direction, LATE)
        world.plant.step(world.path)
    assert (world.plant.tool_position() - start) @ direction > 0.1
    return speed


@pytest.mark.parametrize('direction', [(1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1)])
@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
@pytest.mark.parametrize('name', ['panda', 'ur5e'])
def test_an_arm_that_is_known_to_be_slow_stops_in_time(name, output, direction):
    assert meet(name, output, direction, delay=0.3, reaction_time=0.3) < MOVES


@pytest.mark.parametrize(('name', 'output', 'direction', 'reaction_time'), [
    ('ur5e', 'joint_velocity', (1, 0, 0), 0.1),
    ('ur5e', 'joint_velocity', (1, 0, 0), 0.0),
    ('panda', 'joint_position', (0, 0, 1), 0.0),
])  # fmt: skip
def test_an_arm_that_is_slower_than_its_reaction_time_does_not(
    name, output, direction, reaction_time
):
    assert meet(name, output, direction, 0.3, reaction_time) > MOVES


def push(velocity, moves, starts_at, ends_at):
    """Let the ball come to a tool that is asked to move; return its way and the last gap [m]."""
    world = Moving('panda')
    start = world.plant.tool_position()
    world.start(Ahead(velocity))
    while world.plant.now < 4.0:
        ball = start + (max(ends_at, starts_at - SPEED * world.plant.now), 0.0, 0.0)
        world.tell(ball, moves=moves)
        world.plant.step(world.path)
    query = PairDistances(world.slots)
    query.move(world.plant.positions()[world.arm.order])
    pairs = np.flatnonzero(np.isfinite(world.slots.clearances))
    way = world.plant.tool_position() - start
    return way, query.evaluate(pairs).min(), world.path.filter.obstruction


def test_the_arm_keeps_more_distance_from_an_obstacle_that_may_move():
    gaps = {moves: push((0.1, 0.0, 0.0), moves, 0.3, 0.3)[1] for moves in (False, True)}
    assert gaps[False] == pytest.approx(0.01, abs=0.005)
    assert 0.01 + SPEED * 0.25 < gaps[True] < 0.01 + SPEED * 0.5


def test_an_obstacle_that_may_move_fast_stops_no_arm_that_is_far_from_it():
    world = Moving('panda', obstacle_speed=1.6)
    start = world.plant.tool_position()
    world.start(Ahead((0.1, 0.0, 0.0)))
    place = tuple(start + (1.8, 0.0, 0.0))
    wall = obstacle_solid(Obstacle('', 'box', place, size=(0.1, 8.0, 8.0)))
    while world.plant.now < 2.0:
        world.tracker.put('wall', wall, world.plant.now, world.plant.now, moves=True)
        world.plant.step(world.path)
    assert world.plant.tool_position()[0] > start[0] + 0.1


def test_an_arm_that_is_asked_to_stay_does_not_give_way():
    way, gap, obstruction = push((0.0, 0.0, 0.0), True, 0.4, 0.08)
    assert np.linalg.norm(way) < 1e-3
    assert gap < 0.02  # less than it keeps from one that may move
    assert 'ball' in obstruction


def test_an_arm_may_move_away_from_what_came_too_close():
    way, _, obstruction = push((-0.1, 0.0, 0.0), True, 0.4, 0.08)
    assert way[0] < -0.2
    assert obstruction == ''
