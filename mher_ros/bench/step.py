"""How fast fetch_reach steps against FetchReach-v4, and reach on Fetch against fetch_reach."""

from collections.abc import Sequence
from functools import partial
import time
from typing import Any

from mher_ros.bench.result import Result
from mher_ros.bench.timing import ratio_cell, ratio_figures, Samples, take_turns
from mher_ros.experiments.tables import Table
from mher_ros.interface import Vector
from mher_ros.options import override
from mher_ros.simulation.reach import Reach
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed, Evaluator
import numpy as np
from numpy.typing import NDArray

STEPS, REACH_STEPS, GOALS = 1000, 200, 100
TASK, BASELINE = 'fetch_reach', 'FetchReach-v4'
TASK_LOOP, BASELINE_LOOP = f'{TASK} in a loop', f'{BASELINE} in a loop'
REACH, RANDOM = 'reach on fetch', 'reach on fetch, randomised'
PLANTS = 'Steps with drives, forces and the safety filter, beside the mocap arm of fetch_reach'
LENGTH = 50  # steps of an episode of the baseline


def measure(rounds: int) -> Result:
    """Time steps of fetch_reach, of FetchReach-v4 and of reach, and evaluations of 100 goals."""
    # Steps are in CPU time. Evaluations are in wall time: the loop tries one goal after the other,
    # as most evaluation code does.
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    ours = make(TASK)
    baseline = gymnasium.make(BASELINE, max_episode_steps=10**9).unwrapped
    envs: dict[str, Any] = {TASK: ours, BASELINE: baseline}
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, 4)).astype(np.float32)
    seeds = [episode_seed(0, index) for index in range(GOALS)]
    options = override(ours.options, {'episode_steps': LENGTH})

    steppers = {name: partial(_step, env, actions) for name, env in envs.items()}
    samples = take_turns(steppers, rounds)
    same_period = override(
        Reach.default_options, {'control_period': ours.interface.control_period}
    )
    plants: dict[str, Any] = {
        REACH: make('reach', same_period),
        RANDOM: make('reach', override(same_period, {'randomise': 1.0})),
    }
    plant_steppers = {TASK: partial(_step, ours, actions[:REACH_STEPS])}
    moves = np.random.default_rng(0).uniform(-1, 1, (REACH_STEPS, 7)).astype(np.float32)
    plant_steppers |= {name: partial(_step, env, moves) for name, env in plants.items()}
    plant_samples = take_turns(plant_steppers, rounds)
    goals = take_turns(
        {
            'all cores': partial(Evaluator(TASK, options).run, _straight, seeds),
            'one core': partial(Evaluator(TASK, options, 1).run, _straight, seeds),
            **{f'{name} in a loop': partial(_loop, env, seeds) for name, env in envs.items()},
        },
        rounds,
        time.perf_counter,
    )
    figures = {
        **ratio_figures('ratio', samples, BASELINE, TASK),
        **ratio_figures('reach_ratio', plant_samples, TASK, REACH),
        **ratio_figures('reach_randomised_ratio', plant_samples, TASK, RANDOM),
        **ratio_figures('evaluation_ratio_vs_loop', goals, BASELINE_LOOP, 'all cores'),
        **ratio_figures('evaluation_ratio_vs_own_loop', goals, TASK_LOOP, 'all cores'),
        **ratio_figures('evaluation_ratio_vs_one_core', goals, 'one core', 'all cores'),
    }
    tables = (
        _table('Steps', STEPS, 'steps/s of CPU time', samples, BASELINE),
        _table(PLANTS, REACH_STEPS, 'steps/s of CPU time', plant_samples, TASK),
        _table(f'{GOALS} goals, {LENGTH} steps each', GOALS, 'goals/s', goals, BASELINE_LOOP),
    )
    raw = {
        'seconds_of_1000_steps': samples,
        'seconds_of_200_steps': plant_samples,
        'seconds_of_100_goals': goals,
    }
    return Result(figures, tables, raw)


def _table(title: str, count: int, unit: str, seconds: Samples, base: str) -> Table:
    """Return one row per contestant, given the seconds it took for ``count`` units of work."""
    rows = tuple(
        (name, f'{count / np.median(values):.4g}', ratio_cell(seconds, base, name))
        for name, values in seconds.items()
    )
    return Table(title, ('', f'{unit}, this machine', f'over {base}'), rows)


def _step(env: Any, actions: NDArray[np.float32]) -> None:
    env.reset(seed=0)
    for action in actions:
        env.step(action)


def _loop(env: Any, seeds: Sequence[int]) -> None:
    """Try one goal after the other."""
    for seed in seeds:
        state, _ = env.reset(seed=seed)
        for _ in range(LENGTH):
            action = _straight(state['observation'][None], state['desired_goal'][None])[0]
            state, *_ = env.step(action)


def _straight(observations: Vector, goals: Vector) -> NDArray[np.float32]:
    """Return actions straight to the goals: a policy that takes almost no time."""
    actions = np.zeros((len(goals), 4), np.float32)
    actions[:, :3] = np.clip(10.0 * (goals - observations[:, :3]), -1.0, 1.0)
    return actions
