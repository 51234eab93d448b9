"""A run: what it is to be, how it is done, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import copy
import fcntl
import json
import os
from pathlib import Path
from typing import Any

import mher_ros
from mher_ros.files import remove_leftovers, write_atomically
from mher_ros.learning.config import config_from_dict, make_config, TrainConfig
from mher_ros.learning.episodes import EPISODES
from mher_ros.learning.model_export import export_model
from mher_ros.learning.networks import Policy
from mher_ros.learning.progress import CsvProgress, Progress, TensorBoardProgress
from mher_ros.learning.run_folder import CONFIG, load_config, MODEL, POLICY, PROGRESS
from mher_ros.learning.train import BUDGETS, CHECKPOINT, Ending, Evaluate, Trainer
from mher_ros.options import describe, OptionError, override
from mher_ros.policy.contract import Contract
from mher_ros.policy.export import export_policy
from mher_ros.policy.run import load
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
import torch

__all__ = [
    'export_run',
    'exported_text',
    'plan_run',
    'plan_text',
    'start_training',
    'train_unkept',
]

REPLAYED = 256
"""Recorded states on which the exported file is compared with the network."""


def plan_run(
    task: str,
    *,
    algorithm: str | None = None,
    preset: str | None = None,
    seed: int | None = None,
    changes: dict[str, Any] | None = None,
    folder: Path | None = None,
    resume: bool = False,
) -> tuple[TrainConfig, Path]:
    """
    Return the configuration and the folder of the run that is meant.

    A run that goes on keeps the choices it began with; only its budgets may change. A new one
    without a folder gets a free one below ``runs/``.
    """
    changes = changes or {}
    asked = {'algorithm': algorithm, 'preset': preset, 'seed': seed}
    given: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    if not resume:
        config = make_config(task, changes=changes, **given)
        return config, folder if folder is not None else _free_folder(config)
    if folder is None:
        raise OptionError('to go on with a run, name its folder (out)')
    task_class(task)
    stored = load_config(folder)
    for key, value in {'task_name': task, **given}.items():
        if getattr(stored, key) != value:
            raise OptionError(
                f'{folder} holds a run with {key} {getattr(stored, key)!r}, not {value!r}'
            )
    config = config_from_dict(override(stored, changes).to_dict())
    before, after = ({key: value for key, value, _ in describe(c)} for c in (stored, config))
    for key in before:
        if before[key] != after[key] and key not in BUDGETS:
            raise OptionError(
                f'a run goes on with the choices it began with: {key} is {before[key]}, '
                f'not {after[key]}'
            )
    return config, folder


def plan_text(config: TrainConfig, folder: Path) -> str:
    """Say in a sentence what is about to be learnt, until when, and where it is kept."""
    schedule = config.schedule
    ends = [f'{schedule.steps} steps are done']
    if schedule.until:
        ends.insert(0, f'success {schedule.until:g} holds over two evaluations')
    if schedule.max_minutes:
        ends.append(f'{schedule.max_minutes:g} minutes are over')
    cost = ''
    if config.agent.actor == 'plan':
        plan = config.plan
        predictions = plan.first_actions * plan.trajectories * plan.steps
        cost = f'; every action, of test goals too, is planned with {predictions} predictions'
    return (
        f'{config.task_name}, {config.algorithm}, preset {config.preset}, seed {config.seed}, '
        f'until {" or ".join(ends)}; into {folder}{cost}'
    )


def start_training(
    folder: Path,
    config: TrainConfig,
    displays: Sequence[Progress] = (),
    *,
    resume: bool = False,
    asked_to_stop: Callable[[], bool] = lambda: False,
    asked_to_save: Callable[[], bool] = lambda: False,
    workers: int | None = None,
    arm: tuple[Any, Evaluate] | None = None,
    export: bool = True,
    began: Callable[[Trainer], None] = lambda trainer: None,
) -> tuple[Trainer, Ending]:
    """
    Train until a budget is used up, then export the policy, unless it was asked to stop.

    It trains on ``arm``, an env and what evaluates a policy on it, or else on the task in this
    process. Without ``resume`` the folder must not hold a run yet. ``began`` gets the trainer
    beforehand.
    """
    torch.set_num_threads(1)
    env, evaluate = arm or (
        make(config.task_name, config.task),
        Evaluator(config.task_name, config.task, workers).run,
    )
    progress = [
        CsvProgress(folder / PROGRESS),
        TensorBoardProgress(folder / 'tensorboard'),
        *displays,
    ]
    trainer = Trainer(config, env, evaluate, folder, progress)
    _make_folder(folder)
    with _locked(folder), contextlib.ExitStack() as at_the_end:
        for listener in progress:
            at_the_end.callback(listener.close)
        for name in (CHECKPOINT, CONFIG, EPISODES, MODEL, POLICY, PROGRESS):
            remove_leftovers(folder / name)
        if not resume and (folder / CONFIG).exists():
            raise OptionError(
                f'{folder} already holds a run; go on with it (resume), or name another folder '
                '(out)'
            )
        # A run that died before its first checkpoint starts over.
        if resume and (folder / CHECKPOINT).exists():
            trainer.resume()
        _write_config(folder, config)
        began(trainer)
        ending = trainer.run(asked_to_stop, asked_to_save)
        at_the_end.close()
        # Who wants it to stop does not want to wait for a file.
        if export and trainer.agent.updates and ending is not Ending.ASKED:
            _export(trainer, config, _exported(trainer, folder))
    return trainer, ending


def train_unkept(
    config: TrainConfig,
    progress: Sequence[Progress] = (),
    began: Callable[[Trainer], None] = lambda trainer: None,
) -> Trainer:
    """Train to the end on one core, in no folder; ``began`` gets the trainer beforehand."""
    torch.set_num_threads(1)
    evaluate = Evaluator(config.task_name, config.task, workers=1).run
    trainer = Trainer(config, make(config.task_name, config.task), evaluate, None, progress)
    began(trainer)
    trainer.run()
    return trainer


def exported_text(folder: Path, config: TrainConfig) -> str:
    """Say what of the run in ``folder`` can be used elsewhere."""
    if config.agent.actor == 'plan' and (folder / MODEL).exists():
        return (
            f'policy: none: {config.algorithm} has no network that acts, it plans each action '
            f'anew\nmodel:  {folder / MODEL}'
        )
    if not (folder / POLICY).exists():
        return 'policy: none yet'
    text, contract = f'policy: {folder / POLICY}', load(folder / POLICY).contract
    if not contract.evaluation:
        return text
    steps, rate = contract.training['env_steps'], 100.0 * contract.evaluation['success_rate']
    return f'{text}\nof:     {steps} steps, where success was best: {rate:.1f} %'


def export_run(folder: Path, path: Path | None = None) -> Path:
    """
    Write the best policy of the run's checkpoint to ``path`` (default: into the folder).

    Of a learner that plans it is the model of the dynamics. Returns where it was written.
    """
    config = load_config(folder)
    task = make(config.task_name, config.task)
    trainer = Trainer(config, task, Evaluator(config.task_name, config.task).run, folder)
    trainer.resume()
    if not trainer.agent.updates:
        raise OptionError(f'the run in {folder} has not learnt anything yet')
    target = path if path is not None else _exported(trainer, folder)
    _export(trainer, config, target)
    return target


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second process out of the folder; the system unlocks it however this one ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise OptionError(f'another process is training in {folder}') from None
    try:
        yield
    finally:
        os.close(handle)


def _free_folder(config: TrainConfig) -> Path:
    name = f'{config.task_name}-{config.algorithm}-{config.preset}-seed{config.seed}'
    folder, number = Path('runs') / name, 1
    while folder.exists():
        number += 1
        folder = Path('runs') / f'{name}-{number}'
    return folder


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f'cannot make the folder {folder}: {error.strerror}') from error


def _write_config(folder: Path, config: TrainConfig) -> None:
    text = json.dumps(config.to_dict(), indent=2) + '\n'
    try:
        write_atomically(folder / CONFIG, text.encode())
    except OSError as error:
        raise OptionError(f'cannot write into the folder {folder}: {error.strerror}') from error


def _exported(trainer: Trainer, folder: Path) -> Path:
    return folder / (MODEL if trainer.agent.policy is None else POLICY)


def _export(trainer: Trainer, config: TrainConfig, path: Path) -> None:
    """Write the policy that did best in an evaluation, or the latest if there was none."""
    agent = trainer.agent
    recorded = agent.replay.sample(REPLAYED, np.random.default_rng(config.seed))
    if agent.policy is None:
        assert agent.dynamics is not None
        export_model(agent.dynamics, path, recorded.observations, recorded.actions)
        return
    policy: Policy = copy.deepcopy(agent.policy)
    evaluation: dict[str, Any] = {}
    of = {'env_steps': trainer.env_steps, 'episodes': trainer.episodes, 'updates': agent.updates}
    if trainer.best is not None:
        policy.load_state_dict(trainer.best['policy'])
        evaluation = trainer.best['evaluation']
        of = {key: trainer.best[key] for key in of}
    training: dict[str, Any] = {
        'algorithm': config.algorithm,
        'preset': config.preset,
        'seed': config.seed,
        **of,
        'run_env_steps': trainer.env_steps,
        'mher_ros': mher_ros.__version__,
        'config': config.to_dict(),
    }
    export_policy(
        policy,
        Contract(agent.interface, training, evaluation),
        path,
        recorded.observations,
        recorded.goals,
    )
