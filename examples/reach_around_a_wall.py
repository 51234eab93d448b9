"""
Train Fetch to reach over a wall, and compare the policy with a straight line, in one process.

It takes some minutes. ``mher up deploy_sim robot:=fetch_wall policy:=runs/...`` runs the policy
over ROS topics.
"""

import mher_ros
from mher_ros.simulation.straight_line import evaluate_straight_line

WALL = {'task.robot': 'fetch_wall'}  # or the path of your own robot file, with a `scene`

if __name__ == '__main__':
    run = mher_ros.train('reach', seed=0, steps=4000, options=WALL)
    print(f'{run.env_steps} environment steps, ended by {run.stop_reason}')

    task = mher_ros.make('reach', robot='fetch_wall')
    line = evaluate_straight_line(task, seeds=range(100))
    print(f'straight line: {100.0 * line.success_rate:.0f} % of 100 goals')

    policy = mher_ros.load(run.policy)
    print(f'policy: {mher_ros.evaluate(policy, episodes=100)}')
