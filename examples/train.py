"""Train a policy for the Fetch arm, load it, and evaluate it on 100 goals."""

import mher_ros

run = mher_ros.train('fetch_reach', preset='precise', seed=0)
print(f'{run.env_steps} environment steps, ended by {run.stop_reason}')

policy = mher_ros.load(run.policy)
print(mher_ros.evaluate(policy, episodes=100))
