"""Train MHER on a Gymnasium GoalEnv of your own."""

import gymnasium
from gymnasium import spaces
import mher_ros
import numpy as np


class Drone(gymnasium.Env):
    """A point mass in the plane. The action is an acceleration, the goal is a position."""

    def __init__(self):
        sizes = {'observation': 4, 'achieved_goal': 2, 'desired_goal': 2}
        self.observation_space = spaces.Dict(
            {name: spaces.Box(-1.0, 1.0, (size,)) for name, size in sizes.items()}
        )
        self.action_space = spaces.Box(-1.0, 1.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.goal = self.np_random.uniform(-1.0, 1.0, (2, 2))
        self.velocity = np.zeros(2)
        return self._observe(), {}

    def step(self, action):
        self.velocity = 0.5 * self.velocity + 0.2 * action
        self.position = np.clip(self.position + self.velocity, -1.0, 1.0)
        reward = self.compute_reward(self.position, self.goal, {})
        return self._observe(), float(reward), False, False, {}

    def compute_reward(self, achieved_goal, desired_goal, info):
        """Return 0 within 0.1 of the goal and -1 elsewhere, also for batches (B, 2)."""
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.1).astype(float)

    def _observe(self):
        return {
            'observation': np.concatenate((self.position, self.velocity)),
            'achieved_goal': self.position,
            'desired_goal': self.goal,
        }


if __name__ == '__main__':
    run = mher_ros.train(Drone, steps=2000)
    policy = mher_ros.load(run.policy)
    print(mher_ros.evaluate(policy, episodes=100))
