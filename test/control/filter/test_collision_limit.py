"""No motion that the filter lets through brings the arm into contact, and it can always stop."""

import dataclasses

from arm_models import load_arm
from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.control.filter.collision_limit import _smallest, CollisionLimit
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.motion import JointVelocities, ToolVelocity
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.scene import CollisionOptions, Obstacle
import numpy as np
import pytest

PERIOD = 0.01
NAMES = ('panda', 'ur5e')
SHARE = st.floats(-1.0, 1.0)
STORIES = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just('joints'), st.lists(SHARE, min_size=7, max_size=7)),
            st.tuples(st.just('tool'), st.lists(SHARE, min_size=3, max_size=3)),
            st.tuples(st.just('towards'), st.integers(0, 5)),
            st.tuples(st.just('brake'), st.none()),
        ),
        st.integers(5, 60),
    ),
    min_size=1,
    max_size=5,
)


def with_scene(name, *obstacles, **options):
    """Return (robot, its model) with obstacles."""
    robot, _ = load_arm(name)
    collision = dataclasses.replace(robot.collision, **{'enabled': True, **options})
    robot = dataclasses.replace(robot.simulated(), scene=obstacles, collision=collision)
    return robot, ArmModel(robot)


def around(name):
    """Return obstacles near the tool, and below it."""
    robot, arm = load_arm(name)
    x, y, z = arm.tool_position(np.array([robot.home[joint] for joint in arm.joint_names]))
    return (
        Obstacle('table', 'box', (x + 0.2, y, z - 0.2), size=(0.6, 0.6, 0.1)),
        Obstacle('post', 'cylinder', (x, y + 0.2, z), size=(0.04, 0.6, 0.0)),
        Obstacle('ball', 'sphere', (x + 0.05, y - 0.2, z + 0.05), size=(0.06, 0.0, 0.0)),
        Obstacle('wall', 'plane', (x + 0.3, y, z), rpy=(0.0, -np.pi / 2, 0.0)),
    )


ARMS = {name: with_scene(name, *around(name)) for name in NAMES}


class Filtered:
    """An arm that does as it is commanded, and its distances from everything."""

    def __init__(self, robot, arm, edge=1.0, is_velocity=False):
        self.arm = arm
        self.positions = np.array([robot.home[joint] for joint in arm.joint_names])
        tool = arm.tool_position(self.positions)
        limiter = MotionLimiter(MotionLimits(), tool - edge, tool + edge)
        self.filter = JointFilter(arm, limiter, PERIOD, is_velocity)
        self.filter.begin(self.positions)
        self.distances = PairDistances(arm.collision)
        self.every = np.arange(len(arm.collision.pairs))
        self.least = np.inf
        self.margins()

    def margins(self):
        """Return distances beyond the clearances (pairs,)."""
        self.distances.move(self.positions)
        found = self.distances.evaluate(self.every) - self.arm.collision.clearances
        self.least = min(self.least, found.min())
        return found

    def step(self, asked):
        before = self.filter.joint_velocities
        if asked is None:
            self.filter.brake()
        else:
            self.filter.prepare(self.positions)
            self.filter.advance(asked)
        change = np.abs(self.filter.joint_velocities - before)
        assert (change <= self.arm.acceleration_limits * PERIOD).all()
        self.positions = self.filter.joint_positions.copy()
        self.margins()

    def joints(self, shares):
        return JointVelocities(np.array(shares[: len(self.positions)]) * self.arm.velocity_limits)

    def towards(self, rank):
        """Return full-scale velocities that bring the pair of this rank together fastest."""
        pair = np.argsort(self.margins())[rank : rank + 1]
        rates = []
        for change in np.eye(len(self.positions)) * 1e-5:
            ends = []
            for sign in (-0.5, 0.5):
                self.distances.move(self.positions + sign * change)
                ends.append(self.distances.evaluate(pair)[0])
            rates.append(ends[1] - ends[0])
        return JointVelocities(-np.sign(np.round(rates, 9)) * self.arm.velocity_limits)


@pytest.mark.nightly
@pytest.mark.parametrize('name', NAMES)
@settings(max_examples=settings.default.max_examples // 20)
@given(story=STORIES)
def test_whatever_is_asked_for_nothing_comes_too_close_and_it_can_stop(name, story):
    filtered = Filtered(*ARMS[name])
    for (kind, shares), ticks in story:
        for _ in range(ticks):
            if kind == 'brake':
                filtered.step(None)
            elif kind == 'joints':
                filtered.step(filtered.joints(shares))
            elif kind == 'towards':
                filtered.step(filtered.towards(shares))
            else:
                filtered.step(ToolVelocity(0.5 * np.array(shares)))
    for _ in range(200):
        if filtered.filter.is_at_rest:
            break
        filtered.step(None)
    assert filtered.filter.is_at_rest
    assert filtered.least > -1e-6


@pytest.mark.parametrize('name', NAMES)
def test_velocities_towards_each_near_pair_do_not_bring_its_parts_too_close(name):
    filtered = Filtered(*ARMS[name])
    for rank in range(6):
        for _ in range(60):
            filtered.step(filtered.towards(rank))
    assert filtered.least > -1e-6
    assert filtered.margins().min() < 0.01  # they were approached


@pytest.mark.parametrize('name', NAMES)
def test_the_tool_stops_before_a_wall_and_slides_along_it(name):
    filtered = Filtered(*with_scene(name, around(name)[-1]))
    start = filtered.filter.tool_position
    for _ in range(250):
        filtered.step(ToolVelocity(np.array((0.2, 0.0, 0.0))))
    assert filtered.least > -1e-6
    assert filtered.margins().min() < 0.02  # it is no wider than it must be
    stopped = filtered.filter.tool_position
    assert stopped[0] - start[0] < 0.3
    for _ in range(100):
        filtered.step(ToolVelocity(np.array((0.1, 0.0, 0.15))))
    assert filtered.filter.tool_position[2] > stopped[2] + 0.03
    assert filtered.least > -1e-6


@pytest.mark.parametrize('name', NAMES)
def test_commands_are_the_same_if_nothing_is_near(name):
    """To the bit, with an obstacle far away and without any collision avoidance."""
    far = Obstacle('far', 'box', (5.0, 0.0, 0.0), size=(0.1, 0.1, 0.1))
    told = []
    for options in ({}, {'enabled': False}):
        robot, arm = with_scene(name, far, **options)
        positions = np.array([robot.home[joint] for joint in arm.joint_names])
        tool = arm.tool_position(positions)
        one = JointFilter(
            arm, MotionLimiter(MotionLimits(), tool - 0.1, tool + 0.1), PERIOD, False
        )
        one.begin(positions)
        random, commands = np.random.default_rng(0), []
        for step in range(200):
            if step % 40 == 0:
                asked = ToolVelocity(random.uniform(-0.2, 0.2, 3))
            one.prepare(positions)
            one.advance(asked)
            positions = one.joint_positions.copy()
            commands.append(positions)
        told.append(commands)
    np.testing.assert_array_equal(*told)


def test_an_arm_that_is_too_close_may_only_move_away():
    robot, arm = load_arm('panda')
    home = np.array([robot.home[joint] for joint in arm.joint_names])
    x, y, z = arm.tool_position(home)
    size, start = (0.1, 0.1, 0.1), 0.0
    for height in (z - 0.1, None):
        if height is None:  # 5 mm closer to the fingers than allowed
            height = z - 0.1 + start + 0.005
        robot, arm = with_scene('panda', Obstacle('block', 'box', (x, y, height), size=size))
        filtered = Filtered(robot, arm)
        below = [pair for pair in filtered.every if 'block' in arm.collision.names(pair)]
        start = filtered.margins()[below].min()
    assert -0.01 < start < 0.0
    for _ in range(30):
        filtered.step(ToolVelocity(np.array((0.0, 0.0, -0.1))))
    assert filtered.least >= start - 1e-6
    for _ in range(100):
        filtered.step(ToolVelocity(np.array((0.0, 0.0, 0.1))))
    assert filtered.margins().min() > 0.0
    assert filtered.least >= start - 1e-6


def test_velocity_commands_keep_room_for_the_delay_of_the_arm():
    robot, arm = ARMS['panda']
    ends = []
    for is_velocity in (False, True):
        filtered = Filtered(robot, arm, is_velocity=is_velocity)
        for _ in range(120):
            filtered.step(ToolVelocity(np.array((0.2, 0.0, 0.0))))
        ends.append(filtered.filter.tool_position[0])
        assert filtered.least > -1e-6
    assert ends[1] < ends[0]


@pytest.mark.parametrize('name', NAMES)
def test_gradients_are_those_of_the_distances(name):
    """Along random motions of 10 microradians."""
    robot, arm = ARMS[name]
    limit = CollisionLimit(arm, arm.collision, PERIOD)
    random = np.random.default_rng(3)
    home = np.array([robot.home[joint] for joint in arm.joint_names])
    home += random.normal(0.0, 0.1, len(home))  # there, few faces are parallel
    everything = np.full(len(home), 10.0)
    limit.prepare(home, everything, 1.0)
    rows, _ = limit.rows(np.zeros(len(home)))
    pairs, query = limit._active, PairDistances(arm.collision)
    rows = rows[: len(pairs)]  # those of nearest points
    for _ in range(20):
        moved = random.normal(0.0, 1e-5, len(home))
        found = []
        for sign in (-1.0, 1.0):
            query.move(home + sign * moved)
            found.append(query.evaluate(pairs))
        near = np.minimum(*found) < 0.4
        change = (found[1] - found[0]) / 2.0
        # Where two vertices are nearest, the gradient is that of one of them.
        wrong = np.abs(change + rows @ moved)[near] > 1e-7
        assert wrong.mean() < 0.1


@pytest.mark.parametrize('seed', range(3))
def test_motions_that_are_clear_are_so_at_every_point(seed):
    robot, arm = ARMS['panda']
    random = np.random.default_rng(seed)
    limit, query = CollisionLimit(arm, arm.collision, PERIOD), PairDistances(arm.collision)
    every, clearances = np.arange(len(arm.collision.pairs)), arm.collision.clearances
    home = np.array([robot.home[joint] for joint in arm.joint_names])
    clear = 0
    for _ in range(60):
        start = home + random.normal(0.0, 0.2, 7)
        query.move(start)
        at_start = query.evaluate(every)
        moved = random.normal(0.0, 0.1, 7)
        limit.prepare(start, np.abs(moved), 0.1)
        if not limit.is_clear(moved, 0.1):
            continue
        clear += 1
        for part in np.linspace(0.0, 1.0, 21):
            query.move(start + part * moved)
            assert (query.evaluate(every) >= np.minimum(clearances, at_start) - 1e-6).all()
    assert clear > 5


def test_the_smallest_distance_of_a_curved_motion():
    parts = np.linspace(0.0, 1.0, 1001)
    for start, end, curved in ((1.0, 1.0, 0.1), (1.0, 0.5, 0.1), (1.0, 2.0, 0.1), (1.0, 1.1, 0.2)):
        line = start + (end - start) * parts - 4.0 * curved * parts * (1.0 - parts)
        found = _smallest(np.array([start]), np.array([end]), np.array([curved]))
        assert found[0] == pytest.approx(line.min(), abs=1e-6)
    assert _smallest(np.array([1.0]), np.array([1.0]), np.array([0.0]))[0] == 1.0


def test_a_robot_file_can_turn_it_off():
    robot, arm = with_scene('ur5e', *around('ur5e'), enabled=False)
    assert robot.collision == CollisionOptions(enabled=False)
    assert arm.collision is None


@pytest.mark.parametrize('name', NAMES)
def test_the_two_parts_with_the_least_room_are_named_with_their_distance(name):
    filtered, random = Filtered(*ARMS[name]), np.random.default_rng(0)
    collision, told = filtered.arm.collision, 0
    asked = None
    for tick in range(300):
        if tick % 50 == 0:
            asked = ToolVelocity(random.uniform(-0.5, 0.5, 3))
        room = filtered.margins()
        filtered.filter.prepare(filtered.positions)
        nearest = filtered.filter.nearest
        if room.min() < 2e-3:
            assert nearest is not None
        if nearest is not None:
            told += 1
            one, other, distance = nearest
            least = min(
                room[pair] + collision.clearances[pair]
                for pair in filtered.every
                if collision.names(pair) == (one, other)
            )
            # The filter may know only a lower bound, which is close where parts are near.
            assert least - 5e-3 < distance < least + 1e-6
        filtered.step(asked)
    assert told > 50


def test_without_collision_avoidance_no_parts_are_named():
    filtered = JointFilter(
        load_arm('panda')[1],
        MotionLimiter(MotionLimits(), np.full(3, -2.0), np.full(3, 2.0)),
        PERIOD,
        False,
    )
    assert filtered.nearest is None
