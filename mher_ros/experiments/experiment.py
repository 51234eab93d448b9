"""Experiments: which algorithms are compared, on which tasks; all are in a catalogue."""

from collections.abc import Mapping, Sequence
import dataclasses
from pathlib import Path
from typing import Any

from mher_ros.learning.presets import ALGORITHMS, CHEAP_PLAN
from mher_ros.options import OptionError
from mher_ros.tasks import PAPER_TASKS
import yaml

CATALOGUE = Path(__file__).parent / 'data' / 'catalogue.yaml'


@dataclasses.dataclass(frozen=True)
class Variant:
    """One algorithm with some options, on one task; it is run once per seed."""

    name: str  # its label in tables and figures
    task: str
    algorithm: str = 'mher'
    preset: str = 'fast'
    changes: tuple[tuple[str, Any], ...] = ()
    recorder: str = ''  # name of what is recorded besides the rows of progress, see ``recorders``


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    question: str
    variants: tuple[Variant, ...]
    algorithms: tuple[str, ...] = ()  # names of the variants that are run by default; empty: all
    tasks: tuple[str, ...] = ()  # tasks that are run by default; empty: all
    metrics: tuple[str, ...] = ()
    """Metrics shown for every seed (``metrics.METRICS``) instead of the usual tables."""
    plot: str = ''  # name of the figure besides the learning curves, see ``plots``
    notes: tuple[str, ...] = ()  # sentences for the report

    @property
    def task_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(variant.task for variant in self.variants))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(variant.name for variant in self.variants))


ALL = 'all'


def narrow(
    experiment: Experiment,
    tasks: Sequence[str] | None = None,
    algorithms: Sequence[str] | None = None,
) -> Experiment:
    """Return the experiment with the variants on these tasks, with these names, in order."""
    # ``('all',)`` selects all, None the default ones.

    def selected(
        kind: str, given: Sequence[str] | None, default: tuple[str, ...], known: tuple[str, ...]
    ) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(given)) if given is not None else default or known
        if names == (ALL,):
            return known
        for name in names:
            if name not in known:
                has = f'it has {", ".join(known)}, or {ALL}'
                raise OptionError(f'{experiment.name} has no {kind} {name!r}; {has}')
        return names

    tasks = selected('task', tasks, experiment.tasks, experiment.task_names)
    names = selected('algorithm', algorithms, experiment.algorithms, experiment.names)
    found = {(variant.task, variant.name): variant for variant in experiment.variants}
    pairs = [(task, name) for task in tasks for name in names]
    variants = tuple(found[pair] for pair in pairs if pair in found)
    if not variants:
        raise OptionError(
            f'{experiment.name} has none of {", ".join(names)} on {", ".join(tasks)}'
        )
    return dataclasses.replace(experiment, variants=variants, algorithms=names, tasks=tasks)


def with_changes(experiment: Experiment, changes: Mapping[str, Any]) -> Experiment:
    if not changes:
        return experiment
    variants = tuple(
        dataclasses.replace(variant, changes=tuple({**dict(variant.changes), **changes}.items()))
        for variant in experiment.variants
    )
    text = ', '.join(f'{key}={value}' for key, value in changes.items())
    notes = (*experiment.notes, f'Run with {text} in all algorithms.')
    return dataclasses.replace(experiment, variants=variants, notes=notes)


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise OptionError(f'unknown experiment {name!r}; known: {", ".join(EXPERIMENTS)}')
    return EXPERIMENTS[name]


def _read(name: str, entry: Mapping[str, Any], notes: Mapping[str, str]) -> Experiment:
    return Experiment(
        name,
        entry['question'],
        tuple(_variants(entry)),
        algorithms=tuple(entry.get('default', ())),
        tasks=tuple(entry.get('tasks', ())),
        metrics=tuple(entry.get('metrics', ())),
        plot=entry.get('plot', ''),
        notes=tuple(notes[note] for note in entry.get('notes', ())),
    )


def _variants(entry: Mapping[str, Any]) -> list[Variant]:
    recorder = entry.get('recorder', '')
    if 'algorithms' in entry:
        names = ALGORITHMS if entry['algorithms'] == 'all' else entry['algorithms']
        return [_paper(name, task, name, recorder) for task in PAPER_TASKS for name in names]
    if 'study' in entry:
        name, option, values = (entry['study'][key] for key in ('name', 'option', 'values'))
        return [
            _paper(f'{name} {label}', task, 'mher', recorder, {option: value})
            for task in PAPER_TASKS
            for label, value in values.items()
        ]
    common = entry['common']
    changes = common.get('changes', {})
    return [
        Variant(**{**common, **one, 'changes': _changes({**changes, **one.get('changes', {})})})
        for one in entry['variants']
    ]


def _paper(
    name: str, task: str, algorithm: str, recorder: str, changes: dict[str, Any] | None = None
) -> Variant:
    """Return a variant with the preset ``paper``."""
    values: dict[str, Any] = {'task.box': 4.0} if task == 'point2d_large' else {}
    if algorithm == 'plangan':
        values |= {f'plan.{key}': value for key, value in CHEAP_PLAN.items()}
        values |= {'model.hidden': (64, 64), 'schedule.evaluation_goals': 20}
    return Variant(name, task, algorithm, 'paper', _changes(values | (changes or {})), recorder)


def _changes(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return options and values; YAML has lists where options have tuples."""
    return tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in values.items())


_CONTENT = yaml.safe_load(CATALOGUE.read_text())
EXPERIMENTS = {
    name: _read(name, entry, _CONTENT['notes']) for name, entry in _CONTENT['experiments'].items()
}
