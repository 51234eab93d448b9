"""An experiment whose runs take a second, and what is looked at in its results."""

from mher_ros.experiments.experiment import Experiment, Variant
from mher_ros.experiments.jobs import jobs_of
from mher_ros.learning.run.progress import WALL_TIME

TINY = (
    ('agent.hidden', (16,)),
    ('model.hidden', (16,)),
    ('model.warmup_fits', 2),
    ('schedule.warmup_episodes', 1),
    ('schedule.episode_steps', 10),
    ('schedule.updates_per_episode', 1),
    ('schedule.evaluation_goals', 2),
    ('schedule.steps', 40),
    ('task.episode_steps', 10),
)
"""Three evaluations."""
SECONDS_LONG = (*TINY, ('schedule.steps', 600))
"""Long enough to be killed in the middle."""
LONG = (*TINY, ('schedule.steps', 100_000_000))
"""Longer than any test waits."""
FAILING = 'nobody'
"""A recorder that there is not: its run fails where runs are done."""


def tiny_variant(system='mher', changes=TINY, task='point2d_large', recorder=''):
    return Variant(system, task, system, 'paper', tuple(dict(changes).items()), recorder)


def tiny_experiment(*variants, **more):
    return Experiment('tiny', 'Does it run?', variants, **more)


def tiny_jobs(*systems, seeds=(1, 2), **more):
    return jobs_of(tiny_experiment(*(tiny_variant(name, **more) for name in systems)), seeds)


def outcomes(news):
    """Return what came of each job, by system and seed, without times, which no two runs share."""
    return {
        (job.variant.name, job.seed): bits(result)
        for job, result in news
        if isinstance(result, dict)
    }


def bits(result):
    rows = [
        {key: value for key, value in row.items() if key != WALL_TIME} for row in result['rows']
    ]
    return rows, result['record'], result['config']
