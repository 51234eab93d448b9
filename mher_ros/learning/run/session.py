"""Configure, start, resume and export training runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import copy
import fcntl
import itertools
import json
import os
from pathlib import Path
import re
import shlex
from typing import Any

import mher_ros
from mher_ros import files
from mher_ros.files import CHECKPOINT, CONFIG, POLICY, write_atomically
from mher_ros.learning.config import config_from_dict, load_config, make_config, TrainConfig
from mher_ros.learning.run.arguments import REACH, RunArguments
from mher_ros.learning.run.progress import CsvProgress, Progress, TensorBoardProgress
from mher_ros.learning.run.trainer import BUDGETS, Evaluate, StopReason, Trainer
from mher_ros.options import OptionError, os_errors_as_option_errors, override, read_changes
from mher_ros.policy.contract import Contract
from mher_ros.policy.export import export_policy
from mher_ros.policy.onnx_policy import load
from mher_ros.registry import trust
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
import torch

SAMPLES = 256  # states on which the exported file is compared with the network
NO_POLICY = '{} has no actor network, it plans each action'


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
    """Return configuration and folder of a run; the default folder is a new one in ``runs/``."""
    # A resumed run keeps its options; only ``BUDGETS`` may change.
    changes = changes or {}
    trust(task, algorithm, changes.get('relabel.goals'))
    head = {'algorithm': algorithm, 'preset': preset, 'seed': seed}
    given: dict[str, Any] = {key: value for key, value in head.items() if value is not None}
    if not resume:
        config = make_config(task, changes=changes, **given)
        return config, folder if folder is not None else _free_folder(config)
    if folder is None:
        raise OptionError('resume needs the folder of the run (out)')
    task_class(task)
    stored = load_config(folder)
    for key, value in {'task_name': task, **given}.items():
        if getattr(stored, key) != value:
            raise OptionError(
                f'{folder} holds a run with {key} {getattr(stored, key)!r}, not {value!r}'
            )
    config = config_from_dict(override(stored, changes).to_dict())
    after = config.values()
    for key, value in stored.values().items():
        if value != after[key] and key not in BUDGETS:
            raise OptionError(f'resume keeps all options: {key} is {value}, not {after[key]}')
    return config, folder


def plan_arguments(given: Mapping[str, Any]) -> tuple[TrainConfig, Path]:
    """Return configuration and folder of a run from the ``RunArguments`` that were given."""
    folder = Path(given['out']).expanduser() if given.get('out') else None
    resume, robot = bool(given.get('resume')), given.get('robot')
    changes = dict[str, Any](read_changes(given.get('set', ()), 'set'))
    for name in ('steps', 'until', 'max_minutes'):
        if given.get(name, unset := getattr(RunArguments(), name)) != unset:
            changes[f'schedule.{name}'] = given[name]
    task = given.get('task', RunArguments().task)
    if robot:
        if task != REACH:
            raise OptionError(f'task must be {REACH}, or left out, with robot {robot}; got {task}')
        if (other := changes.get('task.robot', robot)) != robot:
            raise OptionError(f'one robot is expected, got robot {robot} and task.robot {other}')
        changes['task.robot'] = robot
    elif resume and folder is not None and 'task' not in given:
        task = load_config(folder).task_name
    chosen = {key: given[key] for key in ('algorithm', 'preset', 'seed') if key in given}
    return plan_run(task, changes=changes, folder=folder, resume=resume, **chosen)


def plan_text(config: TrainConfig, folder: Path) -> str:
    schedule, plan = config.schedule, config.plan
    ends = [f'{schedule.steps} steps are done']
    if schedule.until:
        ends.insert(0, f'two successive evaluations reach success {schedule.until:g}')
    if schedule.max_minutes:
        ends.append(f'{schedule.max_minutes:g} minutes are over')
    cost = ''
    if config.agent.actor == 'plan':
        predictions = plan.first_actions * plan.trajectories * plan.steps
        cost = f'; each action needs {predictions} predictions, also in evaluations'
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
) -> tuple[Trainer, StopReason]:
    """Train in a folder, then export the policy unless the run was asked to stop."""
    # ``arm`` is an env and its evaluation; the default is the task in this process. Without
    # ``resume`` the folder must not contain a run.
    torch.set_num_threads(1)
    env, evaluate = arm or (
        make(config.task_name, config.task),
        Evaluator(config.task_name, config.task, workers).run,
    )
    table = CsvProgress(folder / files.PROGRESS)
    progress = [table, TensorBoardProgress(folder / files.TENSORBOARD), *displays]
    trainer = Trainer(config, env, evaluate, folder, progress)
    with os_errors_as_option_errors(f'cannot make the folder {folder}'):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder), contextlib.ExitStack() as stack:
        for listener in progress:
            stack.callback(listener.close)
        files.remove_leftovers(folder)
        if not resume and (folder / CONFIG).exists():
            raise OptionError(
                f'{folder} already holds a run; resume it (resume), or use another folder (out)'
            )
        # A run without a checkpoint starts from the beginning.
        if resume and (folder / CHECKPOINT).exists():
            trainer.resume()
        with os_errors_as_option_errors(f'cannot write into the folder {folder}'):
            text = json.dumps(config.to_dict(), indent=2) + '\n'
            write_atomically(folder / CONFIG, text.encode())
        reason = trainer.run(asked_to_stop, asked_to_save)
        stack.close()
        updates_complete = trainer.agent.updates and trainer.agent.policy is not None
        if export and updates_complete and reason is not StopReason.REQUESTED:
            _export(trainer, config, folder / POLICY)
    return trainer, reason


def train_in_memory(config: TrainConfig, progress: Sequence[Progress] = ()) -> Trainer:
    """Train on one core without a folder."""
    torch.set_num_threads(1)
    evaluate = Evaluator(config.task_name, config.task, workers=1).run
    trainer = Trainer(config, make(config.task_name, config.task), evaluate, None, progress)
    trainer.run()
    return trainer


def ending_lines(
    trainer: Trainer, reason: StopReason, config: TrainConfig, folder: Path, resume: str
) -> list[str]:
    """Return what a run ended with; ``resume``: the beginning of what continues it."""
    lines = [f'stopped after {trainer.env_steps} steps: {reason.value}']
    where, until = shlex.quote(str(folder)), config.schedule.until
    if reason in (StopReason.STEPS, StopReason.TIME) and until:
        lines.append(f'no two successive evaluations reached success {until:g}')
    if reason is not StopReason.REQUESTED:
        return [*lines, exported_text(folder, config), f'run:    {folder}']
    if trainer.agent.updates:
        lines.append(f'policy so far: mher export {where}')
    return [*lines, f'run:    {folder}', f'continue with: {resume}{where}']


def exported_text(folder: Path, config: TrainConfig) -> str:
    if config.agent.actor == 'plan':
        return f'policy: none: {NO_POLICY.format(config.algorithm)}'
    if not (folder / POLICY).exists():
        return 'policy: none yet'
    text, contract = f'policy: {folder / POLICY}', load(folder / POLICY).contract
    if not contract.evaluation:
        return text
    steps, rate = contract.training['env_steps'], 100.0 * contract.evaluation['success_rate']
    return f'{text}\nof:     {steps} steps, where success was best: {rate:.1f} %'


def export_run(folder: Path, path: Path | None = None) -> Path:
    """Write the best policy of a run to ``path`` (default: ``policy.onnx`` in its folder)."""
    config = load_config(folder)
    if config.agent.actor == 'plan':
        raise OptionError(f'the run in {folder}: {NO_POLICY.format(config.algorithm)}')
    task = make(config.task_name, config.task)
    trainer = Trainer(config, task, Evaluator(config.task_name, config.task).run, folder)
    trainer.resume()
    if not trainer.agent.updates:
        raise OptionError(f'the run in {folder} has no updates yet')
    path = path or folder / POLICY
    _export(trainer, config, path)
    return path


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes; the system unlocks it when this one ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(f'another process is training in {folder}') from None
        yield
    finally:
        os.close(handle)


def _free_folder(config: TrainConfig) -> Path:
    name = f'{config.task_name}-{config.algorithm}-{config.preset}-seed{config.seed}'
    name = re.sub(r'[^\w.-]+', '_', name)
    names = itertools.chain((name,), (f'{name}-{number}' for number in itertools.count(2)))
    return next(folder for folder in map(Path('runs').joinpath, names) if not folder.exists())


def _export(trainer: Trainer, config: TrainConfig, path: Path) -> None:
    """Export the policy with the best evaluation, or the latest one if there is none."""
    agent, best = trainer.agent, trainer.best
    samples = agent.replay.sample(SAMPLES, np.random.default_rng(config.seed))
    policy = copy.deepcopy(agent.policy)
    assert policy is not None
    counts: dict[str, Any] = trainer.counts()
    if best is not None:
        policy.load_state_dict(best['policy'])
        counts = {key: best[key] for key in counts}
    training: dict[str, Any] = {
        'algorithm': config.algorithm,
        'preset': config.preset,
        'seed': config.seed,
        **counts,
        'run_env_steps': trainer.env_steps,
        'mher_ros': mher_ros.__version__,
        'config': config.to_dict(),
    }
    contract = Contract(agent.interface, training, best['evaluation'] if best else {})
    export_policy(policy, contract, path, samples.observations, samples.goals)
