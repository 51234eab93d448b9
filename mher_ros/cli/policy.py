"""``mher evaluate``, ``export`` and ``robot``: policy files and robot files."""

import argparse
import json
from pathlib import Path
import sys
from typing import TYPE_CHECKING

from mher_ros.cli.arguments import (
    argument,
    Command,
    FAILED,
    finite,
    JSON,
    option,
    positive,
    seed,
    WORKERS,
)
from mher_ros.registry import trust
from mher_ros.tasks.rendering import choose_backend

if TYPE_CHECKING:
    from mher_ros.interface import TaskInterface
    from mher_ros.robots.robot import Robot
    from mher_ros.simulation.stopping import StoppingReport

ROBOT_TASK = 'fetch_reach'
HEAVIEST = 100.0  # payload of a simulated stop [kg]
POLICY = argument('policy', metavar='POLICY.onnx')
ENV = argument(
    '--env', 'import this env of your own, on which the policy was trained', metavar='MODULE:CLASS'
)


def _evaluate(chosen: argparse.Namespace) -> None:
    from mher_ros.policy import load
    from mher_ros.policy.evaluation import (
        evaluate_policy,
        evaluation_lines,
        evaluation_seeds,
        figures,
        make_task,
    )

    trust(chosen.env)
    policy = load(Path(chosen.policy))
    if chosen.controller == 'policy':
        result = evaluate_policy(policy, chosen.episodes, chosen.seed, chosen.workers)
    else:
        from mher_ros.simulation.straight_line import evaluate_straight_line

        task, seeds = make_task(policy), evaluation_seeds(chosen.seed, chosen.episodes)
        result = figures(task, evaluate_straight_line(task, seeds), chosen.seed)
    print(json.dumps(result) if chosen.json else '\n'.join(evaluation_lines(result)))


def _export(chosen: argparse.Namespace) -> None:
    from mher_ros.learning.run.session import export_run

    trust(chosen.env)
    print(export_run(Path(chosen.run), Path(chosen.out) if chosen.out else None))


def _payload(text: str) -> float:
    mass = finite(text)
    if not 0.0 <= mass <= HEAVIEST:
        raise argparse.ArgumentTypeError(f'takes 0 to {HEAVIEST:g} kg, got {text!r}')
    return mass


def _check_robot(chosen: argparse.Namespace) -> int:
    choose_backend()
    from mher_ros.learning.config import make_config
    from mher_ros.policy.onnx_policy import load
    from mher_ros.robots.robot import load_robot
    from mher_ros.simulation.robot_check import draw_check, RobotCheck
    from mher_ros.tasks import make

    robot = load_robot(chosen.robot)
    if chosen.policy:
        interface = load(chosen.policy).interface
    else:
        task = robot.simulation_task or ROBOT_TASK
        interface = make(task, make_config(task).task).interface
    check = RobotCheck(robot, interface, Path(chosen.urdf) if chosen.urdf else None)
    result, problems = check.as_dict(), check.problems
    if not chosen.json:
        print('\n'.join(check.lines()), flush=True)
    if chosen.stopping is not None:
        report = _measure_stops(robot, interface, chosen)
        result['stopping'], problems = report.as_dict(), problems + report.problems
    if chosen.picture:
        draw_check(check, Path(chosen.picture))
        result['picture'] = chosen.picture
        if not chosen.json:
            print(f'\nwritten: {chosen.picture}')
    if chosen.json:
        print(json.dumps(result))
    return FAILED if problems else 0


def _measure_stops(
    robot: 'Robot', interface: 'TaskInterface', chosen: argparse.Namespace
) -> 'StoppingReport':
    """Simulate the stops of an arm; print each row as soon as it is known."""
    from mher_ros.simulation.stopping import (
        HEADER,
        loads_with,
        SHARES,
        stop_rows,
        StoppingReport,
    )

    loads = loads_with(chosen.stopping)
    rows = []
    if not chosen.json:
        print('\n' + HEADER, flush=True)
    for row in stop_rows(robot, interface, loads):
        rows.append(row)
        if chosen.json:
            print(f'{len(rows)} of {len(loads) * len(SHARES)}', file=sys.stderr, flush=True)
        else:
            print(row.line(), flush=True)
    report = StoppingReport(robot, rows)
    if not chosen.json:
        print('\n'.join(('', *report.lines())))
    return report


EVALUATE = Command(
    'evaluate a policy file on random goals',
    _evaluate,
    (
        POLICY,
        option(
            '--controller',
            'policy',
            'the policy, or the baseline straight_line on the same goals (task reach)',
            choices=('policy', 'straight_line'),
        ),
        option('--episodes', 100, 'episodes, one goal each', type=positive),
        option('--seed', 0, 'seed of the goals', type=seed),
        WORKERS,
        ENV,
        JSON,
    ),
)
EXPORT = Command(
    "write policy.onnx from a run's checkpoint",
    _export,
    (
        argument('run', 'folder of the run', metavar='RUN'),
        argument('--out', 'file (default: policy.onnx in that folder)', metavar='FILE'),
        ENV,
    ),
)
CHECK = Command(
    "check an arm's robot file: limits, home position, contacts, and the reachable part of the "
    'workspace',
    _check_robot,
    (
        argument('robot', 'YAML file, or a name in config/robots', metavar='ROBOT'),
        argument('--urdf', 'model to check instead of simulation_model', metavar='FILE'),
        argument(
            '--policy',
            "check this policy's workspace (default: that of the arm's own task, otherwise of "
            f'{ROBOT_TASK})',
            metavar='FILE',
        ),
        argument(
            '--stopping',
            'also simulate how far the moving arm moves on after a stop, and how exactly it '
            'follows its set-points (takes 1 min), with a payload of KG for which its drives are '
            'not tuned (default 0)',
            nargs='?',
            type=_payload,
            const=0.0,
            metavar='KG',
        ),
        argument('--picture', 'write a PNG of the arm and the workspace', metavar='FILE'),
        JSON,
    ),
)
ROBOT = CHECK._replace(arguments=(), commands={'check': CHECK}, metavar='ACTION')
