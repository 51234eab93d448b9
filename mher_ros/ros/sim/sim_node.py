"""The node sim_node: a simulated arm with the topics of a real one."""

import dataclasses
import threading
import time
from typing import Any

from mher_ros.control.fit import robot_digest
from mher_ros.interface import Vector
from mher_ros.options import option, OptionError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import load_robot, Robot, Topics
from mher_ros.ros.bringup.node_spec import ObstacleArguments, PlantArguments, ROBOT_HELP
from mher_ros.ros.common.diagnostics import report_diagnostics
from mher_ros.ros.common.parameters import declare
from mher_ros.ros.common.polled_topic import RELIABLE_QUEUE
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.raw_messages import JointStateWriter
from mher_ros.ros.common.shared_core import SharedCore
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.common.status import Level, SimulationStatus, StatusPublisher
from mher_ros.ros.sim.command_input import ActionInput, RobotInput
from mher_ros.ros.sim.display_topics import DisplayTopics, PUBLISHING
from mher_ros.ros.sim.plant_obstacles import PlantObstacles
from mher_ros.ros.sim.tracked_pose import TrackedPose
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.plant import Plant, TaskPlant
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.tracker import link_errors, Tracker, tracker_text, TrackerOptions
from mher_ros.tasks import PAPER_TASKS
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

PATIENCE = 0.05  # longest time between two checks whether to stop [s]
GIVE_UP = 1.0  # delay that is no longer caught up [s]


@dataclasses.dataclass(frozen=True)
class SimOptions(ObstacleArguments, PlantArguments):
    task: str = option('fetch_reach', 'task whose arm to simulate', choices=tuple(PAPER_TASKS))
    robot: str = option(
        '',
        f'arm to simulate instead of that of a task, with its real topics: {ROBOT_HELP}',
    )
    output: str = option(
        'robot',
        'with robot: type of the commands, if joint positions and velocities share a topic; '
        'robot: as the robot file says',
        choices=('robot', *OUTPUTS),
    )
    delay: float = option(0.0, 'with robot: delay of commands [s]', low=0.0, high=5.0)
    lag: float = option(0.0, "with robot: time constant of the joints' lag [s]", low=0.0, high=5.0)
    stepping: str = option(
        'realtime',
        'realtime: steps at the rate of the clock; lockstep: one step for each command that '
        'answers the latest joint state',
        choices=('realtime', 'lockstep'),
    )
    rate_factor: float = option(1.0, 'realtime: simulated seconds per second', low=0.01, high=100)
    command_timeout: float = option(
        0.2, 'realtime: time without a command after which the arm stops [s]', low=0.01, high=60.0
    )
    view_rate: float = option(
        20.0, 'rate of markers, tool pose and clock [Hz]', low=0.1, high=1000.0
    )
    publish_robot_description: str = option(
        'auto',
        'whether to publish robot_description; auto: while no other node does',
        choices=PUBLISHING,
    )
    publish_tf: str = option(
        'auto',
        'whether to publish the links on tf; auto: while no other node publishes '
        'robot_description, as robot_state_publisher does',
        choices=PUBLISHING,
    )
    tracker: TrackerOptions = TrackerOptions()
    seed: int = option(
        -1,
        'seed of the initial state and of the plant at the next reset, if they are random; -1: '
        'none. With randomise also at the start, where -1 counts as 0',
        low=-1,
    )
    start: str = option(
        '',
        'with robot: positions of the commanded joints after the next reset, such as 0.1,-1.5 '
        '[rad or m]; empty: home',
    )


class SimNode(Node):
    """Publishes ``joint_states`` and subscribes to commands."""

    # The thread that calls ``run`` steps the arm; another one answers services. Stamps are unique:
    # the clock advances by one period with every step, and by two with a reset. It starts at the
    # system time in nanoseconds, so that two starts of this node share no stamp.
    def __init__(self) -> None:
        super().__init__('sim_node')
        self.options = declare(self, SimOptions(), changing=('seed', 'start'))
        topics = self._make_arm()
        self._lock = threading.Lock()
        self._paused = False
        self._period = round(self._plant.period * 1e9)
        self._stamp = self._life = time.time_ns()
        self._steps = self._resets = self._reset_stamp = 0
        self._seed = -1
        self._command: Vector | None = None
        self._latest = b''
        # In the last second: largest delay of a step, and time that was not caught up [s].
        self._late = self._lost = 0.0
        self._writer = JointStateWriter(self._plant.joint_names, self._plant.frame)
        self._states = self.create_publisher(JointState, topics.joint_states, RELIABLE_QUEUE)
        self._tracked = None if self._tracker is None else TrackedPose(self, *self._tracker)
        self._display = DisplayTopics(
            self,
            self._plant,
            self._name,
            topics.robot_description,
            self.options.publish_robot_description,
            self.options.publish_tf,
        )
        # Not in lockstep: there, the time at which an obstacle comes would be arbitrary.
        self._obstacles: PlantObstacles | None = None
        if self.options.robot and self.options.stepping == 'realtime':
            scene = self.options.planning_scene
            self._obstacles = PlantObstacles(self, self._plant, self._lock, scene)
        elif self.options.planning_scene:
            raise OptionError("planning_scene takes '' without a robot, and in lockstep")
        # Before the service: a client that finds the service also finds the status.
        self._status = StatusPublisher(self, self._make_status)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(SetBool, '~/pause', self._on_pause)
        report_diagnostics(self, self._diagnose)
        self._publish_state()
        self._status.publish()

    def _make_arm(self) -> Topics:
        """Make the arm of ``robot``, or that of ``task``, and return its topics."""
        options = self.options
        self._plant: Plant
        self._input: ActionInput | RobotInput
        self._tracker: tuple[Robot, Tracker] | None = None
        self._errors = self._digest = ''
        if options.robot:
            robot = load_robot(options.robot)
            self._name, self._digest = robot.name, robot_digest(robot)
            self._errors = tracker_text(robot, options.tracker)
            links = link_errors(robot, options.tracker)
            arm = self._plant = simulated_robot(
                robot, options.delay, options.lag, links, options.randomise
            )
            if options.randomise:
                arm.reset(max(0, options.seed))
            if robot.tool_pose.is_tracked:
                nominal = ArmModel(robot, arm.description(robot.name))
                self._tracker = robot, Tracker(robot, nominal, options.tracker, arm.period)
            elif options.tracker != TrackerOptions():
                raise OptionError(
                    f'tracker.* need tool_pose.source: topic in the file of robot {robot.name}'
                )
            output = robot.output if options.output == 'robot' else options.output
            self._input = RobotInput(self, arm, robot.topics, output)
            return robot.topics
        for name in ('delay', 'lag', 'randomise'):
            if getattr(options, name):
                raise OptionError(
                    f'{name} must be 0 without a robot, got {getattr(options, name)}: the arms '
                    'of tasks have none'
                )
        if options.tracker != TrackerOptions():
            raise OptionError('tracker.* need a robot')
        self._name, self._plant = options.task, TaskPlant(options.task)
        self._input = ActionInput(self, self._plant)
        return Topics()

    def run(self, stop: StopRequest) -> None:
        options = self.options
        self.get_logger().info(
            f'{self._name}: {len(self._plant.joint_names)} joints, commanded by '
            f'{", ".join(self._plant.command_names)}, {options.stepping}, '
            f'{1.0 / self._plant.period:g} Hz'
        )
        if self._plant.no_forces:
            self.get_logger().warning(
                f'{self._name} passes through obstacles: {self._plant.no_forces}'
            )
        if self._plant.untouched:
            self.get_logger().warning(
                'no contacts of these links, whose collision shapes cannot be used: '
                f'{", ".join(self._plant.untouched)}'
            )
        if isinstance(self._plant, ControlledArm) and self._plant.draw is not None:
            self.get_logger().info(f'a plant was drawn: {self._plant.draw.text}')
        if options.stepping == 'lockstep':
            self._run_in_lockstep(stop)
        else:
            self._run_in_real_time(stop)

    def _run_in_lockstep(self, stop: StopRequest) -> None:
        SharedCore(self.context.get_domain_id(), self._states.topic_name).enter()
        pause = 1.0 / self.options.view_rate
        display_at = time.monotonic()
        while not stop():
            taken = self._input.take(min(display_at, time.monotonic() + PATIENCE))
            with self._lock:
                if taken is not None:
                    stamp, command = taken
                    if stamp == self._stamp and not self._paused:
                        self._advance(command)
                    else:
                        self._publish_latest()
                if time.monotonic() >= display_at:
                    if taken is None:
                        self._publish_latest()  # shows that it runs
                    self._display.publish(self._stamp)
                    display_at = time.monotonic() + pause

    def _run_in_real_time(self, stop: StopRequest) -> None:
        tick = self._plant.period / self.options.rate_factor
        pause = 1.0 / self.options.view_rate
        commanded = -self.options.command_timeout
        display_at = due = time.monotonic() + tick
        while not stop():
            now = time.monotonic()
            if now < due:
                time.sleep(min(due - now, PATIENCE))
                continue
            with self._lock:
                if self._paused:
                    self._input.ignore()
                    self._publish_latest()
                else:
                    asked = self._input.follow(self._plant.period)
                    if asked is not None:
                        self._command, commanded = asked, now
                    elif now - commanded > self.options.command_timeout:
                        self._command = None
                    self._advance(self._command)
                if now >= display_at:
                    self._display.publish(self._stamp)
                    display_at += pause
                else:  # nodes that use this clock may answer every state
                    self._display.publish_clock(self._stamp)
            due += tick
            self._late = max(self._late, now - due + tick)
            if now - due > GIVE_UP:
                self._lost += now - due
                due = now

    def _advance(self, command: Vector | None) -> None:
        self._plant.advance(command)
        self._stamp += self._period
        self._steps += 1
        self._publish_state()

    def _publish_state(self) -> None:
        # A lost state is not published; in lockstep the one before is, since each is waited for.
        is_lost = self.options.stepping == 'realtime' and not self._plant.has_new_state
        if not is_lost:
            self._latest = self._writer.write(self._stamp, *self._plant.joint_state())
        if self._tracked is not None:
            self._tracked.measure(self._stamp, self._plant)
        self._publish_latest(not is_lost)

    def _publish_latest(self, with_state: bool = True) -> None:
        if self._tracked is not None:
            self._tracked.publish()  # before the state: who waits for that has both
        if with_state:
            self._states.publish(self._latest)

    def _on_reset(self, *_: Any) -> Trigger.Response:
        seed = self.get_parameter('seed').value
        given = self.get_parameter('start').value
        with self._lock:
            try:
                start = np.array([float(part) for part in given.split(',')]) if given else None
                self._plant.reset(None if seed < 0 else seed, start)
            except ValueError as error:
                return Trigger.Response(success=False, message=f'start: {error}')
            if self._tracked is not None:
                self._tracked.reset(None if seed < 0 else seed)
            self._command = None
            self._input.forget()
            # Two periods, so that it cannot be the answer to a command.
            self._stamp += 2 * self._period
            self._publish_state()
            self._resets += 1
            self._seed, self._reset_stamp = seed, self._stamp
        # A client needs to know which state is the first, and of which arm.
        self._status.publish()
        return Trigger.Response(success=True, message='the arm is back at its start')

    def _on_pause(self, request: SetBool.Request, _: Any) -> SetBool.Response:
        with self._lock:
            self._paused = request.data
        self._status.publish()
        return SetBool.Response(success=True, message='paused' if request.data else 'running')

    def _make_status(self) -> SimulationStatus:
        how = 'on command' if self.options.stepping == 'lockstep' else 'in real time'
        with self._lock:
            contacts = self._plant.contacts()
            number, deepest, between = contacts or (None, None, '')
            return SimulationStatus(
                'paused' if self._paused else 'running',
                'paused' if self._paused else f'stepping {how}',
                Level.OK,
                self._name,
                self.options.stepping,
                self._input.kind,
                self._life,
                self._resets,
                self._seed,
                self._reset_stamp,
                self._plant.no_forces,
                number,
                deepest,
                between,
                randomise=self.options.randomise,
                tracker=self._errors,
                robot_file=self._digest,
                delay=self.options.delay,
                lag=self.options.lag,
                **({} if self._obstacles is None else self._obstacles.figures()),
            )

    def _diagnose(self) -> tuple[SimulationStatus, dict[str, str]]:
        late, lost = self._late, self._lost
        self._late = self._lost = 0.0
        status = self._make_status()
        contacts = status.contacts
        if lost or late >= self._plant.period / self.options.rate_factor:
            text = status.reason if self._paused else 'late'
            status = dataclasses.replace(status, reason=text, level=Level.WARN)
        return status, {
            'steps': str(self._steps),
            'worst lateness [s]': f'{late:.4f}',
            'time given up [s]': f'{lost:.3f}',
            'messages refused': str(self._input.refused),
            'contacts deeper than 1 mm': 'not known' if contacts is None else str(contacts),
        }


def run(stop: StopRequest) -> None:
    node = SimNode()
    with spinning(node, stop):
        node.run(stop)
