"""Second numbers of the seeds that a run makes of its own: what is random for one thing alone."""

from __future__ import annotations

__all__ = ['ACTING', 'LOOKING', 'PLANS', 'RARITY', 'RECORDS', 'TEST', 'TRAINING']

ACTING = 0
"""Exploration, batches, new goals: the learner's own generator."""
TRAINING, TEST = 1, 2
"""Resets of training and of test episodes, which share none."""
LOOKING = 3
"""Looks at the model that must change nothing in the run."""
PLANS = 4
"""Plans that are evaluated."""
RARITY = 5
"""Where the mixture that tells rare paths begins."""
RECORDS = 7
"""What an experiment records beside a run."""
