"""The systems in which a policy leads an arm to goals: a simulated one, or a real one."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from mher_ros.options import option, OptionError, read_changes
from mher_ros.ros.bringup.browser import SAID_OF_VIEW, SAID_OF_VIEW_PORT, view_node
from mher_ros.ros.bringup.system import check_name, NodeSpec, Role, System
from mher_ros.share import share_folder
from mher_ros.view.address import PORT

__all__ = ['Deploy', 'DeploySim']

# Named here once more because their modules import what `ros2 launch` may not have; a test
# compares them.
OUTPUTS = ('twist', 'pose', 'joint_trajectory', 'joint_position', 'joint_velocity', 'none')
GOAL_TOPIC = 'goal_pose'
SAID_OF_ROBOT = 'one that comes with mher_ros, or the path of a YAML file about it'

Parameters = dict[str, bool | int | float | str]


@dataclasses.dataclass(frozen=True)
class Deployed(System):
    """What both have in common; the arms that come along are the files in config/robots."""

    robot: str = option('fetch', f'arm: {SAID_OF_ROBOT}')
    policy: str = option(
        '', "policy file, or a run's folder; empty: the newest below runs/ in this folder"
    )
    output: str = option(
        'robot',
        "what the arm is commanded with; none: nothing, only markers; robot: as the robot's file "
        'says',
        choices=('robot', *OUTPUTS),
    )
    outside: str = option(
        'reject',
        'goals outside the workspace: reject, or project to the nearest point inside',
        choices=('reject', 'project'),
    )
    speed: float = option(
        0.0, "fastest motion of the tool [m/s]; 0: as the robot's file says", low=0.0, high=2.0
    )
    goal_topic: str = option(
        GOAL_TOPIC, 'topic of goals of type PoseStamped; another one where Nav2 has goal_pose'
    )
    set: str = option('', "other parameters of policy_node, as 'safety.leash=0.1 command_rate=50'")
    rviz: bool = option(False, 'true: show arm, goal, workspace and motion in RViz, to set goals')
    view: bool = option(False, f'{SAID_OF_VIEW}, and set goals there')
    view_port: int = option(PORT, SAID_OF_VIEW_PORT, low=0, high=65535)

    def _policy_node(self, **more: bool) -> NodeSpec:
        parameters: Parameters = {
            'robot': self.robot,
            'policy': self.policy,
            'output': self.output,
            'outside': self.outside,
            'speed': self.speed,
            **more,
        }
        for key, text in read_changes(self.set.split(), 'set').items():
            if key in parameters:
                raise OptionError(f'{key} is an argument of its own: {key}:={text}')
            parameters[key] = _value(key, text)
        return NodeSpec(
            'mher_ros',
            'policy_node',
            'policy_node',
            Role.MAIN,
            parameters,
            remappings=self._remappings(),
        )

    def _remappings(self) -> tuple[tuple[str, str], ...]:
        check_name('goal_topic', self.goal_topic)
        return () if self.goal_topic == GOAL_TOPIC else ((GOAL_TOPIC, self.goal_topic),)

    def _windows(self) -> list[NodeSpec]:
        page = []
        if self.view:
            page = [view_node(self.view_port, self.robot, self._remappings())]
        return [*([self._rviz()] if self.rviz else []), *page]

    def _rviz(self) -> NodeSpec:
        # Not above: it needs PyYAML, which comes with ROS, but not with Python.
        from mher_ros.ros.bringup.rviz_layout import write_layout

        return NodeSpec(
            'rviz2',
            'rviz2',
            'rviz',
            Role.OPTIONAL,
            arguments=('-d', str(write_layout(self.robot))),
            remappings=self._remappings(),
        )


@dataclasses.dataclass(frozen=True)
class DeploySim(Deployed):
    """A simulated arm under the topics of the real one, and the policy that leads it."""

    summary: ClassVar[str] = 'lead a simulated arm to goals with a learnt policy'

    headless: bool = option(True, "false: show the arm in MuJoCo's own window")

    def _nodes(self) -> list[NodeSpec]:
        simulation = NodeSpec(
            'mher_ros',
            'sim_node',
            'sim_node',
            Role.NEEDED,
            parameters={
                'robot': self.robot,
                'output': self.output,
                'stepping': 'realtime',
                'viewer': not self.headless,
            },
        )
        return [simulation, self._policy_node(), *self._windows()]


@dataclasses.dataclass(frozen=True)
class Deploy(Deployed):
    """The policy that leads an arm whose driver is running already."""

    summary: ClassVar[str] = 'lead a real arm to goals with a learnt policy'

    robot: str = option('', f'arm, must be given: {SAID_OF_ROBOT}')
    autostart: bool = option(
        True, 'false: wait until told to configure and activate, as `ros2 lifecycle` does'
    )

    def _nodes(self) -> list[NodeSpec]:
        if not self.robot:
            folder = share_folder() / 'config' / 'robots'
            names = ', '.join(sorted(path.stem for path in folder.glob('*.yaml')))
            raise OptionError(
                f'a real arm must be named (robot:=...): one of {names}, or the path of a YAML '
                'file about it'
            )
        return [self._policy_node(autostart=self.autostart), *self._windows()]


def _value(key: str, text: str) -> bool | float:
    if text in ('true', 'false'):
        return text == 'true'
    try:
        return float(text)
    except ValueError:
        raise OptionError(f'{key} takes a number, true or false, got {text!r}') from None
