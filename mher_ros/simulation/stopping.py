"""How far a simulated arm moves on after a stop, and how exactly it follows its set-points."""

from collections.abc import Iterator
import dataclasses
import itertools
import math
from typing import Any, NamedTuple

from mher_ros.control.filter.joint_filter import UNSURE
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import length
from mher_ros.control.reachability import corners_of
from mher_ros.interface import TaskInterface, Vector
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import Robot
from mher_ros.robots.workspace import GoalError, place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
import mujoco
import numpy as np

SHARES = (0.5, 1.0)  # of the speed limit
DELAYS = (0.0, 0.05, 0.15)  # after which the drives get a command [s]
WEAK = 0.5  # share of the forces of weak drives
FAST = 0.9  # share of the largest possible speed at which the arm is stopped
LONGEST = 10.0  # time for a motion, and for coming to rest [s]
STILL, STILL_FOR = 1e-3, 0.2  # speed of every point of an arm at rest [m/s]; time for which [s]
FACTOR = 2.0  # clearance over deviation: two parts may deviate towards each other
HEADER = (
    ' speed   payload  force   delay  stops |   time     tool      arm | follows after  deviation'
)


class Load(NamedTuple):
    """What the drives of a simulated arm have to cope with."""

    payload: float = 0.0
    """Mass at the tool that the drives do not know [kg]."""
    force: float = 1.0
    """Share of their force limits."""
    delay: float = 0.0
    """Time after which they get a command [s]."""


NO_LOAD = Load()


class Stop(NamedTuple):
    """One stop of a moving arm."""

    speed: float
    """Of the tool when the stop was requested [m/s]."""
    time: float
    """From the request until all of the arm is at rest [s]."""
    tool: float
    """Displacement of the tool in that time [m]."""
    arm: float
    """Largest displacement of a point of the arm in that time [m]."""
    follows_after: float
    """What the tool moves on more than its set-point, over the speed [s]."""
    deviation: float
    """
    Largest distance of the arm from the path of its set-points, in this motion and stop [m].

    That of a posture is the largest one of a point of the arm, from its place at the nearest
    posture on that path.
    """


@dataclasses.dataclass(frozen=True)
class StopRow:
    """The stops of an arm from one speed."""

    speed: float
    """Speed limit of the tool [m/s]."""
    load: Load
    stops: int
    worst: Stop | None
    """The largest value of each; None: the arm did not reach this speed."""

    def line(self) -> str:
        payload, force, delay = self.load
        text = f'{self.speed:6.3f} {payload:6g} kg {100.0 * force:4.0f} %'
        text += f' {1000.0 * delay:4.0f} ms {self.stops:6d} | '
        if self.worst is None:
            return text + 'the arm did not reach this speed, or touched something'
        _, time, tool, arm, follows_after, deviation = self.worst
        if time >= LONGEST:
            return f'{text}the arm was not at rest after {LONGEST:g} s'
        return (
            f'{text}{time:4.2f} s {1000.0 * tool:5.0f} mm {1000.0 * arm:5.0f} mm | '
            f'{1000.0 * follows_after:10.0f} ms {1000.0 * deviation:7.1f} mm'
        )


class StoppingReport:
    """What follows from the stops of an arm for its robot file."""

    def __init__(self, robot: Robot, rows: list[StopRow]) -> None:
        self._robot, self.rows = robot, rows
        full = [row for row in rows if row.load.force == 1.0]
        unknown = {row.load.payload for row in full} - {
            row.load.payload for row in full if row.worst
        }
        found = [(row.load, row.worst) for row in rows if row.worst and row.load.force == 1.0]
        restless = {load.payload for load, worst in found if worst.time >= LONGEST}
        found = [(load, worst) for load, worst in found if worst.time < LONGEST]
        self.deviation = max((worst.deviation for _, worst in found), default=0.0)
        """Largest one with full force [m]."""
        self.follows_after = {
            delay: max(worst.follows_after for load, worst in found if load.delay == delay)
            for delay in sorted({load.delay for load, _ in found})
        }
        """Largest one with full force [s], by the delay of commands [s]."""
        self.problems = tuple(self._problems(restless, unknown))  # one sentence each

    @property
    def clearance(self) -> float:
        """Clearance for such deviations; not less than in the robot file [m]."""
        return max(self._robot.collision.clearance, _rounded_up(FACTOR * self.deviation, 1e-3))

    @property
    def reaction_time(self) -> float:
        """Reaction time for the largest delay; not less than in the robot file [s]."""
        slowest = max(self.follows_after.values(), default=0.0)
        return max(self._robot.reaction_time, _rounded_up(slowest, 0.01))

    def lines(self) -> list[str]:
        lines = [f'problem: {problem}' for problem in self.problems]
        if not self.follows_after:
            return [*lines, 'no stop was measured, so no values are proposed']
        delay = max(self.follows_after)
        return [
            *lines,
            f'proposal, if commands reach the drives up to {1000.0 * delay:.0f} ms late:',
            f'reaction_time: {self.reaction_time:g}',
            'collision:',
            f'  clearance: {self.clearance:g}',
        ]

    def as_dict(self) -> dict[str, Any]:
        rows = []
        for row in self.rows:
            worst = None if row.worst is None else row.worst._asdict()
            rows.append(
                {'speed': row.speed, **row.load._asdict(), 'stops': row.stops, 'worst': worst}
            )
        return {
            'rows': rows,
            'problems': list(self.problems),
            'proposal': {'reaction_time': self.reaction_time, 'clearance': self.clearance},
        }

    def _problems(self, restless: set[float], unknown: set[float]) -> Iterator[str]:
        robot = self._robot
        if unknown:
            yield (
                f'with a payload of {max(unknown):g} kg the simulated arm never reached a speed '
                'to stop from without touching something'
            )
        if restless:
            yield (
                f'with a payload of {max(restless):g} kg the simulated arm does not come to rest '
                f'within {LONGEST:g} s'
            )
        if not robot.collision.enabled:
            return
        if robot.collision.clearance < self.deviation:
            yield (
                f'collision.clearance is expected from {self.deviation:.4f} on: so far the '
                'simulated arm is from the path of its set-points; got '
                f'{robot.collision.clearance:g}'
            )
        least = min(self.follows_after.values(), default=0.0)
        if robot.reaction_time < least:
            yield (
                f'reaction_time is expected from {least:.3f} on: so late the simulated arm '
                f'follows its set-points even without a delay; got {robot.reaction_time:g}'
            )


def loads_with(payload: float) -> tuple[Load, ...]:
    """Return what to simulate for a payload [kg]: also no payload, and weak drives."""
    drives = dict.fromkeys([(0.0, 1.0), (payload, 1.0), (payload, WEAK)])
    return tuple(
        Load(mass, force, delay) for (mass, force), delay in itertools.product(drives, DELAYS)
    )


def stop_rows(
    robot: Robot, interface: TaskInterface, loads: tuple[Load, ...]
) -> Iterator[StopRow]:
    """Yield the stops of an arm from half of its speed limit, and from all of it."""
    for load in loads:
        test = StoppingTest(robot, interface, load)
        for share in SHARES:
            stops = list(test.stops(share * robot.speed))
            worst = Stop(*np.max(stops, axis=0).tolist()) if stops else None
            yield StopRow(share * robot.speed, load, len(stops), worst)


class StoppingTest:
    """Stops an arm that moves straight between opposite corners of its workspace."""

    def __init__(self, robot: Robot, interface: TaskInterface, load: Load = NO_LOAD) -> None:
        self._robot, self._interface = robot, interface
        self._workspace = place_workspace(interface, robot)
        self._output = robot.output if robot.output.startswith('joint') else 'joint_position'
        self.world = DynamicArm(robot, self._output, load.payload, load.delay)
        self.world.model.jnt_actfrcrange *= load.force
        self._fast = FAST * (UNSURE if OUTPUTS[self._output].is_velocity else 1.0)
        self._points = ArmPoints(self.world.model)
        self._measured: list[Vector] = []
        self._setpoints: list[Vector] = []
        self._touches = False  # whether the arm has touched anything in this motion

    def stops(self, speed: float) -> Iterator[Stop]:
        """Yield the stops from this speed [m/s] of motions in which the arm touches nothing."""
        world = self.world
        controller = GoalController(
            None,
            self._interface,
            world.arm,
            self._workspace,
            self._output,
            limits=MotionLimits(speed, self._robot.acceleration),
        )
        path = controller.path
        corners = corners_of(self._workspace)
        for start, end in zip(corners, reversed(corners), strict=True):
            world.settle(path)
            try:
                controller.take_goal(world.now, start, 'project')
                self._run(controller, math.inf)
                controller.take_goal(world.now, end, 'project')
            except GoalError:
                continue
            self._measured, self._setpoints, self._touches = [], [], False
            fast = self._fast * speed
            is_fast = self._run(controller, fast) >= fast
            asked = length(path.filter.tool_velocity) if path.is_moving else 0.0
            if is_fast and asked >= fast:
                stop = self._stop(controller)
                path.monitor.clear()
                if not self._touches:
                    yield stop

    def _run(self, controller: GoalController, speed: float) -> float:
        """Move to the goal until the tool has this speed; return its largest speed [m/s]."""
        world, path = self.world, controller.path
        end, fastest, last = world.now + LONGEST, 0.0, world.tool_position()
        while world.now < end and fastest < speed and controller.goal is not None:
            self._step(controller)
            tool = world.tool_position()
            fastest, last = max(fastest, float(np.linalg.norm(tool - last)) / world.period), tool
            if controller.reached and path.is_moving and path.filter.is_at_rest:
                break
        return fastest

    def _step(self, controller: GoalController) -> None:
        """Move for one period, and record measured and commanded places of the arm's points."""
        world, path = self.world, controller.path
        if path.is_moving and not self._setpoints:
            self._record_setpoint(controller)  # where the motion begins
        command = world.step(path)
        if command is not None:
            self._record_setpoint(controller)
        if self._setpoints:
            self._measured.append(self._points.at(world.data.qpos))
            self._touches |= bool(self._points.is_moving[world.data.contact.geom].any())

    def _record_setpoint(self, controller: GoalController) -> None:
        joints = controller.path.filter.joint_positions
        assert joints is not None
        self._setpoints.append(self._points.at(joints))

    def _stop(self, controller: GoalController) -> Stop:
        world, path = self.world, controller.path
        began, tool, start = world.now, world.tool_position(), self._measured[-1]
        far, last, moved_at = np.zeros(2), start, began
        speed, commanded = length(path.filter.tool_velocity), np.zeros(3)
        path.monitor.stop('stopping test')
        while world.now < moved_at + STILL_FOR and world.now < began + LONGEST:
            was_moving = path.is_moving
            self._step(controller)
            if was_moving:
                commanded += path.filter.tool_velocity * path.period
            here = self._measured[-1]
            if np.linalg.norm(here - last, axis=1).max() > STILL * world.period:
                moved_at = world.now
            away = length(world.tool_position() - tool), np.linalg.norm(here - start, axis=1).max()
            far, last = np.maximum(far, away), here
        behind = (far[0] - length(commanded)) / speed
        deviation = path_deviation(np.array(self._measured), np.array(self._setpoints))
        time = moved_at - began
        return Stop(speed, time, float(far[0]), float(far[1]), float(behind), deviation)


class ArmPoints:
    """The corners of boxes around the shapes of an arm, and the origins of its links."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        moves = model.body_weldid != 0
        self._bodies = np.flatnonzero(moves)
        self.is_moving = moves[model.geom_bodyid]
        """Which geoms are parts of the arm (geoms,)."""
        self._geoms = np.flatnonzero(self.is_moving & (model.geom_contype > 0))
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
        boxes = model.geom_aabb[self._geoms]
        self._corners = boxes[:, None, :3] + signs * boxes[:, None, 3:]

    def at(self, joints: Vector) -> Vector:
        """Return the points (p, 3) [m] at joint positions (k,)."""
        data, geoms = self._data, self._geoms
        data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, data)
        turns = data.geom_xmat[geoms].reshape(-1, 3, 3)
        corners = data.geom_xpos[geoms, None] + self._corners @ turns.transpose(0, 2, 1)
        return np.concatenate((data.xpos[self._bodies], corners.reshape(-1, 3)))


def path_deviation(measured: Vector, setpoints: Vector) -> float:
    """
    Return the largest distance of measured points (t, p, 3) from a path of them (s, p, 3) [m].

    At each time it is the largest distance of a point from its place at the nearest posture on the
    path, which is straight between set-points.
    """
    starts = setpoints[:-1].reshape(len(setpoints) - 1, -1)
    steps = setpoints[1:].reshape(starts.shape) - starts
    squares = np.maximum((steps * steps).sum(axis=1), 1e-30)
    farthest = 0.0
    for here in measured:
        away = here.reshape(-1) - starts
        shares = np.clip((away * steps).sum(axis=1) / squares, 0.0, 1.0)
        left = away - shares[:, None] * steps
        nearest = left[np.argmin((left * left).sum(axis=1))]
        farthest = max(farthest, float(np.linalg.norm(nearest.reshape(-1, 3), axis=1).max()))
    return farthest


def _rounded_up(value: float, step: float) -> float:
    return round(math.ceil(value / step - 1e-9) * step, 6)
