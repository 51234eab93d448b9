"""Arguments of a deployment; separate, so that policy_node does not import training."""

import dataclasses

from mher_ros.options import option
from mher_ros.robots.outputs import OUTPUTS

ROBOT_HELP = 'a name from config/robots, or the path of a YAML file'


@dataclasses.dataclass(frozen=True)
class PolicyArguments:
    """Arguments of a deployment, which are also parameters of policy_node."""

    robot: str = option('fetch', f'arm: {ROBOT_HELP}')
    policy: str = option(
        '', "policy file, or a run's folder; empty: the newest below runs/ of the working folder"
    )
    controller: str = option(
        'policy',
        'policy: the learnt policy; straight_line: the baseline, which moves straight to goals in '
        'the same workspace',
        choices=('policy', 'straight_line'),
    )
    output: str = option(
        'robot',
        "kind of the arm's commands; none: no commands, only markers; robot: as the robot's file "
        'says',
        choices=('robot', *OUTPUTS),
    )
    outside: str = option(
        'reject',
        'goals outside the workspace: reject, or project to the nearest point inside',
        choices=('reject', 'project'),
    )
    speed: float = option(
        0.0, "largest speed of the tool [m/s]; 0: as the robot's file says", low=0.0, high=2.0
    )
