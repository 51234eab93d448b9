"""Compare HER's ``future`` goals with a relabelling strategy of your own."""

import mher_ros
from mher_ros.learning.relabel.strategies import GoalStrategy


class NextGoals(GoalStrategy):
    """The goal that the transition itself achieved, one step later."""

    def propose(self, batch, rng, wanted=None):
        """Return goals (B, m) for the transitions of a batch."""
        return self.interface.achieved_goal(batch.next_observations)


if __name__ == '__main__':
    mher_ros.register_relabelling('next', NextGoals)
    for goals in ('future', 'next'):
        run = mher_ros.train('point2d_large', 'her', steps=2000, options={'relabel.goals': goals})
        print(f'{goals}: success {run.success_rate:.2f} after {run.env_steps} environment steps')
