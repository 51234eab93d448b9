"""How long one gradient update takes, against one of stable-baselines3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import functools
import time
from typing import Any

from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.filled import EPISODES, filled_agent, TASK, updates_of
from mher_ros.bench.measured import Measured
from mher_ros.bench.sb3 import require_sb3
from mher_ros.bench.timing import ratio_cell, ratio_figures, Samples, take_turns, tell
from mher_ros.experiments.table import Table
from mher_ros.learning.agent import Agent
from mher_ros.tasks import make
import numpy as np
import torch

__all__ = ['ddpg_her', 'measure', 'our_agent', 'ratios']

BATCHES = (64, 256)
HIDDEN = (256, 256, 256)
"""Units of each hidden layer of actor and critic."""
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
    replay has no room to spare. SB3 does not normalise; ours does, and pays for it.
    """
    torch.set_num_threads(1)
    seconds: dict[int, dict[str, list[float]]] = {}
    parts: dict[int, dict[str, list[float]]] = {}
    for batch in BATCHES:
        tell(f'batch {batch}')
        turns = take_turns(
            {
                **{name: updates_of(our_agent(name, batch), UPDATES) for name in ('mher', 'her')},
                SB3: functools.partial(ddpg_her(batch).train, UPDATES, batch),
            },
            rounds,
            time.process_time,
        )
        seconds[batch] = {name: [turn / UPDATES for turn in turns[name]] for name in SYSTEMS}
        parts[batch] = _profile(our_agent('mher', batch), rounds)
    tables = tuple(_table(batch, samples) for batch, samples in seconds.items())
    profiles = tuple(_profile_table(batch, samples) for batch, samples in parts.items())
    samples = {
        'seconds_of_an_update': {f'batch_{batch}': found for batch, found in seconds.items()},
        'seconds_in_parts_of_mher': {f'batch_{batch}': found for batch, found in parts.items()},
    }
    return Measured(ratios(seconds), (*tables, *profiles), samples, ratio_bars(tables))


def ratios(seconds: Mapping[int, Samples]) -> dict[str, Any]:
    """Return the figures, given seconds of updates by batch size and system."""
    found: dict[str, Any] = {}
    for name in ('mher', 'her'):
        for batch, samples in seconds.items():
            found |= ratio_figures(f'{name}_ratio_vs_sb3_batch_{batch}', samples, name, SB3)
    return found


def _table(batch: int, seconds: Samples) -> Table:
    rows = tuple(
        (name, f'{1e3 * np.median(samples):.3g}', ratio_cell(seconds, name, SB3))
        for name, samples in seconds.items()
    )
    header = ('system', 'ms of CPU time, this machine', f'over {SB3}')
    return Table(f'One update, batch {batch}', header, rows)


def _profile_table(batch: int, seconds: Samples) -> Table:
    medians = {name: float(np.median(samples)) for name, samples in seconds.items()}
    whole = sum(medians.values())
    rows = tuple(
        (name, f'{1e3 * value:.3g}', f'{value / whole:.2f}') for name, value in medians.items()
    )
    header = ('part', 'ms of CPU time, this machine', 'share')
    return Table(f'Where one update of mher goes, batch {batch}', header, rows)


def our_agent(algorithm: str, batch: int) -> Agent:
    """Return a learner of ours with networks of the common size, and no room to spare either."""
    steps = make(TASK).interface.episode_steps
    changes = {
        'agent.batch': batch,
        'agent.hidden': HIDDEN,
        'agent.replay': EPISODES * steps,
        'schedule.episode_steps': steps,
    }
    return filled_agent(algorithm, changes)


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
    """Return the seconds an update spends in each part, a mean a round; the agent is used up."""
    watched: dict[str, tuple[Any, str]] = {
        'rows from the replay': (agent.replay, 'sample'),
        'model steps': (agent.dynamics, 'fit'),
        'goals from a rollout': (agent.goal_source, 'propose'),
    }
    spent = dict.fromkeys(watched, 0.0)
    for name, (owner, method) in watched.items():
        setattr(owner, method, _watch(getattr(owner, method), name, spent))
    updates_of(agent, UPDATES)()  # the first take longer
    rest = 'actor, critic, the rest'
    parts: dict[str, list[float]] = {name: [] for name in (*watched, rest)}
    for _ in range(rounds):
        spent.update(dict.fromkeys(watched, 0.0))
        started = time.process_time()
        updates_of(agent, UPDATES)()
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
