"""Motions of a simulated arm in one random scene, and how each of them ends."""

from collections.abc import Callable, Iterator
import dataclasses
import functools
import time
from typing import Any, NamedTuple

from mher_ros.bench.collision_scenes import random_scene
from mher_ros.bench.full_scale import Adversary, RandomJoints
from mher_ros.bench.mink_arm import MinkArm
from mher_ros.control.command_path import CommandPath, Controller
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import length
from mher_ros.control.reachability import Reachability
from mher_ros.control.safety_monitor import PROGRESS, SafetyOptions, Status
from mher_ros.interface import TaskInterface
from mher_ros.policy.onnx_policy import load, OnnxPolicy
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.robots.workspace import GoalError, place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm, SETTLING
from mher_ros.tasks import make
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

TASK = 'fetch_reach'  # whose workspace is used, unless a robot is simulated by another task
GOAL_KINDS = ('straight line', 'policy')
MOTION_KINDS = ('random joints', 'adversarial', 'crowded')
"""Kinds of motion; the last one has random joint velocities among many small obstacles."""
RESULTS = ('reached', 'refused', 'stuck', 'slow', 'unnamed', 'completed')
DURATION = 3.0  # of a motion that has no goal [s]
UNMOVED, UNMOVED_FOR = 0.001, 5.0
"""Displacement of a tool that counts as no motion [m], and time after which it is noticed [s]."""
EVERYWHERE = 2.0  # half an edge of the tool's box in motions without a goal [m]
STILL, STILL_FOR = 1e-3, 0.1  # speed of the joints of an arm at rest [rad/s]; time for which [s]


@dataclasses.dataclass(frozen=True)
class SceneTrial:
    """What is done in one scene; everything random follows from ``seed`` and ``scene``."""

    robot: str
    output: str
    kind: str
    avoidance: str
    """on, off, or mink: its limits instead of the safety filter."""
    policy: str
    """Policy file; only for the kind ``policy``."""
    seed: int
    scene: int
    motions: int


class Outcome(NamedTuple):
    """How a motion ended."""

    result: str
    """One of ``RESULTS``."""
    reason: str
    """Code of a refusal, or of the status that stopped the arm."""
    depth: float
    """Of the deepest contact [m]."""
    touched: str
    """What touched each other there."""


class SceneResult(NamedTuple):
    outcomes: list[Outcome]
    times: Vector
    """CPU time (n,) of each command [s]."""
    pairs: NDArray[np.int_]
    """Number of pairs (n,) that limited the QP of that command."""


def run_scene(trial: SceneTrial) -> SceneResult:
    """Carry out the motions of one scene."""
    robot = load_robot(trial.robot)
    policy = _policy(trial.policy) if trial.kind == 'policy' else None
    interface = policy.interface if policy else make(robot.simulation_task or TASK).interface
    seeds = np.random.SeedSequence(trial.seed, spawn_key=(trial.scene,)).spawn(2)
    places, motions = map(np.random.default_rng, seeds)
    space = place_workspace(interface, robot)
    scene = random_scene(robot, space, places, trial.kind == 'crowded')
    world = World(scene, trial.output, trial.avoidance == 'on')
    if trial.kind in GOAL_KINDS:
        goals = motions.uniform(space.low, space.high, (trial.motions, 3))
        if trial.avoidance == 'mink':
            outcomes = list(_go_with_mink(world, robot, interface, goals))
        else:
            outcomes = list(_go(world, robot, interface, policy, goals, trial.output))
    else:
        outcomes = list(_move_at_full_scale(world, robot, trial, motions))
    pairs = np.array(world.pairs or np.zeros(len(world.times)), np.int_)
    return SceneResult(outcomes, np.array(world.times), pairs)


@functools.cache
def _policy(path: str) -> OnnxPolicy:
    return load(path)


def _go(
    world: 'World',
    robot: Robot,
    interface: TaskInterface,
    policy: OnnxPolicy | None,
    goals: Vector,
    output: str,
) -> Iterator[Outcome]:
    """Move to goals (n, 3), one after the other."""
    controller = GoalController(
        policy,
        interface,
        world.arm,
        place_workspace(interface, robot),
        output,
        limits=MotionLimits(robot.speed, robot.acceleration),
    )
    reachability, path = Reachability(world.arm), controller.path
    world.time_filter(path)
    for goal in goals:
        try:
            reachability.check_goal(goal, world.positions(), path.held_orientation)
            world.step(path)
            controller.take_goal(world.now, goal)
        except GoalError as error:
            yield world.outcome('refused', error.code)
            continue
        result, reason = _follow(world, controller)
        world.settle(path)
        yield world.outcome(result, reason)


def _follow(world: 'World', controller: GoalController) -> tuple[str, str]:
    """Move until the goal is reached or dropped, or until the arm stands still without either."""
    path, still = controller.path, _Stillness(world)
    while controller.goal is not None:
        world.step(path)
        if controller.reached and path.is_moving and path.filter.is_at_rest:
            break
        if still.lasts():
            break
    if controller.goal is None:
        code = path.monitor.last_drop
        return ('slow' if code == Status.STALE_GOAL.code else 'stuck'), code
    result = 'reached' if controller.reached else 'unnamed'
    path.monitor.drop_goal('the next one follows')
    return result, ''


class _Stillness:
    """Whether the tool has stayed in its place for ``UNMOVED_FOR``."""

    def __init__(self, world: 'World') -> None:
        self._world, self._since = world, world.now
        self._place = world.tool_position()

    def lasts(self) -> bool:
        world = self._world
        tool = world.tool_position()
        if length(tool - self._place) > UNMOVED:
            self._place, self._since = tool, world.now
        return world.now - self._since > UNMOVED_FOR


def _move_at_full_scale(
    world: 'World', robot: Robot, trial: SceneTrial, random: np.random.Generator
) -> Iterator[Outcome]:
    """Ask for joint velocities up to their limits; the tool may be anywhere."""
    adversary = Adversary(world, random) if trial.kind == 'adversarial' else None
    controller: Controller = adversary or RandomJoints(world.arm, random)
    box = np.full(3, -EVERYWHERE), np.full(3, EVERYWHERE)
    limits = MotionLimits(robot.speed, robot.acceleration)
    path = CommandPath(controller, world.arm, box, trial.output, limits=limits)
    world.time_filter(path)
    for _ in range(trial.motions):
        world.step(path)
        try:
            path.monitor.take_goal(world.now)
        except GoalError as error:
            yield world.outcome('refused', error.code)
            continue
        end = world.now + DURATION
        while world.now < end and path.monitor.has_goal:
            world.step(path)
        completed = path.monitor.has_goal
        path.monitor.drop_goal('the next one follows') if completed else None
        world.settle(path)
        yield world.outcome(
            *(('completed', '') if completed else ('stuck', path.monitor.last_drop))
        )


def _go_with_mink(
    world: 'World', robot: Robot, interface: TaskInterface, goals: Vector
) -> Iterator[Outcome]:
    """Move to goals (n, 3) by mink; the arm is stuck if it makes no progress for a while."""
    threshold = interface.success_threshold * place_workspace(interface, robot).scale
    mink_arm = MinkArm(world, robot.collision.clearance, robot.speed)
    patience = SafetyOptions().progress_timeout
    for goal in goals:
        mink_arm.take_goal(goal)
        nearest, since, failed = np.inf, world.now, False
        while world.now - since < patience:
            started = time.thread_time()
            positions = mink_arm.next_positions(world.period)
            world.times.append(time.thread_time() - started)
            failed |= positions is None
            world.carry_out(positions)
            left = length(world.tool_position() - goal)
            if left < nearest - PROGRESS:
                nearest, since = left, world.now
            if left <= threshold and mink_arm.has_arrived and world.speed < STILL:
                break
        reached = left <= threshold
        reason = 'no_solution' if failed else Status.NO_PROGRESS.code
        yield world.outcome('reached' if reached else 'stuck', '' if reached else reason)


class World(DynamicArm):
    """A simulated arm, what it touches, and the time that its commands take."""

    def __init__(self, robot: Robot, output: str, is_on: bool) -> None:
        collision = dataclasses.replace(robot.collision, enabled=is_on)
        super().__init__(dataclasses.replace(robot, collision=collision), output)
        self.times: list[float] = []
        self.pairs: list[int] = []

    @property
    def speed(self) -> float:
        """Largest speed of a joint [rad/s or m/s]."""
        return float(np.abs(self.data.qvel).max())

    def carry_out(self, positions: Vector | None) -> None:
        """Carry out a command that no filter has seen; None: keep the last one."""
        self._plant.advance(positions)
        self.now += self.period

    def settle(self, path: CommandPath) -> None:
        """Wait until the arm is at rest."""
        end, moved_at = self.now + SETTLING, self.now
        while self.now < end and (path.is_moving or self.now - moved_at < STILL_FOR):
            self.step(path)
            if self.speed > STILL:
                moved_at = self.now

    def outcome(self, result: str, reason: str) -> Outcome:
        """Return the outcome of the motion that ends now."""
        contacts = self.contacts()
        self.forget_contacts()
        return Outcome(result, reason, contacts.deepest, contacts.between)

    def time_filter(self, path: CommandPath) -> None:
        """Record the CPU time of the filter for each command, and its number of active pairs."""
        one, spent, pairs = path.filter, [0.0], [0]
        assert isinstance(one, JointFilter)

        def timed(function: Callable[..., None], ends: bool) -> Callable[..., None]:
            def call(*arguments: Any) -> None:
                started = time.thread_time()
                try:
                    function(*arguments)
                finally:
                    spent[0] += time.thread_time() - started
                    if ends:
                        self.times.append(spent[0])
                        self.pairs.append(pairs[0])
                        spent[0], pairs[0] = 0.0, 0
                    else:
                        pairs[0] = one.active_pairs

            return call

        for name in ('prepare', 'advance', 'brake'):
            setattr(one, name, timed(getattr(one, name), name != 'prepare'))
