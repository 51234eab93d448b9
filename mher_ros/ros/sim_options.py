"""Parameters of sim_node."""

from __future__ import annotations

import dataclasses

from mher_ros.control.robot import OUTPUTS
from mher_ros.options import option
from mher_ros.tasks import TASKS

__all__ = ['SimOptions']

PUBLISHING = ('auto', 'always', 'never')


@dataclasses.dataclass(frozen=True)
class SimOptions:
    """Parameters of sim_node."""

    task: str = option('fetch_reach', 'task whose arm it is', choices=tuple(TASKS))
    robot: str = option(
        '',
        "arm to simulate instead of a task's, under the topics of the real one: a name from "
        'config/robots, or the path of a YAML file',
    )
    output: str = option(
        'robot',
        'with robot: what its commands are, where positions and velocities of joints share a '
        "topic; robot: as the robot's file says",
        choices=('robot', *OUTPUTS),
    )
    delay: float = option(
        0.0, 'with robot: time after which a command is carried out [s]', low=0.0, high=5.0
    )
    lag: float = option(
        0.0,
        'with robot: time constant with which joints follow what is asked of them [s]',
        low=0.0,
        high=5.0,
    )
    stepping: str = option(
        'realtime',
        'realtime: time passes by itself; lockstep: one period for each command that answers '
        'the latest state',
        choices=('realtime', 'lockstep'),
    )
    interface: str = option(
        'auto',
        'twist: velocity of the tool; joint: an arm with position actuators and the real '
        "joints' limits; auto: as the task's actions are carried out",
        choices=('auto', 'twist', 'joint'),
    )
    rate_factor: float = option(
        1.0, 'realtime: simulated seconds in a second', low=0.01, high=100.0
    )
    command_timeout: float = option(
        0.2,
        'realtime: without a command for this long the arm stops [s]',
        low=0.01,
        high=60.0,
    )
    view_rate: float = option(
        20.0, 'messages for the eye (markers, tool pose, clock) in a second', low=0.1, high=1000.0
    )
    publish_robot_description: str = option(
        'auto',
        'whether to publish robot_description; auto: while no other node does',
        choices=PUBLISHING,
    )
    publish_tf: str = option(
        'auto',
        'whether to publish the links on /tf; auto: while no other node publishes '
        'robot_description, as robot_state_publisher does',
        choices=PUBLISHING,
    )
    viewer: bool = option(False, "open MuJoCo's own window, too")
    seed: int = option(
        -1, 'of the start after the next reset, where the task draws it; -1: any', low=-1
    )
