"""What `mher bench scale` changes, one thing at a time, and what it times then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import concurrent.futures
import dataclasses
import itertools
import os
import time
from typing import Any

from mher_ros.bench.memory import resident_memory
from mher_ros.interface import TaskInterface
from mher_ros.learning.agent import Agent
from mher_ros.learning.config import make_config, TrainConfig
from mher_ros.learning.replay import Episode, EpisodeReplay
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import episode_seed, Evaluator, PolicyFunction
from mher_ros.tasks.task import Task
import numpy as np

__all__ = ['AXES', 'Axis', 'replay_memory']

TASK, PRESET = 'fetch_reach', 'paper'
EPISODES = 20
"""Made-up episodes in replays whose size is not what is looked at."""
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
    interface, steps = make(TASK).interface, _config().schedule.episode_steps
    episode = _made_up(interface, steps, np.random.default_rng(0))
    before = resident_memory('self')
    replay = EpisodeReplay(
        counts[-1],
        steps,
        *(len(v) for v in (interface.observation, interface.action, interface.goal)),
    )
    taken = {}
    for count in counts:
        for _ in range(count // steps - replay.episodes_held):
            replay.add(episode)
        taken[count] = resident_memory('self') - before
    return taken


def _update_with(key: str) -> Callable[[int], tuple[Subject, int]]:
    """Return how to prepare updates under values of an option."""
    return lambda value: _updates_of(_agent({key: value}))


def _update_after(transitions: int) -> tuple[Subject, int]:
    """Prepare updates from a replay that holds so many transitions."""
    agent, steps = _agent({}), _config().schedule.episode_steps
    episode = _made_up(agent.interface, steps, np.random.default_rng(1))
    for _ in range(transitions // steps - EPISODES):
        agent.replay.add(episode)
    return _updates_of(agent)


def _updates_of(agent: Agent) -> tuple[Subject, int]:
    def run() -> None:
        for _ in range(UPDATES):
            agent.update()

    return run, UPDATES


def _evaluation(goals: int) -> tuple[Subject, int]:
    """Prepare an evaluation, as after each epoch of training."""
    options = task_class(TASK).default_options
    evaluator = Evaluator(TASK, dataclasses.replace(options, episode_steps=EVALUATION_STEPS))
    policy = _agent({}).policy_function()
    seeds = [episode_seed(0, index) for index in range(goals)]
    return lambda: evaluator.run(policy, seeds), 1


def _steps_of(updates_per_episode: int) -> Callable[[int], tuple[Subject, int]]:
    """Return how to prepare steps of several arms, with updates after each episode of each."""

    def prepare(arms: int) -> tuple[Subject, int]:
        agent = _agent({'schedule.episode_steps': EPISODE_STEPS})
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


def _agent(changes: dict[str, Any]) -> Agent:
    """Return a learner with a few episodes in its replay."""
    config = _config(changes)
    agent = Agent(make(TASK).interface, config)
    rng = np.random.default_rng(0)
    for _ in range(EPISODES):
        agent.store(_made_up(agent.interface, config.schedule.episode_steps, rng))
    return agent


def _config(changes: dict[str, Any] | None = None) -> TrainConfig:
    return make_config(TASK, 'mher', PRESET, changes=changes)


def _made_up(interface: TaskInterface, steps: int, rng: np.random.Generator) -> Episode:
    """Return noise in the shape of an episode: the networks' work is the same."""
    return Episode(
        rng.standard_normal((steps + 1, len(interface.observation))),
        rng.uniform(-1.0, 1.0, (steps, len(interface.action))).astype(np.float32),
        rng.standard_normal(len(interface.goal)),
    )


UPDATE = 'of CPU time an update'
SIDE_BY_SIDE = (
    'A training run leads one arm. This is what N of them, on threads of one process and with one '
    'call of the policy for all arms of a thread, make of the time a step takes.'
)
AXES = {
    'replay': Axis(
        'Transitions in the replay',
        'transitions',
        UPDATE,
        'update_ratio_by_transitions',
        (10_000, 100_000, 1_000_000),
        10_000,
        _update_after,
    ),
    'members': Axis(
        'Ensemble',
        'members',
        UPDATE,
        'update_ratio_by_members',
        (1, 3, 5, 10),
        3,
        _update_with('model.members'),
    ),
    'rollout': Axis(
        'Model rollout',
        'steps',
        UPDATE,
        'update_ratio_by_rollout_steps',
        (0, 1, 3, 5, 7, 15),
        5,
        _update_with('relabel.steps'),
    ),
    'batch': Axis(
        'Batch',
        'transitions',
        UPDATE,
        'update_ratio_by_batch',
        (16, 32, 64, 128, 256, 512, 1024),
        64,
        _update_with('agent.batch'),
    ),
    'goals': Axis(
        'Evaluation',
        'goals',
        'an evaluation',
        'evaluation_ratio_by_goals',
        (25, 50, 100, 200, 400, 800),
        100,
        _evaluation,
        time.perf_counter,
        every=10,
        explained=f'On all cores, {EVALUATION_STEPS} steps for each goal.',
    ),
    'collecting': Axis(
        'Arms side by side, collecting',
        'arms',
        'a step',
        'collecting_ratio_by_arms',
        (1, 2, 4, 8, 16),
        1,
        _steps_of(updates_per_episode=0),
        time.perf_counter,
        explained=SIDE_BY_SIDE,
    ),
    'training': Axis(
        'Arms side by side, with updates',
        'arms',
        'a step',
        'training_ratio_by_arms',
        (1, 2, 4, 8, 16),
        1,
        _steps_of(updates_per_episode=1),
        time.perf_counter,
        explained=f'The same, with one update for each {EPISODE_STEPS} steps, as in the paper.',
    ),
}
