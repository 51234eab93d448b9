"""An experiment: which algorithms are compared, on which tasks."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from mher_ros.options import OptionError


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
