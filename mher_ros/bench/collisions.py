"""Whether a simulated arm stays out of contact, with itself and among random obstacles."""

from collections import Counter
from collections.abc import Callable, Iterator
import dataclasses
import math
import time
from typing import Any

from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress
from mher_ros.control.command_path import CommandPath
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.filter.safety_filter import SafetyFilter
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import Command, JointVelocities, Motion
from mher_ros.control.reachability import Reachability
from mher_ros.experiments.tables import Table
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.workspace import GoalError, place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.tasks import make
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

TASK = 'fetch_reach'  # whose workspace is used, unless a robot is simulated by another task
OBSTACLES = 5  # besides the table
SIZES = (0.03, 0.1)  # half an edge, or radius, of an obstacle [m]
AROUND = 0.15  # how far from the workspace obstacles stand [m]
FREE = 0.04  # least distance of an obstacle from the arm at home [m]
BELOW = 0.05  # of the table below the workspace [m]
GOALS_PER_SCENE = 10
LONGEST = 15.0  # time for a goal [s]
RANDOM, HELD = 3.0, 20
"""Time of one random motion of the joints [s], and commands until its velocities change."""
EVERYWHERE = 2.0  # half an edge of the tool's box in random motions [m]
TOUCH = 0.001  # depth of a contact that counts as a penetration [m]


def measure(robot: str, goals: int, output: str, seed: int) -> Result:
    """
    Move an arm to goals, straight, and by random joint velocities up to their limits.

    Both are done again with the collision avoidance off: with the same scenes and goals, and with
    other random velocities and scenes from the same seed. MuJoCo's own contacts, in a simulation
    with masses and drives, tell what the arm touches.
    """
    told: dict[str, Any] = {}
    rows = []
    for name, is_on in (('on', True), ('off', False)):
        for kind in ('straight line', 'random joints'):
            trial = _Trial(load_robot(robot), output, np.random.default_rng(seed), is_on)
            (trial.go_straight if kind == 'straight line' else trial.move_at_random)(goals)
            told[f'{kind}, {name}'] = figures = trial.figures()
            columns = ('penetrations', 'worst_penetration_mm', 'reached', 'refused', 'stuck')
            cells = [str(figures[key]) for key in (*columns, 'ms_median', 'ms_p99')]
            rows.append((kind, name, *cells))
    on = [told[f'{kind}, on'] for kind in ('straight line', 'random joints')]
    figures = {
        'penetrations': sum(one['penetrations'] for one in on),
        'worst_penetration_mm': max(one['worst_penetration_mm'] for one in on),
        **{key: on[0][key] for key in ('reached', 'refused', 'stuck')},
        'ms_median': max(one['ms_median'] for one in on),
        'ms_p99': max(one['ms_p99'] for one in on),
    }
    header = (
        *('motion', 'avoidance', 'penetrations', 'deepest [mm]', 'reached', 'refused', 'stuck'),
        *('median [ms]', 'p99 [ms]'),
    )
    title = f'{robot}: {goals} goals and as many random motions, {OBSTACLES} obstacles, a table'
    explained = (
        'A penetration is a motion with a contact deeper than 1 mm. Times are CPU times of the '
        'safety filter for one command.'
    )
    return Result(figures, (Table(title, header, tuple(rows), explained),), told)


class _Trial:
    """Motions of one kind."""

    def __init__(
        self, robot: Robot, output: str, random: np.random.Generator, is_on: bool
    ) -> None:
        self._robot, self._random, self._is_on = robot, random, is_on
        self._output = robot.output if output == 'robot' else output
        self._interface = make(robot.simulation_task or TASK).interface
        self._space = place_workspace(self._interface, robot)
        self._limits = MotionLimits(robot.speed, robot.acceleration)
        self._depths: list[float] = []
        self._touched: Counter[str] = Counter()
        self._results: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._times: list[float] = []

    def figures(self) -> dict[str, Any]:
        times = np.array(self._times) * 1e3
        return {
            'penetrations': int(sum(depth > TOUCH for depth in self._depths)),
            'worst_penetration_mm': round(1e3 * max(self._depths, default=0.0), 2),
            **{key: self._results[key] for key in ('reached', 'refused', 'stuck')},
            'ms_median': round(float(np.median(times)), 3),
            'ms_p99': round(float(np.percentile(times, 99)), 3),
            'reasons': dict(self._reasons),
            'touched': dict(self._touched.most_common(10)),
        }

    def go_straight(self, goals: int) -> None:
        """Move to random goals, one after the other."""
        space = self._space
        for number, scene in self._scenes(goals):
            world = _World(scene, self._output, self._is_on)
            controller = GoalController(
                None, self._interface, world.arm, space, self._output, limits=self._limits
            )
            reachability = Reachability(world.arm)
            path = world.take(controller.path, self._times)
            for _ in range(number):
                goal = self._random.uniform(space.low, space.high)
                world.depth = 0.0
                try:
                    orientation = path.held_orientation
                    reachability.check_goal(goal, world.positions(), orientation)
                    world.step(path)
                    controller.take_goal(world.now, goal)
                except GoalError as error:
                    self._count('refused', error.code, world)
                    continue
                end = world.now + LONGEST
                while world.now < end and controller.goal is not None:
                    world.step(path)
                    if controller.reached and path.is_moving and path.filter.is_at_rest:
                        break
                reached = controller.goal is not None and controller.reached
                reason = path.monitor.last_drop if controller.goal is None else 'too slow'
                self._count('reached' if reached else 'stuck', reason, world)
                path.monitor.drop_goal('the next one follows')
                world.settle(path)

    def move_at_random(self, motions: int) -> None:
        """Ask for random joint velocities; the tool may be anywhere."""
        for number, scene in self._scenes(motions):
            world = _World(scene, self._output, self._is_on)
            controller = _RandomJoints(world.arm, self._random)
            box = np.full(3, -EVERYWHERE), np.full(3, EVERYWHERE)
            path = world.take(
                CommandPath(controller, world.arm, box, self._output, limits=self._limits),
                self._times,
            )
            for _ in range(number):
                world.depth = 0.0
                world.step(path)
                try:
                    path.monitor.take_goal(world.now)
                except GoalError as error:
                    self._count('refused', error.code, world)
                    continue
                end = world.now + RANDOM
                while world.now < end and path.monitor.has_goal:
                    world.step(path)
                stuck = not path.monitor.has_goal
                self._count(
                    'stuck' if stuck else 'reached', path.monitor.last_drop if stuck else '', world
                )
                path.monitor.drop_goal('the next one follows')
                world.settle(path)

    def _count(self, result: str, reason: str, world: '_World') -> None:
        self._results[result] += 1
        if result != 'reached':
            self._reasons[f'{result}: {reason}'] += 1
        self._depths.append(world.depth)
        if world.depth > TOUCH:
            self._touched[world.touched] += 1

    def _scenes(self, motions: int) -> Iterator[tuple[int, Robot]]:
        """Yield the number of motions, and the robot, for each random scene."""
        logged = time.monotonic()
        for done in range(0, motions, GOALS_PER_SCENE):
            if time.monotonic() > logged + 10.0:
                log_progress(f'{self._robot.name}: {done} of {motions}')
                logged = time.monotonic()
            scene = self._table()
            while len(scene) < OBSTACLES + 1:
                scene.append(self._obstacle(f'obstacle{len(scene)}'))
            robot = dataclasses.replace(self._robot, scene=self._free(scene))
            yield min(GOALS_PER_SCENE, motions - done), robot

    def _table(self) -> list[Obstacle]:
        """Return a table below the workspace; Fetch and Sawyer have one."""
        if self._robot.simulation_task:
            return []
        space = self._space
        x, y, _ = (space.low + space.high) / 2.0
        z = float(space.low[2]) - BELOW - 0.05
        return [Obstacle('table', 'box', (float(x) + 0.1, float(y), z), size=(0.5, 0.8, 0.1))]

    def _obstacle(self, name: str) -> Obstacle:
        random, space = self._random, self._space
        shape = str(random.choice(('box', 'sphere', 'cylinder')))
        place = random.uniform(space.low - AROUND, space.high + AROUND)
        turn = random.uniform(-math.pi, math.pi, 3)
        size = 2.0 * random.uniform(*SIZES, 3)
        if shape != 'box':
            size[0] /= 2.0
        position, rpy, sizes = (tuple(map(float, one)) for one in (place, turn, size))
        return Obstacle(name, shape, _three(position), _three(rpy), _three(sizes))

    def _free(self, scene: list[Obstacle]) -> tuple[Obstacle, ...]:
        """Move obstacles that are too near to the arm at home; the table moves down."""
        # The robot file may have collision avoidance off, and one half of the benchmark has.
        collision = dataclasses.replace(self._robot.collision, enabled=True)
        while True:
            robot = dataclasses.replace(self._robot, collision=collision, scene=tuple(scene))
            near = _near_home(_arm(robot))
            if not near:
                return tuple(scene)
            scene = [self._moved(one) if one.name in near else one for one in scene]

    def _moved(self, obstacle: Obstacle) -> Obstacle:
        if obstacle.name != 'table':
            return self._obstacle(obstacle.name)
        x, y, z = obstacle.position
        return dataclasses.replace(obstacle, position=(x, y, z - FREE))


class _World(DynamicArm):
    """A simulated arm, and what it touches."""

    def __init__(self, robot: Robot, output: str, is_on: bool) -> None:
        collision = dataclasses.replace(robot.collision, enabled=is_on)
        super().__init__(dataclasses.replace(robot, collision=collision), output)
        self.depth, self.touched = 0.0, ''

    def take(self, path: CommandPath, times: list[float]) -> CommandPath:
        """Prepare a command path; CPU times of its filter [s] are added to ``times``."""
        self._time(path.filter, times)
        return path

    def step(self, path: CommandPath) -> Command | None:
        command = super().step(path)
        self._look()
        return command

    def _look(self) -> None:
        model, data = self.model, self.data
        for contact in range(data.ncon):
            depth = -float(data.contact.dist[contact])
            if depth > self.depth:
                self.depth = depth
                bodies = model.geom_bodyid[data.contact.geom[contact]]
                self.touched = ' and '.join(model.body(body).name for body in bodies)

    def _time(self, one: SafetyFilter, times: list[float]) -> None:
        spent = [0.0]

        def timed(function: Callable[..., None], ends: bool) -> Callable[..., None]:
            def call(*arguments: Any) -> None:
                started = time.thread_time()
                try:
                    function(*arguments)
                finally:
                    spent[0] += time.thread_time() - started
                    if ends:
                        times.append(spent[0])
                        spent[0] = 0.0

            return call

        for name in ('prepare', 'advance', 'brake'):
            setattr(one, name, timed(getattr(one, name), name != 'prepare'))


class _RandomJoints:
    """Asks for random joint velocities up to their limits."""

    def __init__(self, arm: ArmModel, random: np.random.Generator) -> None:
        self._most, self._random, self._asked = arm.velocity_limits, random, 0
        self._motion: Motion | None = None

    def begin(self, now: float) -> None:
        """Do nothing."""

    def ask(self, now: float) -> Motion | None:
        if self._asked % HELD == 0:
            self._motion = JointVelocities(self._random.uniform(-self._most, self._most))
        self._asked += 1
        return self._motion

    def progress(self, tool: Vector) -> tuple[float, float]:
        return 0.0, 0.0


def _arm(robot: Robot) -> ArmModel:
    if robot.simulation_task:
        return ArmModel(robot, JointPlant(robot.simulation_task).description(robot.name))
    return ArmModel(robot.simulated())


def _near_home(arm: ArmModel) -> set[str]:
    """Return the names of obstacles that are near the arm at home."""
    collision = arm.collision
    if collision is None:
        return set()
    query = PairDistances(collision)
    home = np.array([arm.home.get(name, 0.0) for name in arm.state_names])
    query.move(home[arm.order])
    distances = query.evaluate(np.arange(len(collision.pairs)))
    parts = [collision.parts[int(collision.pairs[one, 0])] for one in range(len(distances))]
    return {
        part.name
        for part, distance in zip(parts, distances, strict=True)
        if part.is_obstacle and distance < FREE
    }


def _three(numbers: tuple[float, ...]) -> tuple[float, float, float]:
    x, y, z = numbers
    return x, y, z
