"""An experiment: what is compared, on which tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from mher_ros.options import OptionError

__all__ = ['Experiment', 'Variant', 'narrow', 'with_changes']


@dataclasses.dataclass(frozen=True)
class Variant:
    """One system on one task; it is run once a seed."""

    name: str
    """What its line is called, in tables and figures."""
    task: str
    algorithm: str = 'mher'
    preset: str = 'fast'
    changes: tuple[tuple[str, Any], ...] = ()
    recorder: str = ''
    """What is noted beside the rows, see ``recorders``."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A question, and the variants that answer it."""

    name: str
    question: str
    variants: tuple[Variant, ...]
    systems: tuple[str, ...] = ()
    """Names of the variants that are run unless others are asked for; none: all."""
    tasks: tuple[str, ...] = ()
    """Tasks that are run unless others are asked for; none: all."""
    measures: tuple[str, ...] = ()
    """Figures shown seed by seed (``measures.MEASURES``) in place of the usual tables."""
    plot: str = ''
    """What is drawn beside the learning curves, see ``plots``."""
    notes: tuple[str, ...] = ()
    """Sentences for the report."""


ALL = 'all'


def narrow(
    experiment: Experiment,
    tasks: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
) -> Experiment:
    """
    Return the experiment with the variants on these tasks, of these names, in this order.

    ``('all',)`` stands for all it has, None for its usual ones.
    """
    found = {(variant.task, variant.name): variant for variant in experiment.variants}
    known_tasks = tuple(dict.fromkeys(task for task, _ in found))
    known_systems = tuple(dict.fromkeys(name for _, name in found))
    wanted_tasks = _wanted('task', tasks, experiment.tasks, known_tasks, experiment)
    wanted_systems = _wanted('system', systems, experiment.systems, known_systems, experiment)
    chosen = tuple(
        found[task, system]
        for task in wanted_tasks
        for system in wanted_systems
        if (task, system) in found
    )
    if not chosen:
        raise OptionError(
            f'{experiment.name} has none of {", ".join(wanted_systems)} on '
            f'{", ".join(wanted_tasks)}'
        )
    return dataclasses.replace(
        experiment, variants=chosen, systems=wanted_systems, tasks=wanted_tasks
    )


def with_changes(experiment: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """Return the experiment with these options in all of its variants."""
    if not changes:
        return experiment
    told = ', '.join(f'{key}={value}' for key, value in changes.items())
    return dataclasses.replace(
        experiment,
        variants=tuple(
            dataclasses.replace(
                variant, changes=tuple({**dict(variant.changes), **changes}.items())
            )
            for variant in experiment.variants
        ),
        notes=(*experiment.notes, f'Run with {told} in all systems.'),
    )


def _wanted(
    kind: str,
    asked: Sequence[str] | None,
    usual: tuple[str, ...],
    known: tuple[str, ...],
    experiment: Experiment,
) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(asked)) if asked is not None else usual or known
    if names == (ALL,):
        return known
    for name in names:
        if name not in known:
            raise OptionError(
                f'{experiment.name} has no {kind} {name!r}; it has {", ".join(known)}, or {ALL}'
            )
    return names
