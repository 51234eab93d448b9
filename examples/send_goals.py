"""
Send goals to an arm, one after the other, and print the distance of the tool from each.

Start an arm first, for example ``mher up deploy_sim``. If the arm has a namespace, add
``--ros-args -r __ns:=/left``.
"""

import argparse
import os
import sys

from mher_ros.errors import MherError
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.deploy.goal_client import GoalClient
import rclpy
from rclpy.utilities import remove_ros_args

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
    parser.add_argument('--timeout', type=float, default=20.0, help='time limit for each goal [s]')
    chosen = parser.parse_args(remove_ros_args(sys.argv)[1:])
    if len(chosen.numbers) % 3:
        parser.error(f'three numbers for each goal are expected, got {len(chosen.numbers)}')
    goals = [chosen.numbers[first : first + 3] for first in range(0, len(chosen.numbers), 3)]

    # As `mher up` does: only arms of this machine, unless the variable is set.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    rclpy.init()
    client = GoalClient(frame='')  # '': the base frame of the arm
    try:
        client.wait_until_ready()
        missed = 0
        for goal in goals:
            reached, text = send(client, goal, chosen.timeout)
            print(f'{goal}: {text}', flush=True)
            missed += not reached
        return 1 if missed else 0
    except MherError as error:
        sys.exit(str(error))
    finally:
        client.close()
        rclpy.try_shutdown()


def send(client: GoalClient, goal: list[float], timeout: float) -> tuple[bool, str]:
    """Return whether the tool reached a goal (3,) [m] within ``timeout`` [s], and a sentence."""
    try:
        client.go_to(goal)
        reached = client.wait_until_reached(timeout)
    except GoalError as error:  # error.code is for programs
        return False, str(error)
    client.spin(1.0)  # the tool is within the threshold; wait until it is at rest
    return reached, f'{"" if reached else "not "}reached, {1000 * client.distance:.1f} mm away'


if __name__ == '__main__':
    sys.exit(main())
