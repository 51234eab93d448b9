"""What people get to see: tables, pictures, one page that holds it all."""

from __future__ import annotations

from collections.abc import Mapping
import csv
import dataclasses
import html
import io
from pathlib import Path
from typing import Any

from mher_ros.experiments.experiment import Experiment, narrow
from mher_ros.experiments.jobs import Failure, Job, Result
from mher_ros.experiments.machine import machine_facts
from mher_ros.experiments.plots import draw, explanation
from mher_ros.experiments.plots.style import png, svg
from mher_ros.experiments.table import markdown, Table
from mher_ros.experiments.tables import figures_of, seed_tables, tables_of
from mher_ros.files import write_atomically

__all__ = ['Outcome', 'summary', 'table_text', 'write_report']

CURVES, PAGE, TABLE = 'curves.csv', 'report.html', 'table.md'
STYLE = Path(__file__).parent / 'data' / 'report.css'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of an experiment."""

    experiment: Experiment
    seeds: tuple[int, ...]
    results: Mapping[Job, Result]
    failures: Mapping[Job, Failure]
    seconds: float
    """Wall time of this invocation; runs done before took none of it."""

    @property
    def missing(self) -> int:
        """Number of runs that should be there and are not."""
        return len(self.seeds) * len(self.experiment.variants) - len(self.results)

    @property
    def incomplete(self) -> str:
        """A sentence if runs are missing, else nothing."""
        total = self.missing + len(self.results)
        return f'Incomplete: {self.missing} of {total} runs are missing.' if self.missing else ''


def summary(outcome: Outcome) -> dict[str, Any]:
    """Return all figures as plain JSON values."""
    experiment = outcome.experiment
    return {
        'experiment': experiment.name,
        'question': experiment.question,
        'seeds': list(outcome.seeds),
        'complete': not outcome.missing,
        **figures_of(experiment, outcome.results).to_dict(),
        'measures': {
            table.title: [dict(zip(table.header, row, strict=True)) for row in table.rows]
            for table in seed_tables(experiment, outcome.results)
        },
        'failures': {str(job): failure.reason for job, failure in outcome.failures.items()},
        'run_seconds': round(sum(run['seconds'] for run in outcome.results.values()), 3),
        'machine': machine_facts(),
    }


def table_text(outcome: Outcome) -> str:
    """Return the tables as Markdown."""
    parts = [f'**{outcome.incomplete}**'] if outcome.missing else []
    explained = ''
    if outcome.experiment.measures:
        parts += [markdown(table) for table in seed_tables(outcome.experiment, outcome.results)]
    else:
        for table in _tables(outcome):
            # What holds for several tables in a row is said once.
            if table.explained != explained:
                parts.append(table.explained)
            explained = table.explained
            parts += [f'**{table.title}**', markdown(table)]
    return '\n\n'.join(parts) + '\n'


def write_report(outcome: Outcome, folder: Path) -> Path:
    """Write tables, pictures and the page into ``folder``; return the page."""
    write_atomically(folder / TABLE, table_text(outcome).encode())
    write_atomically(folder / CURVES, _curves(outcome).encode())
    pictures = []
    for name in ('curves', *filter(None, (outcome.experiment.plot,))):
        if not outcome.results:
            break
        figure = draw(name, outcome.experiment, outcome.results)
        write_atomically(folder / f'{name}.png', png(figure))
        write_atomically(folder / f'{name}.svg', svg(figure))
        pictures.append((name, _inline(name, outcome)))
    page = folder / PAGE
    write_atomically(page, _page(outcome, pictures).encode())
    return page


def _curves(outcome: Outcome) -> str:
    """Return every evaluation of every run, a line each."""
    columns = ('env_steps', 'success_rate', 'final_error')
    text = io.StringIO()
    lines = csv.writer(text, lineterminator='\n')
    lines.writerow(('task', 'system', 'seed', 'epoch', *columns))
    for job in sorted(outcome.results, key=lambda job: (str(job.variant), job.seed)):
        for epoch, row in enumerate(outcome.results[job]['rows'], 1):
            told = (job.variant.task, job.variant.name, job.seed, epoch)
            lines.writerow((*told, *(row.get(column) for column in columns)))
    return text.getvalue()


def _inline(name: str, outcome: Outcome) -> list[str]:
    """Return the picture as one SVG a task, so that a narrow screen puts them in a column."""
    found = []
    for task in dict.fromkeys(variant.task for variant in outcome.experiment.variants):
        one = narrow(outcome.experiment, (task,))
        text = svg(draw(name, one, outcome.results)).decode()
        found.append(text[text.index('<svg') :])
    return found


def _tables(outcome: Outcome) -> list[Table]:
    return tables_of(outcome.experiment, figures_of(outcome.experiment, outcome.results))


def _page(outcome: Outcome, pictures: list[tuple[str, list[str]]]) -> str:
    experiment = outcome.experiment
    parts = [f'<h1>{_text(experiment.name)}</h1>', f'<p class=lead>{_text(experiment.question)}']
    if outcome.missing:
        parts.append(f'<p class=warning>{_text(outcome.incomplete)}')
    tables = [*seed_tables(experiment, outcome.results), *_tables(outcome)]
    if len(experiment.tasks) > 1 and not experiment.measures:
        parts.append(_html_table(tables.pop(0)))
    for name, drawings in pictures:
        grid = ''.join(f'<div>{drawing}</div>' for drawing in drawings)
        parts.append(
            f'<figure><div class=grid>{grid}</div>'
            f'<figcaption>{_text(explanation(name))}</figcaption></figure>'
        )
    parts += [_html_table(table) for table in tables]
    parts.append(_what_was_run(outcome))
    body = '\n'.join(parts)
    return (
        '<!doctype html>\n<html lang=en><head><meta charset=utf-8>'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f'<title>{_text(experiment.name)}</title><style>{STYLE.read_text()}</style></head>\n'
        f'<body><main>\n{body}\n</main></body></html>\n'
    )


def _html_table(table: Table) -> str:
    head = ''.join(f'<th>{_text(cell)}' for cell in table.header)
    rows = ''.join(
        '<tr>' + ''.join(f'<td>{_text(cell)}' for cell in row) + '\n' for row in table.rows
    )
    return (
        f'<section><h2>{_text(table.title)}</h2><div class=wide><table><thead><tr>{head}</thead>'
        f'<tbody>\n{rows}</tbody></table></div><p class=note>{_text(table.explained)}</section>'
    )


def _what_was_run(outcome: Outcome) -> str:
    experiment = outcome.experiment
    spent = sum(run['seconds'] for run in outcome.results.values())
    facts = {
        'runs': f'{len(outcome.results)} of {len(outcome.results) + outcome.missing}',
        'seeds': ', '.join(map(str, outcome.seeds)),
        'time of all runs': f'{spent / 60:.1f} min, one core each',
        'wall time, last time': f'{outcome.seconds / 60:.1f} min; runs done before are not redone',
        **machine_facts(),
    }
    listed = ''.join(f'<dt>{_text(key)}<dd>{_text(str(value))}' for key, value in facts.items())
    parts = ['<section><h2>What was run</h2>', f'<dl>{listed}</dl>']
    parts += [f'<p>{_text(note)}' for note in experiment.notes]
    parts.append(_html_table(_differences(outcome)))
    if outcome.failures:
        parts.append('<h2>Failed runs</h2>')
    for job, failure in outcome.failures.items():
        parts.append(
            f'<details><summary>{_text(str(job))}: {_text(failure.reason)}</summary>'
            f'<pre>{_text(failure.details)}</pre></details>'
        )
    return '\n'.join((*parts, '</section>'))


def _differences(outcome: Outcome) -> Table:
    """Return what each system chooses unlike the first one of its task."""
    rows: dict[tuple[str, str], list[str]] = {}
    first: dict[str, dict[str, Any]] = {}
    for variant in outcome.experiment.variants:
        choices = _flat(Job(variant, outcome.seeds[0]).config.to_dict())
        base = first.setdefault(variant.task, choices)
        text = ', '.join(
            f'{key}={_plain(value)}'
            for key, value in choices.items()
            if value != base.get(key) and key != 'algorithm'
        )
        same = text or ('the others are compared with it' if choices is base else 'nothing')
        rows.setdefault((variant.name, same), []).append(variant.task)
    shown = tuple(
        (name, f'{_preset(outcome, name)}', ', '.join(tasks), text)
        for (name, text), tasks in rows.items()
    )
    return Table('Choices', ('system', 'preset', 'tasks', 'options that differ'), shown)


def _preset(outcome: Outcome, name: str) -> str:
    return ', '.join(
        dict.fromkeys(v.preset for v in outcome.experiment.variants if v.name == name)
    )


def _flat(values: Mapping[str, Any], prefix: str = '') -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f'{prefix}{key}.')
        else:
            flat[prefix + key] = value
    return flat


def _plain(value: Any) -> str:
    return ','.join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _text(text: str) -> str:
    return html.escape(text)
