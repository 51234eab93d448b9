"""Options of the task ``reach``, and the combinations of them that are refused."""

import dataclasses

from mher_ros.options import option, OptionError
from mher_ros.robots.arm_model import ArmModel, POSE_JOINTS
from mher_ros.robots.randomisation import MOST_RANDOM
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.simulation.tracker import TrackerOptions
from mher_ros.tasks.task import TaskOptions


@dataclasses.dataclass(frozen=True)
class ReachOptions(TaskOptions):
    """Options ``task.*`` of ``reach``."""

    robot: str = option('fetch', 'the arm: a name from config/robots, or the path of a YAML file')
    control_period: float = option(0.2, 'time between two actions [s]', low=0.005, high=1.0)
    joint_speed: float = option(
        0.5, 'speed of a joint that an action of 1 requests [rad/s or m/s]', low=0.01, high=10.0
    )
    randomise: float = option(
        0.0,
        'domain randomisation: each episode has another simulated plant, drawn from its seed; 1: '
        'from the ranges of the robot file, 0.5: from half of them, 0: always the nominal plant',
        low=0.0,
        high=MOST_RANDOM,
    )
    start: str = option(
        'home',
        'joint positions at the start of an episode; random: drawn, with the tool in the box of '
        'goals; last: where the training episode before ended, and home in evaluations',
        choices=('home', 'random', 'last'),
    )
    action: str = option(
        'joint',
        'joint: actions move the joints; tool: the tool, which keeps its orientation',
        choices=('joint', 'tool'),
    )
    tool_speed: float = option(
        0.25,
        'speed of the tool that an action of 1 requests on each axis [m/s]',
        low=0.01,
        high=2.0,
    )
    goal: str = option(
        'position',
        'position: goals are positions of the tool; pose: with an orientation',
        choices=('position', 'pose'),
    )
    turn_threshold: float = option(
        0.2,
        'pose: largest angle to the orientation of the goal that is a success [rad]',
        low=1e-3,
        high=3.0,
    )
    turn: float = option(
        0.5,
        'pose: largest angle between the orientation of a goal and that at home [rad]',
        low=0.01,
        high=3.0,
    )
    tool_pose: str = option(
        'robot',
        'topic: the pose of the tool is measured, no kinematics are used; kinematics: it is '
        'computed from the joints; robot: as the robot file says',
        choices=('robot', 'kinematics', 'topic'),
    )
    tracker: TrackerOptions = TrackerOptions()

    def load_robot(self) -> Robot:
        """Return the robot with the source of the tool's pose that is chosen."""
        robot = load_robot(self.robot)
        if self.tool_pose == 'robot':
            return robot
        chosen = dataclasses.replace(robot.tool_pose, source=self.tool_pose)
        return dataclasses.replace(robot, tool_pose=chosen)


def check_options(options: ReachOptions, arm: ArmModel, is_tracked: bool) -> None:
    """Raise OptionError if action and goal do not fit each other, or the arm."""
    if is_tracked and (options.action, options.goal) != ('joint', 'position'):
        raise OptionError(
            'where the pose of the tool is measured, task.action must be joint and task.goal '
            f'position; got {options.action} and {options.goal}'
        )
    if options.goal == 'pose' and options.action == 'tool':
        raise OptionError(
            'task.goal=pose needs task.action=joint: a motion of the tool keeps its orientation'
        )
    if options.goal == 'pose' and (count := len(arm.joint_names)) < POSE_JOINTS:
        raise OptionError(
            f'task.goal=pose needs an arm with at least {POSE_JOINTS} joints; that of '
            f'{options.robot} has {count}: it reaches positions, not poses'
        )
