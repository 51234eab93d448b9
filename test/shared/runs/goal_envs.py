"""GoalEnvs and a relabelling strategy as a user of the package would write them."""

import gymnasium
from gymnasium import spaces
from mher_ros.learning.relabel.strategies import GoalStrategy
import numpy as np


class Point(gymnasium.Env):
    """A point in the plane that is moved by up to 0.2 per step."""

    def __init__(self):
        parts = {'observation': 2, 'achieved_goal': 2, 'desired_goal': 2}
        self.observation_space = spaces.Dict(
            {key: spaces.Box(-10.0, 10.0, (size,), np.float64) for key, size in parts.items()}
        )
        self.action_space = spaces.Box(-0.2, 0.2, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal = self.np_random.uniform(-1.0, 1.0, (2, 2))
        return self.look(), {}

    def step(self, action):
        self.place = np.clip(self.place + action, -1.0, 1.0)
        reward = float(self.compute_reward(self.place, self.goal, {}))
        return self.look(), reward, False, False, {}

    def look(self):
        return {
            'observation': self.place.copy(),
            'achieved_goal': self.place.copy(),
            'desired_goal': self.goal.copy(),
        }

    def compute_reward(self, achieved, desired, info):
        return -(np.linalg.norm(achieved - desired, axis=-1) > 0.2).astype(np.float64)


class Hidden(Point):
    """One that observes twice its place, which is no achieved goal."""

    def look(self):
        return {**super().look(), 'observation': 2.0 * self.place}


class NearGoals(GoalStrategy):
    """The goal achieved by the transition itself."""

    proposed = 0

    def propose(self, batch, rng, wanted=None):
        NearGoals.proposed += 1
        return self.interface.achieved_goal(batch.next_observations)
