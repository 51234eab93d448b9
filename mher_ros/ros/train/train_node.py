"""The node train_node: learns with an arm over topics."""

from collections.abc import Callable, Sequence
import dataclasses
from pathlib import Path
import sys
import threading
import time
from typing import Any

from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import ArmError, StopRequested
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.run.arguments import RunArguments
from mher_ros.learning.run.progress import curve_of, Pace, Progress, Row, row_text
from mher_ros.learning.run.session import ending_lines, plan_arguments, plan_text, start_training
from mher_ros.options import option, OptionError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.ros.bringup.node_spec import ObstacleArguments
from mher_ros.ros.common.arm_driver import model_text
from mher_ros.ros.common.collision_markers import CollisionMarkers, scene_markers
from mher_ros.ros.common.diagnostics import report_diagnostics
from mher_ros.ros.common.markers import TrainMarkers
from mher_ros.ros.common.parameters import declare
from mher_ros.ros.common.polled_topic import LATCHED
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.common.status import box_of, Level, StatusPublisher, TrainingStatus
from mher_ros.ros.train.arm_env import ArmEnv, ArmEvaluator
from mher_ros.ros.train.lockstep_link import FIRST_CONTACT, LockstepLink, LOG_AFTER, RobotLink
from mher_ros.ros.train.real_time_link import RealTimeLink
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.tasks import make, task_class, TASKS
from mher_ros.tasks.task import Task
from rclpy.node import Node
from std_msgs.msg import Float64, Float64MultiArray, MultiArrayDimension
from std_srvs.srv import Trigger


@dataclasses.dataclass(frozen=True)
class TrainOptions(ObstacleArguments, RunArguments):
    """Parameters of train_node; with ``resume``, defaults mean the values of the run."""

    task: str = option(RunArguments().task, 'task to learn', choices=tuple(TASKS))
    stepping: str = option(
        'lockstep',
        'lockstep: a simulation that waits for each command; realtime: with robot, an arm that '
        'moves in real time and is not reset',
        choices=('lockstep', 'realtime'),
    )
    arm: str = option('sim_node', 'lockstep: node whose reset service starts an episode')
    arm_timeout: float = option(
        10.0,
        'time without a message of the arm after which the run ends [s]; at start at least 30 s',
        low=0.5,
        high=3600.0,
    )


class TrainNode(Node):
    """A run; the thread of ``run`` learns, another one answers services and diagnoses."""

    def __init__(self, stop: StopRequest) -> None:
        super().__init__('train_node')
        self.options = declare(self, TrainOptions())
        self._stop = stop
        self._save = threading.Event()
        self.config, self.folder = _plan(self.options)
        self._latch = StopLatch()
        task, link = self._connect()
        arm = task.arm if isinstance(task, Reach) else None
        scene = [] if arm is None else scene_markers(arm)
        at_run_time = link.obstacles if isinstance(link, RealTimeLink) else None
        others = list if at_run_time is None else at_run_time.markers
        self._markers = TrainMarkers(self, task.interface, lambda: scene + others())
        if arm is not None and arm.parts:
            self._collision_markers = CollisionMarkers(self, arm, link.positions)
        self.env = ArmEnv(task, link, self._markers.take)
        self._progress = RosProgress(
            self,
            task.interface.goal[0].unit,
            self.config.schedule.steps,
            lambda: self._status.publish(),
        )
        self.create_service(Trigger, '~/save', self._on_save)
        self.create_service(Trigger, '~/stop', self._on_stop)
        self._status = StatusPublisher(self, self._make_status)
        report_diagnostics(self, self._diagnose)

    def _connect(self) -> tuple[Task, LockstepLink | RealTimeLink]:
        """Return the task, and the link to its arm."""
        options, config, stop = self.options, self.config, self._stop
        if options.stepping == 'realtime':
            if not isinstance(config.task, ReachOptions):
                raise OptionError(
                    f'stepping must be lockstep for {config.task_name}: only robots (task reach) '
                    'move in real time'
                )
            robot = load_robot(config.task.robot)
            text = model_text(self, robot, stop, max(options.arm_timeout, FIRST_CONTACT))
            reach = Reach(config.task, arm=ArmModel(robot, text))
            link = RealTimeLink(
                self,
                reach,
                self._latch,
                options.arm_timeout,
                stop,
                planning_scene=options.planning_scene,
            )
            return reach, link
        if options.planning_scene:
            raise OptionError(
                "planning_scene takes '' in lockstep: only an arm that moves in real time avoids "
                'obstacles from topics'
            )
        task = make(config.task_name, config.task)
        if isinstance(task, Reach) and task.arm.obstacle_slots() is not None:
            self.get_logger().info('in lockstep, obstacles from topics are not avoided')
        kind = RobotLink if isinstance(task, Reach) else LockstepLink
        return task, kind(self, task, options.arm, options.arm_timeout, stop)

    def run(self) -> None:
        """Learn until a budget is used up, or a stop is requested."""
        logger = self.get_logger()
        logger.info(plan_text(self.config, self.folder))
        evaluator = ArmEvaluator(self.env, self._progress.goals, self._progress.warning)
        # It is called after the first reset of the arm, when there is a trainer.
        self._markers.goal_offsets = lambda: self._progress.trainer.agent.goal_offsets
        try:
            trainer, ending = start_training(
                self.folder,
                self.config,
                [self._progress],
                resume=self.options.resume,
                asked_to_stop=self._stop,
                asked_to_save=self._take_save,
                arm=(self.env, evaluator.run),
            )
        except ArmError:
            self._status.publish()  # with the stop that ended the run
            raise
        finally:
            self.env.close()
        resume = 'resume:=true out:='
        for line in ending_lines(trainer, ending, self.config, self.folder, resume):
            logger.info(line)

    def _take_save(self) -> bool:
        if not self._save.is_set():
            return False
        self._save.clear()
        return True

    def _on_save(self, *_: Any) -> Trigger.Response:
        self._save.set()
        text = f'a checkpoint is written to {self.folder} after this episode'
        return Trigger.Response(success=True, message=text)

    def _on_stop(self, *_: Any) -> Trigger.Response:
        self._latch.set('~/stop was called')
        self._stop.ask()
        text = f'stopping, with a checkpoint in {self.folder}'
        return Trigger.Response(success=True, message=text)

    def _make_status(self) -> TrainingStatus:
        progress, interface = self._progress, self.env.interface
        waited, left = self.env.link.silence(), progress.seconds_left()
        waits, why = waited > LOG_AFTER, ''
        arm: dict[str, Any] = {}
        if isinstance(self.env.link, RealTimeLink):
            path, box = self.env.link.driver.path, self.env.link.box
            arm = {'arm': path.monitor.status.code, 'box': box_of(*box)}
            arm['ended_by'] = self.env.link.ended_by
            arm['nearest'] = path.nearest
            arm['speed_cap'], why = path.limits.speed, f': {path.monitor.reason}'
            if self.env.link.obstacles is not None:
                arm |= self.env.link.obstacles.figures()
        return TrainingStatus(
            'waiting_for_arm' if waits else progress.state,
            f'waiting for the arm for {waited:.0f} s{why}' if waits else progress.doing,
            Level.WARN if waits else Level.OK,
            interface.frame,
            box_of(*interface.position_box),
            interface.goal[0].unit,
            progress.env_steps,
            self.config.schedule.steps,
            len(progress.rows),
            progress.updates,
            progress.success_rate,
            left,
            str(self.folder.resolve()),
            stopped=self._latch.reason is not None,
            **arm,
        )

    def _diagnose(self) -> tuple[TrainingStatus, dict[str, str]]:
        is_stepped = self.options.stepping == 'lockstep'
        return self._make_status(), {
            'commands repeated' if is_stepped else 'periods missed': str(self.env.link.repeats),
            'episodes dropped': str(self.env.episodes_lost),
        }


class RosProgress(Progress):
    def __init__(
        self, node: Node, unit: str, most_steps: int, evaluated: Callable[[], None]
    ) -> None:
        """Call ``evaluated`` whenever the rows have changed."""
        self._evaluated = evaluated
        self._logger, self._unit, self._most_steps = node.get_logger(), unit, most_steps
        self.rows: list[Row] = []
        self._curve = node.create_publisher(Float64MultiArray, '~/curve', LATCHED)
        self._success = node.create_publisher(Float64, '~/success_rate', 10)
        self._error = node.create_publisher(Float64, '~/final_error', 10)
        self._logged_at = time.monotonic()
        self.state = self.doing = 'starting'
        self.env_steps = self.updates = 0
        self.success_rate: float | None = None
        self._pace = Pace()
        # A new run: subscribers that show the curve of another one clear it.
        self._curve.publish(curve_message([]))

    def seconds_left(self) -> float | None:
        """Return the time until all steps are done, at the pace so far [s]; None: not known."""
        return self._pace.seconds_until(self._most_steps, time.monotonic())

    def resume(self, rows: Sequence[Row]) -> None:
        """Publish the curve of the resumed run, and log its steps."""
        self.rows = list(rows)
        self._curve.publish(curve_message(self.rows))
        if rows:
            self.success_rate = rows[-1]['success_rate']
            self._evaluated()
            self._logger.info(f'continuing after {rows[-1]["env_steps"]} steps')

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        self.state = self.doing = text
        self.env_steps, self.updates = env_steps, updates
        self._pace.note(env_steps, time.monotonic())

    def goals(self, done: int, total: int) -> None:
        """Log the progress of an evaluation: its start, then every 5 s."""
        self.doing = f'evaluating, {done} of {total} goals'
        if done == 0 or time.monotonic() - self._logged_at > 5.0:
            self._logged_at = time.monotonic()
            self._logger.info(self.doing)

    def row(self, row: Row) -> None:
        self.success_rate = row['success_rate']
        for publisher, figure in (
            (self._success, self.success_rate),
            (self._error, row['final_error']),
        ):
            if figure is not None:  # 0 would be a perfect result
                publisher.publish(Float64(data=float(figure)))
        self.rows.append(row)
        self._curve.publish(curve_message(self.rows))
        self._evaluated()
        self._logger.info(row_text(row, self._unit))

    def notice(self, text: str) -> None:
        self._logger.info(text)

    def warning(self, text: str) -> None:
        self._logger.warning(text)


def curve_message(rows: Sequence[Row]) -> Float64MultiArray:
    """Return an array (evaluations, 3): environment steps, success rate, final error."""
    curve = curve_of(rows)
    labels = ('evaluation', 'environment steps, success rate, final error')
    message = Float64MultiArray(data=curve.ravel().tolist())
    strides = (curve.size, curve.shape[1])
    message.layout.dim = [
        MultiArrayDimension(label=label, size=size, stride=stride)
        for label, size, stride in zip(labels, curve.shape, strides, strict=True)
    ]
    return message


def _plan(options: TrainOptions) -> tuple[TrainConfig, Path]:
    """Return the configuration of the run that the parameters describe, and its folder."""
    given = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(RunArguments)
        if getattr(options, field.name) != getattr(TrainOptions(), field.name)
    }
    config, folder = plan_arguments({**given, 'set': options.set.split()})
    task = config.task_name
    for name in task_class(task).arm_options:
        default = getattr(task_class(task).default_options, name)
        if getattr(config.task, name) != default:
            raise OptionError(
                f'task.{name} is an option of the arm, which sim_node sets to {default}'
            )
    return config, folder


def run(stop: StopRequest) -> None:
    # Service calls wait for the interpreter while networks learn: keep that short.
    sys.setswitchinterval(0.001)
    try:
        node = TrainNode(stop)
    except StopRequested:  # while waiting for the model of the arm
        return
    with spinning(node, stop):
        node.run()
