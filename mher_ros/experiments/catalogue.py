"""Reads all experiments from ``data/catalogue.yaml``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mher_ros.experiments.experiment import Experiment, Variant
from mher_ros.learning.presets import ALGORITHMS, CHEAP_PLAN
from mher_ros.options import OptionError
from mher_ros.tasks import PAPER_TASKS
import yaml

PATH = Path(__file__).parent / 'data' / 'catalogue.yaml'


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


_CONTENT = yaml.safe_load(PATH.read_text())
EXPERIMENTS = {
    name: _read(name, entry, _CONTENT['notes']) for name, entry in _CONTENT['experiments'].items()
}
