"""How long one gradient update takes, against one of stable-baselines3."""

from collections.abc import Mapping
import functools
from typing import Any

from mher_ros.bench.algorithms import sb3_model, TASK
from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress, ratio_cell, ratio_figures, Samples, take_turns
from mher_ros.experiments.tables import Table
from mher_ros.learning.config import make_config
from mher_ros.learning.core.agent import Agent
from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed
import numpy as np
import torch

PRESET = 'paper'
EPISODES = 20  # random episodes in every replay buffer
BATCHES = (64, 256)
HIDDEN = (256, 256, 256)  # units of each hidden layer of actor and critic
UPDATES = 10  # updates of one algorithm before the next one's turn
OURS, SB3 = ('mher', 'her'), 'SB3 DDPG+HER'


def measure(rounds: int) -> Result:
    """Time one update of mher, of her and of SB3's DDPG+HER, in CPU time of one thread."""
    # All have actor and critic of the same size, the same batch, and as many random steps of the
    # same task in their replay buffer, which is full: a larger one would slow SB3 down. Other
    # settings are those of the paper for our algorithms, and the defaults of SB3, with 4 of 5
    # goals relabelled in all. Ours normalise their inputs, which takes time; SB3 does not.
    torch.set_num_threads(1)
    seconds: dict[int, dict[str, list[float]]] = {}
    for batch in BATCHES:
        log_progress(f'batch {batch}')
        turns = take_turns(
            {
                **{name: functools.partial(_update, our_agent(name, batch)) for name in OURS},
                SB3: functools.partial(ddpg_her(batch).train, UPDATES, batch),
            },
            rounds,
        )
        seconds[batch] = {
            name: [turn / UPDATES for turn in values] for name, values in turns.items()
        }
    tables = tuple(_table(batch, samples) for batch, samples in seconds.items())
    by_batch = {f'batch_{batch}': found for batch, found in seconds.items()}
    return Result(ratios(seconds), tables, {'seconds_of_an_update': by_batch})


def ratios(seconds: Mapping[int, Samples]) -> dict[str, Any]:
    """Return the figures, given the seconds of updates by batch size and algorithm."""
    found: dict[str, Any] = {}
    for name in OURS:
        for batch, samples in seconds.items():
            found |= ratio_figures(f'{name}_ratio_vs_sb3_batch_{batch}', samples, name, SB3)
    return found


def _table(batch: int, seconds: Samples) -> Table:
    rows = tuple(
        (name, f'{1e3 * np.median(samples):.3g}', ratio_cell(seconds, name, SB3))
        for name, samples in seconds.items()
    )
    header = ('algorithm', 'ms of CPU time, this machine', f'over {SB3}')
    return Table(f'One update, batch {batch}', header, rows)


def our_agent(algorithm: str, batch: int) -> Agent:
    """Return one of our agents after random steps that fill its replay buffer."""
    task = make(TASK)
    steps = task.interface.episode_steps
    changes = {
        'agent.batch': batch,
        'agent.hidden': HIDDEN,
        'agent.replay': EPISODES * steps,
        'schedule.episode_steps': steps,
    }
    agent = Agent(task.interface, make_config(TASK, algorithm, PRESET, changes=changes))
    for index in range(EPISODES):
        shape = steps, len(task.interface.action)
        actions = np.random.default_rng(index).uniform(-1, 1, shape).astype(np.float32)
        start, _ = task.reset(seed=episode_seed(0, index))
        seen = [start['observation'], *(task.step(a)[0]['observation'] for a in actions)]
        agent.store(Episode(np.stack(seen), actions, start['desired_goal']))
    return agent


def ddpg_her(batch: int) -> Any:
    """Return stable-baselines3's DDPG+HER after as many random steps as our agents."""
    task = make(TASK)
    steps = EPISODES * task.interface.episode_steps
    settings = {'buffer_size': steps, 'learning_starts': steps, 'batch_size': batch}
    return sb3_model('DDPG', task, HIDDEN, seed=0, **settings).learn(steps)


def _update(agent: Agent) -> None:
    for _ in range(UPDATES):
        agent.update()
