"""Learns with whatever arm is behind the topics."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from pathlib import Path
import shlex
import sys
import threading
import time
from typing import Any

from mher_ros.learning.config import TrainConfig
from mher_ros.learning.pace import Pace
from mher_ros.learning.presets import PRESETS
from mher_ros.learning.progress import Progress, Row, row_text
from mher_ros.learning.run import exported_text, plan_run, plan_text, start_training
from mher_ros.learning.run_folder import load_config
from mher_ros.learning.systems import ALGORITHMS
from mher_ros.learning.train import Ending, Trainer
from mher_ros.options import option, OptionError, read_changes
from mher_ros.ros.arm_env import ArmEnv, ArmEvaluator
from mher_ros.ros.curve import curve_message
from mher_ros.ros.diagnostics import report_diagnostics
from mher_ros.ros.inbox import LATCHED
from mher_ros.ros.links import LINKS
from mher_ros.ros.parameters import declare
from mher_ros.ros.process import StopRequest
from mher_ros.ros.spinning import spinning
from mher_ros.ros.train_view import TrainView
from mher_ros.tasks import make, task_class, TASKS
from rclpy.node import Node
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import Trigger

__all__ = ['run', 'TrainNode', 'TrainOptions']


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Parameters of train_node; with ``resume``, those left at their default are the run's own."""

    task: str = option('fetch_reach', 'what to learn', choices=tuple(TASKS))
    algorithm: str = option('mher', 'how to learn it', choices=tuple(ALGORITHMS))
    preset: str = option('fast', 'schedule and sizes of networks', choices=tuple(PRESETS))
    seed: int = option(0, 'of everything random in the run', low=0)
    steps: int = option(0, 'stop after this many environment steps; 0: as the preset says', low=0)
    until: float = option(
        -1.0,
        'stop once this success rate holds over two evaluations; 0: never; -1: as the preset says',
        low=-1.0,
        high=1.0,
    )
    max_minutes: float = option(0.0, 'stop after this much time; 0: never', low=0.0, high=1e6)
    set: str = option('', 'other choices, as key=value key=value; `mher options` lists them')
    out: str = option('', 'folder of the run; empty: a new one below runs/')
    resume: bool = option(False, 'go on with the run in out')
    stepping: str = option(
        'lockstep',
        'lockstep: the arm waits for each command; realtime: it cannot wait',
        choices=tuple(LINKS),
    )
    arm: str = option(
        'sim_node', 'node whose reset service starts an episode; empty: the arm stays as it is'
    )
    arm_timeout: float = option(
        10.0,
        'give up when the arm has been silent for this long [s]; at first, after 30 s or more',
        low=0.5,
        high=3600.0,
    )


class TrainNode(Node):
    """
    A run of the learner.

    The thread that calls ``run`` learns; services, parameters and diagnostics are answered by
    another.
    """

    def __init__(self, stop: StopRequest) -> None:
        super().__init__('train_node')
        self.options = declare(self, TrainOptions())
        self._stop = stop
        self._save = threading.Event()
        self.config, self.folder = _plan(self.options)
        task = make(self.config.task_name, self.config.task)
        self._view = TrainView(self, task.interface)
        link = LINKS[self.options.stepping](
            self, task, self.options.arm, self.options.arm_timeout, stop
        )
        self.env = ArmEnv(task, link, self._view.watch)
        self._progress = RosProgress(self, task.interface.goal[0].unit, self.config.schedule.steps)
        self.create_service(Trigger, '~/save', self._on_save)
        self.create_service(Trigger, '~/stop', self._on_stop)
        report_diagnostics(self, self._diagnose)

    def run(self) -> None:
        """Learn until a budget is used up or somebody wants to stop."""
        logger = self.get_logger()
        logger.info(plan_text(self.config, self.folder))
        evaluator = ArmEvaluator(self.env, self._progress.goals, self._progress.warning)
        try:
            trainer, ending = start_training(
                self.folder,
                self.config,
                [self._progress],
                resume=self.options.resume,
                asked_to_stop=self._stop,
                asked_to_save=self._take_save,
                arm=(self.env, evaluator.run),
                began=self._show_goals_of,
            )
        finally:
            self.env.close()
        logger.info(f'stopped after {trainer.env_steps} steps: {ending.value}')
        until = self.config.schedule.until
        if ending in (Ending.STEPS, Ending.TIME) and until:
            logger.warning(f'success {until:g} did not hold over two evaluations')
        if ending is Ending.ASKED:
            where = shlex.quote(str(self.folder))
            logger.info(f'go on with resume:=true out:={where}')
            if trainer.agent.updates:
                logger.info(f'policy so far: mher export {where}')
        else:
            logger.info(exported_text(self.folder, self.config))

    def _show_goals_of(self, trainer: Trainer) -> None:
        self._view.virtual_offsets = lambda: trainer.agent.virtual_offsets

    def _take_save(self) -> bool:
        if not self._save.is_set():
            return False
        self._save.clear()
        return True

    def _on_save(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        self._save.set()
        response.success = True
        response.message = f'a checkpoint will be in {self.folder} after this episode'
        return response

    def _on_stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        self._stop.ask()
        response.success = True
        response.message = f'stopping, with a checkpoint in {self.folder}'
        return response

    def _diagnose(self) -> tuple[bool, str, dict[str, str]]:
        """Return whether all is well, a sentence, and figures."""
        progress, left = self._progress, self._progress.seconds_left()
        figures = {
            'epoch': str(progress.epoch),
            'environment steps': str(progress.env_steps),
            'steps at most': str(self.config.schedule.steps),
            'time left [s]': '' if left is None else f'{left:.0f}',
            'updates': str(progress.updates),
            'success rate': '' if progress.success_rate is None else f'{progress.success_rate:g}',
            'goal unit': self.env.interface.goal[0].unit,
            'folder': str(self.folder.resolve()),
            'commands repeated': str(self.env.link.repeats),
            'episodes dropped': str(self.env.episodes_lost),
        }
        waited = self.env.link.silence()
        if waited > 1.0:
            return False, f'waiting for the arm for {waited:.0f} s', figures
        return True, progress.doing, figures


class RosProgress(Progress):
    """A run's figures as topics, its lines in the log."""

    def __init__(self, node: Node, unit: str, most_steps: int) -> None:
        self._logger, self._unit, self._most_steps = node.get_logger(), unit, most_steps
        self._rows: list[Row] = []
        self._curve = node.create_publisher(Float64MultiArray, '~/curve', LATCHED)
        self._success = node.create_publisher(Float64, '~/success_rate', 10)
        self._error = node.create_publisher(Float64, '~/final_error', 10)
        self._told = time.monotonic()
        self.doing = 'starting'
        self.env_steps = self.updates = 0
        self.success_rate: float | None = None
        self._pace = Pace()
        # A new run: whoever still shows the curve of another one learns of it.
        self._curve.publish(curve_message([]))

    @property
    def epoch(self) -> int:
        """Evaluations done."""
        return len(self._rows)

    def seconds_left(self) -> float | None:
        """Return for how long steps are left at the pace so far [s], if there is one yet."""
        return self._pace.seconds_until(self._most_steps, time.monotonic())

    def resume(self, rows: Sequence[Row]) -> None:
        """Say where the run goes on."""
        self._rows = list(rows)
        self._curve.publish(curve_message(self._rows))
        if rows:
            self.success_rate = rows[-1]['success_rate']
            self._logger.info(f'going on after {rows[-1]["env_steps"]} steps')

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        """Keep it for the diagnostics."""
        self.doing, self.env_steps, self.updates = text, env_steps, updates
        self._pace.note(env_steps, time.monotonic())

    def goals(self, done: int, total: int) -> None:
        """Tell how far an evaluation is, now and then."""
        self.doing = f'evaluating, {done} of {total} goals'
        if done == 0 or time.monotonic() - self._told > 5.0:
            self._told = time.monotonic()
            self._logger.info(self.doing)

    def row(self, row: Row) -> None:
        """Publish the figures of one evaluation."""
        self.success_rate = row['success_rate']
        for publisher, figure in (
            (self._success, self.success_rate),
            (self._error, row['final_error']),
        ):
            if figure is not None:  # 0 would be a perfect error
                publisher.publish(Float64(data=float(figure)))
        self._rows.append(row)
        self._curve.publish(curve_message(self._rows))
        self._logger.info(row_text(row, self._unit))

    def notice(self, text: str) -> None:
        """Log it."""
        self._logger.info(text)

    def warning(self, text: str) -> None:
        """Log it as one."""
        self._logger.warning(text)


def _plan(options: TrainOptions) -> tuple[TrainConfig, Path]:
    """Return the run that the parameters mean, and its folder."""
    defaults = TrainOptions()
    given: dict[str, Any] = {
        name: getattr(options, name)
        for name in ('algorithm', 'preset', 'seed')
        if not options.resume or getattr(options, name) != getattr(defaults, name)
    }
    task, folder = options.task, Path(options.out).expanduser() if options.out else None
    if options.resume and folder is not None and task == defaults.task:
        task = load_config(folder).task_name
    changes = dict[str, Any](read_changes(options.set.split(), 'set'))
    if options.steps:
        changes['schedule.steps'] = options.steps
    if options.until >= 0.0:
        changes['schedule.until'] = options.until
    if options.max_minutes:
        changes['schedule.max_minutes'] = options.max_minutes
    config, folder = plan_run(task, changes=changes, folder=folder, resume=options.resume, **given)
    for name in task_class(task).arm_options:
        default = getattr(task_class(task).default_options, name)
        if getattr(config.task, name) != default:
            raise OptionError(
                f'task.{name} belongs to the arm, which is not in this process: it stays {default}'
            )
    return config, folder


def run(stop: StopRequest) -> None:
    """Run the node until its run has ended, or somebody wants to stop."""
    # While networks learn, whoever calls a service waits for the interpreter: not for long.
    sys.setswitchinterval(0.001)
    node = TrainNode(stop)
    with spinning(node, stop):
        node.run()
