"""The bringups by name: what ``mher up`` and the launch files start."""

from collections.abc import Mapping
import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from mher_ros.files import CONFIG, share_folder
from mher_ros.learning.run.arguments import REACH, read_config, ROBOT, RunArguments
from mher_ros.options import dotted, option, option_text, OptionError, override, read_changes
from mher_ros.ros.bringup.node_spec import (
    Bringup,
    check_name,
    mher_node,
    NodeSpec,
    ObstacleArguments,
    Parameters,
    PlantArguments,
    PolicyArguments,
    ROBOT_HELP,
    Role,
)

GOAL_TOPIC = 'goal_pose'
PLANT = ('randomise', 'tracker.')
"""What the options of the task begin with that sim_node takes, too."""
COUNTS = ('tracker.arm_seed',)


def make_bringup(name: str, values: Mapping[str, Any]) -> Bringup:
    """Return the bringup ``name``; ``values``, also as text, replace its defaults."""
    if name not in BRINGUPS:
        raise OptionError(f'unknown bringup {name!r}; there are {", ".join(BRINGUPS)}')
    return override(BRINGUPS[name](), dict(values))


@dataclasses.dataclass(frozen=True)
class TrainSim(Bringup, RunArguments):
    summary: ClassVar[str] = 'learn a policy on a simulated arm behind ROS topics'

    def _nodes(self) -> list[NodeSpec]:
        if self.resume and not self.out:
            raise OptionError('to resume a run, name its folder (out:=...)')
        # A run is resumed with its own arm, even if the arguments do not name it.
        task, robot = self.task, self.robot
        changes: dict[str, Any] = {**read_changes(self.set.split(), 'set')}
        if self.resume:
            task, robot, changes = _arm_of_run(Path(self.out).expanduser())
        elif task == REACH and not robot:
            robot = changes.get('task.robot', ROBOT)
        arm: dict[str, bool | int | float | str] = {'stepping': 'lockstep'}
        arm |= {'robot': robot, **_plant(changes)} if robot else {'task': task}
        nodes = [
            mher_node('sim_node', Role.NEEDED, arm),
            mher_node('train_node', Role.MAIN, self._values(RunArguments)),
        ]
        frame = 'square' if task.startswith('point2d') else 'world'
        return nodes + self._windows('train.rviz', robot, frame)


@dataclasses.dataclass(frozen=True)
class PolicyBringup(Bringup, ObstacleArguments, PolicyArguments):
    goal_topic: str = option(
        GOAL_TOPIC, 'topic of goals as PoseStamped; change it if Nav2 uses goal_pose'
    )
    set: str = option(
        '', "other parameters of policy_node, as 'safety.max_following_error=0.1 command_rate=50'"
    )

    def _policy_and_windows(self, **more: bool) -> list[NodeSpec]:
        check_name('goal_topic', self.goal_topic)
        goals = () if self.goal_topic == GOAL_TOPIC else ((GOAL_TOPIC, self.goal_topic),)
        arguments = {**self._values(PolicyArguments), **self._values(ObstacleArguments)}
        parameters = {**arguments, **more}
        for key, text in read_changes(self.set.split(), 'set').items():
            if key in parameters:
                raise OptionError(f'{key} is a separate argument: {key}:={text}')
            parameters[key] = _value(key, text)
        nodes = [mher_node('policy_node', Role.MAIN, parameters)]
        nodes += self._windows('deploy.rviz', self.robot)
        return [dataclasses.replace(node, remappings=goals) for node in nodes]


@dataclasses.dataclass(frozen=True)
class DeploySim(PolicyBringup, PlantArguments):
    summary: ClassVar[str] = 'move a simulated arm to goals with a learnt policy'

    plant_seed: int = option(
        0, 'with randomise: seed from which the plant is drawn', low=0, high=2**63 - 1
    )
    tracker: str = option(
        '',
        "with tool_pose.source: topic, what differs from the model, as 'camera_turn=0,0,90 "
        "link_error=0.03'",
    )

    def _nodes(self) -> list[NodeSpec]:
        arm = {
            'robot': self.robot,
            'output': self.output,
            'stepping': 'realtime',
            **self._values(ObstacleArguments),
            **self._values(PlantArguments),
            'seed': self.plant_seed,
            **_plant(
                {
                    f'task.tracker.{key}': text
                    for key, text in read_changes(self.tracker.split(), 'tracker').items()
                }
            ),
        }
        return [mher_node('sim_node', Role.NEEDED, arm), *self._policy_and_windows()]


@dataclasses.dataclass(frozen=True)
class Deploy(PolicyBringup):
    summary: ClassVar[str] = 'move a real arm to goals with a learnt policy'

    robot: str = option('', f'arm, required: {ROBOT_HELP}')
    autostart: bool = option(
        True, 'false: wait for the transitions configure and activate (`ros2 lifecycle set`)'
    )

    def _nodes(self) -> list[NodeSpec]:
        if not self.robot:
            folder = share_folder() / 'config' / 'robots'
            names = ', '.join(sorted(path.stem for path in folder.glob('*.yaml')))
            raise OptionError(
                f'name the real arm (robot:=...): one of {names}, or the path of a YAML file'
            )
        return self._policy_and_windows(autostart=self.autostart)


BRINGUPS: dict[str, type[Bringup]] = {
    'train_sim': TrainSim,
    'deploy_sim': DeploySim,
    'deploy': Deploy,
}


def _value(key: str, text: str) -> bool | float:
    if text in ('true', 'false'):
        return text == 'true'
    return _number(key, text, ', true or false')


def _number(key: str, text: str, others: str = '') -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f'{key} takes a number{others}, got {text!r}') from None


def _plant(changes: Mapping[str, Any]) -> Parameters:
    """Return the parameters of sim_node that options of the task set; others are left out."""
    found: dict[str, int | float | str] = {}
    for key, value in changes.items():
        name, text = key.removeprefix('task.'), option_text(value)
        if name == key or not name.startswith(PLANT):
            continue
        found[name] = text if ',' in text else _number(key, text)
        if name in COUNTS:
            found[name] = int(_number(key, text))
    return found


def _arm_of_run(folder: Path) -> tuple[str, str, dict[str, Any]]:
    """Return task, robot and options of the task; the robot is empty if it has none."""
    config = read_config(folder)
    try:
        options = config.get('task', {})
        changes = {
            f'task.{key}': tuple(value) if isinstance(value, list) else value
            for key, value in dotted(options).items()
        }
        return str(config['task_name']), str(options.get('robot', '')), changes
    except (AttributeError, KeyError, TypeError):
        raise OptionError(f'{folder / CONFIG} names no task') from None
