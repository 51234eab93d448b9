"""The report of an experiment: figures, and a Markdown page with them and all tables."""

from collections.abc import Mapping
import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Failure, Job, Result
from mher_ros.experiments.plots import FIGURES, png, svg
from mher_ros.experiments.provenance import machine_facts
from mher_ros.experiments.tables import figures_of, markdown, seed_tables, Table, tables_of
from mher_ros.files import write_atomically
from mher_ros.options import describe, option_text

CURVES, PAGE = 'curves.csv', 'report.md'


@dataclasses.dataclass(frozen=True)
class Outcome:
    experiment: Experiment
    seeds: tuple[int, ...]
    results: Mapping[Job, Result]
    failures: Mapping[Job, Failure]
    seconds: float  # wall time of this command; earlier runs are not included

    @property
    def total(self) -> int:
        return len(self.seeds) * len(self.experiment.variants)

    @property
    def missing(self) -> int:
        return self.total - len(self.results)

    @property
    def run_seconds(self) -> float:
        return sum(run['seconds'] for run in self.results.values())


def summary(outcome: Outcome) -> dict[str, Any]:
    experiment = outcome.experiment
    return {
        'experiment': experiment.name,
        'question': experiment.question,
        'seeds': list(outcome.seeds),
        'complete': not outcome.missing,
        **figures_of(experiment, outcome.results).to_dict(),
        'metrics': {
            table.title: [dict(zip(table.header, row, strict=True)) for row in table.rows]
            for table in seed_tables(experiment, outcome.results)
        },
        'failures': {str(job): failure.reason for job, failure in outcome.failures.items()},
        'run_seconds': round(outcome.run_seconds, 3),
        'machine': machine_facts(),
    }


def table_text(outcome: Outcome) -> str:
    experiment, results = outcome.experiment, outcome.results
    parts, explained = [], ''
    if outcome.missing:
        parts.append(f'**Incomplete: {outcome.missing} of {outcome.total} runs are missing.**')
    if experiment.metrics:
        parts += [markdown(table) for table in seed_tables(experiment, results)]
    else:
        for table in tables_of(experiment, figures_of(experiment, results)):
            # Successive tables with the same explanation have it once.
            if table.explained != explained:
                parts.append(table.explained)
            explained = table.explained
            parts += [f'**{table.title}**', markdown(table)]
    return '\n\n'.join(parts) + '\n'


def write_report(outcome: Outcome, folder: Path) -> Path:
    """Write curves, figures and the page into ``folder``; return the path of the page."""
    experiment = outcome.experiment
    write_atomically(folder / CURVES, _curves(outcome).encode())
    parts = [f'# {experiment.name}', experiment.question, table_text(outcome).strip()]
    names = ('curves', *filter(None, (experiment.plot,))) if outcome.results else ()
    for name in names:
        draw, caption = FIGURES[name]
        figure = draw(experiment, outcome.results)
        write_atomically(folder / f'{name}.png', png(figure))
        write_atomically(folder / f'{name}.svg', svg(figure))
        parts += [f'![{name}]({name}.png)', caption]
    page = folder / PAGE
    write_atomically(page, ('\n\n'.join(parts + _what_was_run(outcome)) + '\n').encode())
    return page


def _curves(outcome: Outcome) -> str:
    """Return one line per evaluation of every run."""
    columns = ('env_steps', 'success_rate', 'final_error')
    text = io.StringIO()
    lines = csv.writer(text, lineterminator='\n')
    lines.writerow(('task', 'algorithm', 'seed', 'epoch', *columns))
    for job in sorted(outcome.results, key=lambda job: (str(job.variant), job.seed)):
        for epoch, row in enumerate(outcome.results[job]['rows'], 1):
            key = (job.variant.task, job.variant.name, job.seed, epoch)
            lines.writerow((*key, *(row.get(column) for column in columns)))
    return text.getvalue()


def _what_was_run(outcome: Outcome) -> list[str]:
    """Return the paragraphs about runs, machine, options and failures."""
    facts = {
        'runs': f'{len(outcome.results)} of {outcome.total}',
        'seeds': ', '.join(map(str, outcome.seeds)),
        'time of all runs': f'{outcome.run_seconds / 60:.1f} min, one core each',
        'wall time of the last command': f'{outcome.seconds / 60:.1f} min, without earlier runs',
        **machine_facts(),
    }
    parts = ['## What was run', '\n'.join(f'- {key}: {value}' for key, value in facts.items())]
    parts += [*outcome.experiment.notes, markdown(_differences(outcome))]
    if outcome.failures:
        parts.append('## Failed runs')
    for job, failure in outcome.failures.items():
        parts += [f'{job}: {failure.reason}', f'```\n{failure.details.strip()}\n```']
    return parts


def _differences(outcome: Outcome) -> Table:
    """Return the options of each algorithm that differ from those of the first of its task."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    first: dict[str, dict[str, Any]] = {}
    for variant in outcome.experiment.variants:
        config = Job(variant, outcome.seeds[0]).config
        choices = {'preset': config.preset} | {key: value for key, value, _ in describe(config)}
        base = first.setdefault(variant.task, choices)
        different = {key: value for key, value in choices.items() if value != base.get(key)}
        text = ', '.join(f'{key}={option_text(value)}' for key, value in different.items())
        same = text or ('reference' if choices is base else 'none')
        rows.setdefault((variant.name, variant.preset, same), []).append(variant.task)
    shown = tuple(
        (name, preset, ', '.join(tasks), text) for (name, preset, text), tasks in rows.items()
    )
    return Table('Options', ('algorithm', 'preset', 'tasks', 'options that differ'), shown)
