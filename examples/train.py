"""Train Fetch to reach with its joints, load the policy, and evaluate it on 100 goals."""

import mher_ros

run = mher_ros.train('reach', options={'task.robot': 'fetch'}, seed=0)
print(f'{run.env_steps} environment steps, ended by {run.stop_reason}')

policy = mher_ros.load(run.policy)
print(mher_ros.evaluate(policy, episodes=100))
