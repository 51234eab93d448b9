"""Whether a simulated arm hits an obstacle that moves through its workspace, or is hit by it."""

from collections import Counter, deque
import dataclasses
import math
import time
from typing import Any, NamedTuple

from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress
from mher_ros.control.command_path import CommandPath
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import Command
from mher_ros.control.obstacle_tracker import ObstacleTracker
from mher_ros.control.reachability import Reachability
from mher_ros.control.safety_monitor import Status
from mher_ros.experiments.tables import Table
from mher_ros.interface import Vector
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.robots.solids import shape_solid
from mher_ros.robots.workspace import GoalError, place_workspace, Workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
from mher_ros.simulation.urdf_writer import link_name
from mher_ros.tasks import make
import mujoco
import numpy as np

TASK = 'fetch_reach'  # whose workspace is used, unless a robot is simulated by another task
OBSTACLE = 'moving obstacle'
SIZES = (0.03, 0.08)  # half an edge, or radius, of an obstacle [m]
SPEEDS = (0.05, 0.2)  # of an obstacle [m/s]
AROUND = 0.15  # how far from the workspace obstacles move [m]
FREE = 0.1  # least distance of an obstacle from the arm when it appears [m]
UPDATE, LATE = 0.05, 0.05
"""Time between two updates of its place, and time after which they are known [s]."""
GOALS_PER_OBSTACLE = 5
LONGEST = 15.0  # time for a goal [s]
APPROACH = 0.01  # speed of a link towards the obstacle from which on the arm hits it [m/s]
APART = 0.5  # time without a contact after which the next one is another hit [s]


def measure(robot: str, goals: int, output: str, seed: int) -> Result:
    """
    Move an arm straight to goals, while an obstacle moves through its workspace.

    Done again with the collision avoidance off, with the same goals and obstacles. MuJoCo's own
    contacts and velocities, in a simulation with masses and drives, tell who hit whom.
    """
    told: dict[str, dict[str, Any]] = {}
    for name, is_on in (('on', True), ('off', False)):
        trial = _MovingTrial(load_robot(robot), output, np.random.default_rng(seed), is_on)
        trial.run(goals)
        told[name] = trial.figures()
    keys = ('arm_hit', 'obstacle_hit', 'goals', 'reached', 'refused', 'stuck', 'fastest_mm_s')
    rows = [(name, *(str(figures[key]) for key in keys)) for name, figures in told.items()]
    header = (
        *('avoidance', 'arm hit', 'obstacle hit', 'goals', 'reached', 'refused', 'stuck'),
        'fastest hit of the arm [mm/s]',
    )
    title = f'{robot}: {goals} goals, and an obstacle with up to {SPEEDS[1]:g} m/s'
    note = (
        f'The arm hits if its link moves towards the obstacle faster than {1e3 * APPROACH:g} mm/s '
        'when they first touch. Otherwise the obstacle hits an arm that rests or gives way.'
    )
    figures = {key: told['on'][key] for key in keys}
    return Result(figures, (Table(title, header, tuple(rows), note),), told)


class MovingObstacle:
    """A box or a ball that moves straight from one random point to the next."""

    def __init__(self, random: np.random.Generator, space: Workspace) -> None:
        self._random, self._space = random, space
        self.shape = str(random.choice(('box', 'sphere')))
        half = random.uniform(*SIZES, 3)
        size = (2.0 * half if self.shape == 'box' else half).tolist()
        self.size = (size[0], size[1], size[2])
        turn = random.normal(size=4)
        self.orientation: Vector = turn / np.linalg.norm(turn)
        self.solid = shape_solid(self.shape, self.size)
        self.place = self._point()
        self.velocity = np.zeros(3)
        self._choose()

    def move(self, period: float) -> None:
        """Move for a time [s]."""
        self._left -= period
        if self._left <= 0.0:
            self._choose()
        self.place = self.place + period * self.velocity

    def _choose(self) -> None:
        """Choose the next point, and the speed to it."""
        away, speed = self._point() - self.place, float(self._random.uniform(*SPEEDS))
        distance = float(np.linalg.norm(away))
        self.velocity, self._left = speed * away / distance, distance / speed

    def _point(self) -> Vector:
        space = self._space
        return self._random.uniform(space.low - AROUND, space.high + AROUND)


class _MovingTrial:
    """Goals of an arm, each while an obstacle moves."""

    def __init__(
        self, robot: Robot, output: str, random: np.random.Generator, is_on: bool
    ) -> None:
        collision = dataclasses.replace(
            robot.collision, enabled=is_on, obstacle_speed=SPEEDS[1], obstacle_timeout=0.5
        )
        self._robot = dataclasses.replace(robot, collision=collision)
        self._output = robot.output if output == 'robot' else output
        self._interface = make(robot.simulation_task or TASK).interface
        self._space = place_workspace(self._interface, robot)
        self._random = random
        self._results: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._hits: list[_Hit] = []

    def figures(self) -> dict[str, Any]:
        by_arm = [hit.speed for hit in self._hits if hit.speed > APPROACH]
        return {
            'arm_hit': len(by_arm),
            'obstacle_hit': len(self._hits) - len(by_arm),
            'goals': self._results.total(),
            **{key: self._results[key] for key in ('reached', 'refused', 'stuck')},
            'fastest_mm_s': round(1e3 * max(by_arm, default=0.0), 1),
            'reasons': dict(self._reasons),
            'hits': dict(Counter(hit.link for hit in self._hits).most_common(10)),
        }

    def run(self, goals: int) -> None:
        """Move to random goals."""
        logged = time.monotonic()
        for done in range(0, goals, GOALS_PER_OBSTACLE):
            if time.monotonic() > logged + 10.0:
                log_progress(f'{self._robot.name}: {done} of {goals}')
                logged = time.monotonic()
            # One generator each: with avoidance off, the same obstacles and goals come.
            random = np.random.default_rng(self._random.integers(2**63))
            count = min(GOALS_PER_OBSTACLE, goals - done)
            wanted = random.uniform(self._space.low, self._space.high, (count, 3))
            world = _World(self._robot, self._output, random, self._space)
            limits = MotionLimits(self._robot.speed, self._robot.acceleration)
            controller = GoalController(
                None, self._interface, world.arm, self._space, self._output, limits=limits
            )
            world.let_avoid(controller.path)
            reachability = Reachability(world.arm, world.slots)
            for goal in wanted:
                result, reason = self._go(world, controller, reachability, goal)
                self._results[result] += 1
                if reason:
                    self._reasons[f'{result}: {reason}'] += 1
            self._hits += world.hits

    def _go(
        self, world: '_World', controller: GoalController, reachability: Reachability, goal: Vector
    ) -> tuple[str, str]:
        """Move to one goal; return the result, and its reason if it is not reached."""
        path, end = controller.path, world.now + LONGEST
        world.step(path)
        try:
            reachability.check_goal(goal, world.positions(), path.held_orientation)
            controller.take_goal(world.now, goal)
        except GoalError as error:
            return 'refused', error.code
        while world.now < end and controller.goal is not None:
            world.step(path)
            if controller.reached and path.is_moving and path.filter.is_at_rest:
                return 'reached', ''
        return 'stuck', 'too slow' if controller.goal is not None else path.monitor.last_drop


class _Hit(NamedTuple):
    speed: float
    """Of the link towards the obstacle, just before they touch [m/s]."""
    link: str


class _World(DynamicArm):
    """A simulated arm, an obstacle that moves, and who hits whom."""

    def __init__(
        self, robot: Robot, output: str, random: np.random.Generator, space: Workspace
    ) -> None:
        super().__init__(robot, output)
        self.slots = self.arm.obstacle_slots()
        """None: the arm does not avoid the obstacle."""
        self._tracker: ObstacleTracker | None = None
        if self.slots is not None:
            self._tracker = ObstacleTracker(self.slots, robot.collision)
        self._measured: deque[tuple[float, Vector]] = deque()
        self._next = 0.0
        self._obstacle = self._free_obstacle(random, space)
        self.hits: list[_Hit] = []
        self._touched_at = -math.inf
        self._velocities = self.data.qvel.copy()
        self._driven.after_step.append(self._look)

    def let_avoid(self, path: CommandPath) -> None:
        """Let the filter of a command path avoid the obstacle."""
        if self.slots is not None:
            assert isinstance(path.filter, JointFilter)
            path.filter.avoid(self.slots)

    def step(self, path: CommandPath) -> Command | None:
        """Move the obstacle, tell the command path where it was, and step the arm."""
        self._tell(path)
        self._obstacle.move(self.period)
        self._put(self._obstacle)
        return super().step(path)

    def _tell(self, path: CommandPath) -> None:
        obstacle, measured, now = self._obstacle, self._measured, self.now
        if now >= self._next:
            measured.append((now, obstacle.place))
            self._next += UPDATE
        if self._tracker is None:
            return
        while measured and now >= measured[0][0] + LATE:
            known_at, place = measured.popleft()
            solid = obstacle.solid.at((place, obstacle.orientation))
            self._tracker.put(OBSTACLE, solid, known_at, now, moves=True)
        lost = self._tracker.problem(now)
        if lost:
            path.monitor.interrupt(Status.OBSTACLE_LOST, lost)
        else:
            path.monitor.resume()

    def _look(self) -> None:
        """Note who hits whom in the last step, when they were apart before."""
        model, data, contacts = self.model, self.data, self.data.contact
        hits = []
        for index in np.flatnonzero(contacts.dist < 0.0).tolist():
            one, other = model.geom_bodyid[contacts.geom[index]].tolist()
            if model.body_mocapid[one] < 0 and model.body_mocapid[other] < 0:
                continue  # without the obstacle
            # The normal points to the second body.
            link, sign = (one, 1.0) if model.body_mocapid[other] >= 0 else (other, -1.0)
            rows = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, rows, None, contacts.pos[index], link)
            speed = sign * contacts.frame[index][:3] @ rows @ self._velocities
            hits.append(_Hit(float(speed), link_name(model, link)))
        if hits:
            if data.time - self._touched_at > APART:
                self.hits.append(max(hits))
            self._touched_at = data.time
        self._velocities = data.qvel.copy()

    def _free_obstacle(self, random: np.random.Generator, space: Workspace) -> MovingObstacle:
        """Return an obstacle that is not near the arm."""
        while True:
            obstacle = MovingObstacle(random, space)
            self._put(obstacle, margin=FREE)
            mujoco.mj_forward(self.model, self.data)
            if self.data.ncon == 0:
                return obstacle

    def _put(self, obstacle: MovingObstacle, margin: float = 0.0) -> None:
        more = 2.0 * margin if obstacle.shape == 'box' else margin
        size = np.array(obstacle.size) + more
        self.put_obstacle(OBSTACLE, obstacle.shape, size, obstacle.place, obstacle.orientation)
