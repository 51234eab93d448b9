"""
Send an arm's tool to goals, one after the other, and tell how near to them it gets.

Start an arm first, for example ``mher up deploy_sim``.
"""

import argparse
import os
import sys

from mher_ros.errors import MherError
from mher_ros.ros.goal_client import GoalClient
import rclpy

FOR_FETCH = [1.20, 0.65, 0.50, 1.45, 0.85, 0.65, 1.35, 0.75, 0.55]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        'numbers',
        metavar='X Y Z',
        nargs='*',
        type=float,
        default=FOR_FETCH,
        help="goals in the arm's base frame [m], three numbers each; none: three for Fetch",
    )
    parser.add_argument('--timeout', type=float, default=20.0, help='for each goal [s]')
    chosen = parser.parse_args()
    if len(chosen.numbers) % 3:
        parser.error(f'three numbers for each goal are expected, got {len(chosen.numbers)}')
    goals = [chosen.numbers[first : first + 3] for first in range(0, len(chosen.numbers), 3)]

    # As `mher up` has it: only arms of this machine, unless it is set.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    rclpy.init()
    client = GoalClient(frame='')  # that of the arm's base
    try:
        client.wait_until_ready()
        missed = 0
        for goal in goals:
            client.go_to(goal)
            reached = client.wait_until_reached(chosen.timeout)
            client.spin(1.0)  # it is near; let it come to rest
            print(f'{goal}: {outcome(client, reached)}', flush=True)
            missed += not reached
        return 1 if missed else 0
    except MherError as error:
        sys.exit(str(error))
    finally:
        client.close()
        rclpy.try_shutdown()


def outcome(client: GoalClient, reached: bool) -> str:
    if client.goal is None:
        return 'refused; the log of policy_node says why'
    return f'{"reached" if reached else "not reached"}, {1000 * client.distance:.1f} mm away'


if __name__ == '__main__':
    sys.exit(main())
