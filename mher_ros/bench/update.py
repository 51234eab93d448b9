"""How long one gradient update takes, against one of stable-baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import functools
import time
from typing import Any

from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.measured import Measured
from mher_ros.bench.sb3 import require_sb3
from mher_ros.bench.timing import median_ratio, take_turns, tell
from mher_ros.experiments.table import Table
from mher_ros.learning.agent import Agent
from mher_ros.learning.config import make_config
from mher_ros.learning.replay import Episode
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed
from mher_ros.tasks.task import Task
import numpy as np
import torch

__all__ = ['ddpg_her', 'filled_agent', 'measure', 'random_episode', 'ratios']

TASK, PRESET = 'fetch_reach', 'paper'
BATCHES = (64, 256)
HIDDEN = (256, 256, 256)
"""Units of each hidden layer of actor and critic."""
EPISODES = 20
"""Random episodes in every replay."""
UPDATES = 10
"""Updates that one of them does before it is the other's turn."""
SB3 = 'SB3 DDPG+HER'
SYSTEMS = ('mher', 'her', SB3)


def measure(rounds: int) -> Measured:
    """
    Time one update of mher, of her and of stable-baselines3's DDPG+HER, in CPU time of one thread.

    All have actor and critic of the same size, the same batch, and a replay of as many random
    steps of the same task. Their other settings are their own: of ours the paper's, of SB3 the
    defaults, with 4 of 5 goals relabelled in all. SB3 is spared what would slow it down: its
    replay has no room to spare, and nothing is normalised, as ours is.
    """
    torch.set_num_threads(1)
    task = make(TASK)
    episodes = [random_episode(task, index) for index in range(EPISODES)]
    seconds: dict[int, dict[str, list[float]]] = {}
    parts: dict[int, dict[str, list[float]]] = {}
    for batch in BATCHES:
        tell(f'batch {batch}')
        agents = {name: filled_agent(task, name, batch, episodes) for name in ('mher', 'her')}
        turns = take_turns(
            {
                **{name: _updates_of(agent) for name, agent in agents.items()},
                SB3: functools.partial(ddpg_her(batch).train, UPDATES, batch),
            },
            rounds,
            time.process_time,
        )
        seconds[batch] = {name: [turn / UPDATES for turn in turns[name]] for name in SYSTEMS}
        parts[batch] = _profile(agents['mher'], rounds)
    tables = tuple(_table(batch, samples) for batch, samples in seconds.items())
    profiles = tuple(_profile_table(batch, samples) for batch, samples in parts.items())
    samples = {
        'seconds_of_an_update': {f'batch_{batch}': found for batch, found in seconds.items()},
        'seconds_in_parts_of_mher': {f'batch_{batch}': found for batch, found in parts.items()},
    }
    return Measured(ratios(seconds), (*tables, *profiles), samples, ratio_bars(tables))


def ratios(seconds: Mapping[int, Mapping[str, list[float]]]) -> dict[str, float]:
    """Return the figures, given seconds of updates by batch size and system."""
    return {
        f'{name}_ratio_vs_sb3_batch_{batch}': median_ratio(samples, name, SB3)
        for name in ('mher', 'her')
        for batch, samples in seconds.items()
    }


def _table(batch: int, seconds: Mapping[str, list[float]]) -> Table:
    rows = tuple(
        (name, f'{1e3 * np.median(samples):.3g}', f'{median_ratio(seconds, name, SB3):.2f}')
        for name, samples in seconds.items()
    )
    header = ('system', 'ms of CPU time, this machine', 'ratio')
    return Table(f'One update, batch {batch}', header, rows)


def _profile_table(batch: int, seconds: Mapping[str, list[float]]) -> Table:
    medians = {name: float(np.median(samples)) for name, samples in seconds.items()}
    whole = sum(medians.values())
    rows = tuple(
        (name, f'{1e3 * value:.3g}', f'{value / whole:.2f}') for name, value in medians.items()
    )
    header = ('part', 'ms of CPU time, this machine', 'share')
    return Table(f'Where one update of mher goes, batch {batch}', header, rows)


def random_episode(task: Task, index: int) -> Episode:
    """Return an episode of random actions, the same for the same index."""
    steps = task.interface.episode_steps
    shape = steps, len(task.interface.action)
    actions = np.random.default_rng(index).uniform(-1, 1, shape).astype(np.float32)
    start, _ = task.reset(seed=episode_seed(0, index))
    observations = [start['observation'], *(task.step(a)[0]['observation'] for a in actions)]
    return Episode(np.stack(observations), actions, start['desired_goal'])


def filled_agent(task: Task, algorithm: str, batch: int, episodes: list[Episode]) -> Agent:
    """Return a learner with the episodes in its replay."""
    changes = {
        'agent.batch': batch,
        'agent.hidden': HIDDEN,
        'agent.replay': EPISODES * task.interface.episode_steps,
        'schedule.episode_steps': task.interface.episode_steps,
    }
    agent = Agent(task.interface, make_config(TASK, algorithm, PRESET, changes=changes))
    for episode in episodes:
        agent.store(episode)
    return agent


def _updates_of(agent: Agent) -> Callable[[], object]:
    def run() -> None:
        for _ in range(UPDATES):
            agent.update()

    return run


def ddpg_her(batch: int) -> Any:
    """Return stable-baselines3's DDPG+HER after as many random steps as our agents have seen."""
    sb3 = require_sb3()
    task = make(TASK)
    steps = EPISODES * task.interface.episode_steps
    model = sb3.DDPG(
        'MultiInputPolicy',
        task,
        replay_buffer_class=sb3.HerReplayBuffer,
        replay_buffer_kwargs={'n_sampled_goal': 4, 'goal_selection_strategy': 'future'},
        policy_kwargs={'net_arch': list(HIDDEN)},
        buffer_size=steps,
        learning_starts=steps,
        batch_size=batch,
        device='cpu',
        seed=0,
    )
    return model.learn(steps)


def _profile(agent: Agent, rounds: int) -> dict[str, list[float]]:
    """Return the seconds an update spends in each part, a mean a round; changes the agent."""
    watched: dict[str, tuple[Any, str]] = {
        'rows from the replay': (agent.replay, 'sample'),
        'model steps': (agent.dynamics, 'fit'),
        'goals from a rollout': (agent.goal_source, 'propose'),
    }
    spent = dict.fromkeys(watched, 0.0)
    for name, (owner, method) in watched.items():
        setattr(owner, method, _watch(getattr(owner, method), name, spent))
    rest = 'actor, critic, the rest'
    parts: dict[str, list[float]] = {name: [] for name in (*watched, rest)}
    for _ in range(rounds):
        spent.update(dict.fromkeys(watched, 0.0))
        started = time.process_time()
        _updates_of(agent)()
        whole = time.process_time() - started
        for name, value in {**spent, rest: whole - sum(spent.values())}.items():
            parts[name].append(value / UPDATES)
    return parts


def _watch(function: Callable[..., Any], name: str, spent: dict[str, float]) -> Callable[..., Any]:
    def watched(*arguments: Any, **named: Any) -> Any:
        started = time.process_time()
        found = function(*arguments, **named)
        spent[name] += time.process_time() - started
        return found

    return watched
