"""The report of an experiment: tables, figures, and one page with all of them."""

from collections.abc import Mapping
import csv
import dataclasses
from html import escape
import io
from pathlib import Path
from typing import Any

from mher_ros.experiments.experiment import Experiment, narrow
from mher_ros.experiments.jobs import Failure, Job, Result
from mher_ros.experiments.plots import draw, FIGURES, png, svg
from mher_ros.experiments.provenance import machine_facts
from mher_ros.experiments.tables import figures_of, markdown, seed_tables, Table, tables_of
from mher_ros.files import write_atomically
from mher_ros.options import describe, option_text

CURVES, PAGE, TABLE = 'curves.csv', 'report.html', 'table.md'
STYLE = Path(__file__).parent / 'data' / 'report.css'


@dataclasses.dataclass(frozen=True)
class Outcome:
    experiment: Experiment
    seeds: tuple[int, ...]
    results: Mapping[Job, Result]
    failures: Mapping[Job, Failure]
    seconds: float
    """Wall time of this command; earlier runs are not included."""

    @property
    def missing(self) -> int:
        return len(self.seeds) * len(self.experiment.variants) - len(self.results)

    @property
    def run_seconds(self) -> float:
        return sum(run['seconds'] for run in self.results.values())

    @property
    def incomplete(self) -> str:
        total = self.missing + len(self.results)
        return f'Incomplete: {self.missing} of {total} runs are missing.' if self.missing else ''


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
    parts = [f'**{outcome.incomplete}**'] if outcome.missing else []
    explained = ''
    if outcome.experiment.metrics:
        parts += [markdown(table) for table in seed_tables(outcome.experiment, outcome.results)]
    else:
        for table in _tables(outcome):
            # Successive tables with the same explanation have it once.
            if table.explained != explained:
                parts.append(table.explained)
            explained = table.explained
            parts += [f'**{table.title}**', markdown(table)]
    return '\n\n'.join(parts) + '\n'


def write_report(outcome: Outcome, folder: Path) -> Path:
    """Write tables, figures and the page into ``folder``; return the path of the page."""
    write_atomically(folder / TABLE, table_text(outcome).encode())
    write_atomically(folder / CURVES, _curves(outcome).encode())
    pictures = []
    names = ('curves', *filter(None, (outcome.experiment.plot,))) if outcome.results else ()
    for name in names:
        figure = draw(name, outcome.experiment, outcome.results)
        write_atomically(folder / f'{name}.png', png(figure))
        write_atomically(folder / f'{name}.svg', svg(figure))
        pictures.append((name, _inline(name, outcome)))
    page = folder / PAGE
    write_atomically(page, _page(outcome, pictures).encode())
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


def _inline(name: str, outcome: Outcome) -> list[str]:
    """Return one SVG per task, so that a narrow screen can show them in one column."""
    alone = [narrow(outcome.experiment, (task,)) for task in outcome.experiment.task_names]
    texts = [svg(draw(name, one, outcome.results)).decode() for one in alone]
    return [text[text.index('<svg') :] for text in texts]


def _tables(outcome: Outcome) -> list[Table]:
    return tables_of(outcome.experiment, figures_of(outcome.experiment, outcome.results))


def _page(outcome: Outcome, pictures: list[tuple[str, list[str]]]) -> str:
    experiment = outcome.experiment
    parts = [f'<h1>{escape(experiment.name)}</h1>', f'<p class=lead>{escape(experiment.question)}']
    if outcome.missing:
        parts.append(f'<p class=warning>{escape(outcome.incomplete)}')
    tables = [*seed_tables(experiment, outcome.results), *_tables(outcome)]
    if len(experiment.tasks) > 1 and not experiment.metrics:
        parts.append(_html_table(tables.pop(0)))
    for name, drawings in pictures:
        grid = ''.join(f'<div>{drawing}</div>' for drawing in drawings)
        parts.append(
            f'<figure><div class=grid>{grid}</div>'
            f'<figcaption>{escape(FIGURES[name][1])}</figcaption></figure>'
        )
    parts += [_html_table(table) for table in tables]
    parts.append(_what_was_run(outcome))
    body = '\n'.join(parts)
    return (
        '<!doctype html>\n<html lang=en><head><meta charset=utf-8>'
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f'<title>{escape(experiment.name)}</title><style>{STYLE.read_text()}</style></head>\n'
        f'<body><main>\n{body}\n</main></body></html>\n'
    )


def _html_table(table: Table) -> str:
    head = ''.join(f'<th>{escape(cell)}' for cell in table.header)
    rows = ''.join(
        '<tr>' + ''.join(f'<td>{escape(cell)}' for cell in row) + '\n' for row in table.rows
    )
    return (
        f'<section><h2>{escape(table.title)}</h2><div class=wide><table><thead><tr>{head}</thead>'
        f'<tbody>\n{rows}</tbody></table></div><p class=note>{escape(table.explained)}</section>'
    )


def _what_was_run(outcome: Outcome) -> str:
    experiment = outcome.experiment
    facts = {
        'runs': f'{len(outcome.results)} of {len(outcome.results) + outcome.missing}',
        'seeds': ', '.join(map(str, outcome.seeds)),
        'time of all runs': f'{outcome.run_seconds / 60:.1f} min, one core each',
        'wall time of the last command': f'{outcome.seconds / 60:.1f} min, without earlier runs',
        **machine_facts(),
    }
    listed = ''.join(f'<dt>{escape(key)}<dd>{escape(str(value))}' for key, value in facts.items())
    parts = ['<section><h2>What was run</h2>', f'<dl>{listed}</dl>']
    parts += [f'<p>{escape(note)}' for note in experiment.notes]
    parts.append(_html_table(_differences(outcome)))
    if outcome.failures:
        parts.append('<h2>Failed runs</h2>')
    for job, failure in outcome.failures.items():
        parts.append(
            f'<details><summary>{escape(str(job))}: {escape(failure.reason)}</summary>'
            f'<pre>{escape(failure.details)}</pre></details>'
        )
    return '\n'.join((*parts, '</section>'))


def _differences(outcome: Outcome) -> Table:
    """Return the options of each algorithm that differ from those of the first of its task."""
    rows: dict[tuple[str, str], list[str]] = {}
    first: dict[str, dict[str, Any]] = {}
    presets: dict[str, dict[str, None]] = {}
    for variant in outcome.experiment.variants:
        config = Job(variant, outcome.seeds[0]).config
        choices = {'preset': config.preset} | {key: value for key, value, _ in describe(config)}
        base = first.setdefault(variant.task, choices)
        different = {key: value for key, value in choices.items() if value != base.get(key)}
        text = ', '.join(f'{key}={option_text(value)}' for key, value in different.items())
        same = text or ('reference' if choices is base else 'none')
        rows.setdefault((variant.name, same), []).append(variant.task)
        presets.setdefault(variant.name, {})[variant.preset] = None
    shown = tuple(
        (name, ', '.join(presets[name]), ', '.join(tasks), text)
        for (name, text), tasks in rows.items()
    )
    return Table('Options', ('algorithm', 'preset', 'tasks', 'options that differ'), shown)
