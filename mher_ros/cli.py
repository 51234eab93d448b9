"""The command line: ``mher --help`` lists the commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
import json
import os
from pathlib import Path
import shlex
import signal
import sys
from typing import Any, TYPE_CHECKING

import mher_ros
from mher_ros.errors import MherError
from mher_ros.options import describe, OptionError
from mher_ros.tasks import task_class, TASKS

if TYPE_CHECKING:
    from mher_ros.learning.config import TrainConfig

__all__ = ['main']

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code = int(options.command(options) or 0)
        sys.stdout.flush()
        return code
    except MherError as error:
        print(f'mher: {error}', file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on; let the interpreter write what is left at its end to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f' ({error.filename})' if error.filename else ''
        print(f'mher: {error.strerror or error}{where}', file=sys.stderr)
        return FAILED


def _tasks(options: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    for name in TASKS:
        kind = task_class(name)
        settings = [
            {'key': f'task.{key}', 'default': value, 'help': text}
            for key, value, text in describe(kind.default_options)
        ]
        rows.append({'task': name, 'summary': kind.summary, 'options': settings})
    if options.json:
        print(json.dumps({'tasks': rows}))
        return
    for row in rows:
        print(f'{row["task"]:<18} {row["summary"]}')
        for setting in row['options']:
            print(f'    {setting["key"]}={setting["default"]}  {setting["help"]}')


def _train(options: argparse.Namespace) -> int:
    from mher_ros.learning.progress import Progress, terminal_display
    from mher_ros.learning.run import plan_run, POLICY, start_training
    from mher_ros.learning.train import Ending
    from mher_ros.tasks import make

    changes = _changes(options.set)
    for key in ('steps', 'until', 'max_minutes'):
        if getattr(options, key) is not None:
            changes[f'schedule.{key}'] = getattr(options, key)
    config, folder = plan_run(
        options.task,
        algorithm=options.algorithm,
        preset=options.preset,
        seed=options.seed,
        changes=changes,
        folder=None if options.out is None else Path(options.out),
        resume=options.resume,
    )
    if options.json:
        display = Progress()
    else:
        unit = make(config.task_name, config.task).interface.goal[0].unit
        plan = _plan_text(config, folder)
        display = terminal_display(plan, unit, config.schedule.steps)
    stop = _StopOnSignal()
    try:
        trainer, ending = start_training(
            folder,
            config,
            [display],
            resume=options.resume,
            asked_to_stop=stop,
            workers=options.workers,
        )
    finally:
        stop.restore()
    policy = folder / POLICY
    result = {
        **(trainer.rows[-1] if trainer.rows else {}),
        'run': str(folder),
        'policy': str(policy) if policy.exists() else None,
        'ending': ending.name.lower(),
        'env_steps': trainer.env_steps,
    }
    if options.json:
        print(json.dumps(result, allow_nan=False))
    else:
        print(f'stopped after {trainer.env_steps} steps: {ending.value}')
        if ending in (Ending.STEPS, Ending.TIME) and config.schedule.until:
            print(f'success {config.schedule.until:g} did not hold over two evaluations')
        print(f'policy: {result["policy"] or "none yet"}\nrun:    {folder}')
        if ending is Ending.ASKED:
            where = shlex.quote(str(folder))
            print(f'go on with: mher train {config.task_name} --resume --out {where}')
    return INTERRUPTED if ending is Ending.ASKED else 0


def _plan_text(config: TrainConfig, folder: Path) -> str:
    schedule = config.schedule
    ends = [f'{schedule.steps} steps are done']
    if schedule.until:
        ends.insert(0, f'success {schedule.until:g} holds over two evaluations')
    if schedule.max_minutes:
        ends.append(f'{schedule.max_minutes:g} minutes are over')
    return (
        f'{config.task_name}, {config.algorithm}, preset {config.preset}, seed {config.seed}, '
        f'until {" or ".join(ends)}; into {folder}'
    )


class _StopOnSignal:
    """Turns the first SIGINT or SIGTERM into a wish to stop; the second one interrupts."""

    def __init__(self) -> None:
        self._asked = False
        self._before = {
            number: signal.signal(number, self._handle)
            for number in (signal.SIGINT, signal.SIGTERM)
        }

    def __call__(self) -> bool:
        return self._asked

    def _handle(self, number: int, frame: Any) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        # Not print: whoever holds the terminal's lock may be what was interrupted.
        os.write(2, b'\nstopping after this episode, with a checkpoint; again to stop at once\n')

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _evaluate(options: argparse.Namespace) -> None:
    from mher_ros.policy import load
    from mher_ros.policy.evaluation import evaluate_policy, evaluation_lines

    policy = load(Path(options.policy))
    result = evaluate_policy(policy, options.episodes, options.seed, options.workers)
    if options.json:
        print(json.dumps(result))
    else:
        print('\n'.join(evaluation_lines(result)))


def _export(options: argparse.Namespace) -> None:
    from mher_ros.learning.run import export_run

    print(export_run(Path(options.run), Path(options.out) if options.out else None))


def _render(options: argparse.Namespace) -> None:
    from mher_ros.tasks.rendering import choose_backend

    choose_backend()
    from mher_ros.policy import load
    from mher_ros.policy.film import film_policy

    print(film_policy(load(Path(options.policy)), Path(options.out), options.goals, options.seed))


def _options(options: argparse.Namespace) -> None:
    from mher_ros.learning.config import make_config

    config = make_config(options.task, options.algorithm, options.preset)
    rows = [{'key': key, 'value': value, 'help': text} for key, value, text in describe(config)]
    if options.json:
        print(json.dumps({'options': rows}))
        return
    for row in rows:
        value = (
            ','.join(map(str, row['value'])) if isinstance(row['value'], tuple) else row['value']
        )
        print(f'{row["key"] + "=" + str(value):<36} {row["help"]}')


def _experiment(options: argparse.Namespace) -> None:
    from mher_ros.experiments.catalogue import EXPERIMENTS
    from mher_ros.experiments.experiment import run_experiment
    from mher_ros.experiments.tables import markdown_tables

    if options.name not in EXPERIMENTS:
        names = ', '.join(EXPERIMENTS)
        raise OptionError(f'unknown experiment {options.name!r}; there are {names}')
    experiment = EXPERIMENTS[options.name]
    folder = Path(options.out) / experiment.name
    results: dict[str, dict[int, Any]] = {}
    total = len(experiment.variants) * len(options.seeds)
    print(f'{experiment.question} {total} runs, kept in {folder}', file=sys.stderr)
    runs = run_experiment(experiment, options.seeds, folder, options.processes)
    for number, (variant, seed, rows) in enumerate(runs, 1):
        results.setdefault(variant.name, {})[seed] = rows
        print(f'{number:>4}/{total}  {variant.name}, seed {seed}', file=sys.stderr, flush=True)
    print(markdown_tables(experiment, results))


def _bench(options: argparse.Namespace) -> None:
    from mher_ros.experiments.bench import bench_lines, bench_step

    result = bench_step()
    print(json.dumps(result) if options.json else '\n'.join(bench_lines(result)))


def _demo(options: argparse.Namespace) -> int:
    from mher_ros.tasks.rendering import choose_backend

    choose_backend()
    from mher_ros.demo import run_demo

    return run_demo(Path(options.out), options.seed)


def _changes(pairs: Sequence[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition('=')
        if not equals or not key:
            raise OptionError(f'--set takes key=value, got {pair!r}')
        changes[key] = value
    return changes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='mher', description='Learn to reach with MHER, and run what was learnt.'
    )
    parser.add_argument('--version', action='version', version=mher_ros.__version__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    def add(name: str, command: Callable[[argparse.Namespace], Any], text: str) -> Any:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    tasks = add('tasks', _tasks, 'list the tasks and their options')
    tasks.add_argument('--json', action='store_true', help='print one JSON object')

    train = add('train', _train, 'learn a policy and export it to policy.onnx')
    train.add_argument('task', metavar='TASK', help=f'one of {", ".join(TASKS)}')
    train.add_argument('--algorithm', help='mher (default), her or ddpg')
    train.add_argument('--preset', help='fast (default), paper or paper_2021')
    train.add_argument('--seed', type=int, help='default 0')
    train.add_argument(
        '--steps', type=int, metavar='N', help='stop after N environment steps, warm-up counted'
    )
    train.add_argument(
        '--until',
        type=float,
        metavar='X',
        help='stop once success X holds over two evaluations; 0: never (default 0.95 with fast)',
    )
    train.add_argument('--max-minutes', type=float, metavar='M', help='stop after M minutes')
    train.add_argument('--out', metavar='DIR', help='folder of the run (default: runs/...)')
    train.add_argument('--resume', action='store_true', help='go on with the run in --out')
    train.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='change any other choice, e.g. agent.batch=256 or task.threshold=0.02; may be '
        'repeated; `mher options` lists them all',
    )
    train.add_argument(
        '--workers', type=_positive, help='threads that evaluate (default: cores, 1 for point2d)'
    )
    train.add_argument('--json', action='store_true', help='print one JSON object at the end')

    evaluate = add('evaluate', _evaluate, 'try a policy file on random goals')
    evaluate.add_argument('policy', metavar='POLICY.onnx')
    evaluate.add_argument('--episodes', type=_positive, default=100, help='goals (default 100)')
    evaluate.add_argument('--seed', type=_seed, default=0, help='of the goals (default 0)')
    evaluate.add_argument(
        '--workers', type=_positive, help='threads (default: cores, 1 for point2d)'
    )
    evaluate.add_argument('--json', action='store_true', help='print one JSON object')

    export = add('export', _export, "write policy.onnx from a run's checkpoint")
    export.add_argument('run', metavar='RUN', help='folder of the run')
    export.add_argument('--out', metavar='FILE', help='default: policy.onnx in that folder')

    render = add('render', _render, 'film a policy, with or without a screen')
    render.add_argument('policy', metavar='POLICY.onnx')
    render.add_argument(
        '-o', '--out', default='policy.gif', help='a .gif, .mp4 or .png file (default policy.gif)'
    )
    render.add_argument('--goals', type=_positive, default=3, help='goals shown (default 3)')
    render.add_argument('--seed', type=_seed, default=0, help='of the goals (default 0)')

    choices = add('options', _options, 'list what --set can change, with the values of a preset')
    choices.add_argument('task', metavar='TASK', nargs='?', default='fetch_reach')
    choices.add_argument('--algorithm', default='mher', help='default mher')
    choices.add_argument('--preset', default='fast', help='default fast')
    choices.add_argument('--json', action='store_true', help='print one JSON object')

    experiment = add('experiment', _experiment, 'compare variants over seeds; prints a table')
    experiment.add_argument('name', metavar='NAME', help='an unknown one lists them all')
    experiment.add_argument(
        '--seeds', type=_seeds, default='1-5', help='such as 1-5 or 1,2,7 (default 1-5)'
    )
    experiment.add_argument(
        '--out',
        default='runs/experiments',
        metavar='DIR',
        help='where runs are kept (default runs/experiments)',
    )
    experiment.add_argument('--processes', type=_positive, help='default: cores')

    bench = add('bench', _bench, 'measure against a rival in the same run')
    bench.add_argument('what', choices=['step'], help='step: fetch_reach and the shipped one')
    bench.add_argument('--json', action='store_true', help='print one JSON object')

    demo = add('demo', _demo, 'train, export and evaluate a Fetch arm, with a picture')
    demo.add_argument('--out', default='demo_run', help='folder (default demo_run; made anew)')
    demo.add_argument('--seed', type=_seed, default=0, help='default 0')
    return parser


def _positive(text: str) -> int:
    return _at_least(text, 1)


def _seed(text: str) -> int:
    return _at_least(text, 0)


def _seeds(text: str) -> list[int]:
    seeds: list[int] = []
    for part in text.split(','):
        first, _, last = part.partition('-')
        seeds += range(_at_least(first, 0), _at_least(last or first, 0) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f'takes seeds such as 1-5 or 1,2,7, got {text!r}')
    return seeds


def _at_least(text: str, low: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if value < low:
        raise argparse.ArgumentTypeError(f'takes a whole number of at least {low}, got {text!r}')
    return value
