"""What `mher bench scale` changes, one thing at a time, and what it times then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import concurrent.futures
import dataclasses
import itertools
import os
import time

from mher_ros.bench.filled import EPISODES, filled_agent, PRESET, random_episodes, TASK, updates_of
from mher_ros.bench.memory import resident_memory
from mher_ros.learning.config import make_config
from mher_ros.learning.replay import Episode, EpisodeReplay
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import episode_seed, Evaluator, PolicyFunction
from mher_ros.tasks.task import Task
import numpy as np

__all__ = ['AXES', 'Axis', 'replay_memory']

STEPS = make_config(TASK, 'mher', PRESET).schedule.episode_steps
"""Steps of an episode in a replay."""
UPDATES = 5
"""Updates of one learner before it is the next one's turn."""
EVALUATION_STEPS = 25
"""Steps for each goal of the evaluations timed: how many goals there are is what counts here."""
EPISODE_STEPS = 20
"""Steps of the episodes that several arms collect; the paper has an update for so many."""

Subject = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Axis:
    """One choice, the values it is tried at, and what is timed."""

    title: str
    choice: str
    """Heads the column of values."""
    timed: str
    """What takes the time, and of which clock."""
    figure: str
    """Key of the ratios."""
    values: tuple[int, ...]
    default: int
    """What others are compared with."""
    prepare: Callable[[int], tuple[Subject, int]]
    """Given a value: what to call, and how many of the things timed a call does."""
    clock: Callable[[], float] = time.process_time
    every: int = 1
    """Rounds asked for to one that is done: those of some axes take long."""
    explained: str = ''


def replay_memory(counts: Sequence[int]) -> dict[int, float]:
    """Return what a replay has taken once it holds so many transitions, an ascending list [MB]."""
    interface, episode = make(TASK).interface, random_episodes(STEPS)[0]
    before = resident_memory('self')
    replay = EpisodeReplay(
        counts[-1],
        STEPS,
        *(len(v) for v in (interface.observation, interface.action, interface.goal)),
    )
    taken = {}
    for count in counts:
        for _ in range(count // STEPS - replay.episodes_held):
            replay.add(episode)
        taken[count] = resident_memory('self') - before
    return taken


def _update_with(key: str) -> Callable[[int], tuple[Subject, int]]:
    """Return how to prepare updates under values of an option."""
    return lambda value: (updates_of(filled_agent(changes={key: value}), UPDATES), UPDATES)


def _update_after(transitions: int) -> tuple[Subject, int]:
    """Prepare updates from a replay that holds so many transitions."""
    agent = filled_agent()
    episode = random_episodes(STEPS)[0]
    for _ in range(transitions // STEPS - EPISODES):
        agent.replay.add(episode)
    return updates_of(agent, UPDATES), UPDATES


def _evaluation(goals: int) -> tuple[Subject, int]:
    """Prepare an evaluation, as after each epoch of training."""
    options = task_class(TASK).default_options
    evaluator = Evaluator(TASK, dataclasses.replace(options, episode_steps=EVALUATION_STEPS))
    policy = filled_agent().policy_function()
    seeds = [episode_seed(0, index) for index in range(goals)]
    return lambda: evaluator.run(policy, seeds), 1


def _steps_of(updates_per_episode: int) -> Callable[[int], tuple[Subject, int]]:
    """Return how to prepare steps of several arms, with updates after each episode of each."""

    def prepare(arms: int) -> tuple[Subject, int]:
        agent = filled_agent(changes={'schedule.episode_steps': EPISODE_STEPS})
        policy, tasks = agent.policy_function(), [make(TASK) for _ in range(arms)]
        cores = min(arms, len(os.sched_getaffinity(0)))
        shares = [tasks[core::cores] for core in range(cores)]

        def run() -> None:
            with concurrent.futures.ThreadPoolExecutor(cores) as pool:
                collected = list(pool.map(lambda share: _collect(share, policy), shares))
            for episode in itertools.chain(*collected):
                agent.store(episode)
            for _ in range(arms * updates_per_episode):
                agent.update()

        return run, arms * EPISODE_STEPS

    return prepare


def _collect(tasks: list[Task], policy: PolicyFunction) -> list[Episode]:
    """Return an episode of each task, with one call of the policy for each step of all."""
    starts = [task.reset(seed=index)[0] for index, task in enumerate(tasks)]
    goals = np.stack([start['desired_goal'] for start in starts])
    observations = [np.stack([start['observation'] for start in starts])]
    actions = []
    for _ in range(EPISODE_STEPS):
        actions.append(policy(observations[-1], goals))
        observations.append(type(tasks[0]).step_together(tasks, actions[-1]))
    seen, done = np.stack(observations, 1), np.stack(actions, 1)
    return [Episode(*episode) for episode in zip(seen, done, goals, strict=True)]


UPDATE = 'of CPU time an update'
SIDE_BY_SIDE = (
    'What N arms would bring: a training run leads one. This is the time a step takes with N of '
    'them on threads of one process, and one call of the policy for all arms of a thread.'
)


def _arms(name: str, updates_per_episode: int, explained: str) -> Axis:
    what = 'with updates' if updates_per_episode else 'collecting'
    return Axis(
        title=f'N arms, {what} (not built in)',
        choice='arms',
        timed='a step',
        figure=f'{name}_ratio_by_arms',
        values=(1, 2, 4, 8, 16),
        default=1,
        prepare=_steps_of(updates_per_episode=updates_per_episode),
        clock=time.perf_counter,
        explained=explained,
    )


AXES = {
    'replay': Axis(
        title='Transitions in the replay',
        choice='transitions',
        timed=UPDATE,
        figure='update_ratio_by_transitions',
        values=(10_000, 100_000, 1_000_000),
        default=10_000,
        prepare=_update_after,
    ),
    'members': Axis(
        title='Ensemble',
        choice='members',
        timed=UPDATE,
        figure='update_ratio_by_members',
        values=(1, 3, 5, 10),
        default=3,
        prepare=_update_with('model.members'),
    ),
    'rollout': Axis(
        title='Model rollout',
        choice='steps',
        timed=UPDATE,
        figure='update_ratio_by_rollout_steps',
        values=(0, 1, 3, 5, 7, 15),
        default=5,
        prepare=_update_with('relabel.steps'),
    ),
    'batch': Axis(
        title='Batch',
        choice='transitions',
        timed=UPDATE,
        figure='update_ratio_by_batch',
        values=(16, 32, 64, 128, 256, 512, 1024),
        default=64,
        prepare=_update_with('agent.batch'),
    ),
    'goals': Axis(
        title='Evaluation',
        choice='goals',
        timed='an evaluation',
        figure='evaluation_ratio_by_goals',
        values=(25, 50, 100, 200, 400, 800),
        default=100,
        prepare=_evaluation,
        clock=time.perf_counter,
        every=4,
        explained=f'On all cores, {EVALUATION_STEPS} steps for each goal.',
    ),
    'collecting': _arms('collecting', 0, SIDE_BY_SIDE),
    'training': _arms(
        'training',
        1,
        f'The same, with one update for each {EPISODE_STEPS} steps, as in the paper.',
    ),
}
