"""Files of benchmarks, targets, and the page with all results."""

import json

from matplotlib.figure import Figure
from mher_ros.bench.report import BEGIN, END, Target, target_table, TARGETS, write_report
from mher_ros.bench.result import (
    markdown_section,
    read,
    Result,
    to_dict,
    write,
)
from mher_ros.experiments.tables import Table
from mher_ros.options import OptionError
import pytest

TABLE = Table(
    'Speed', ('', 'ms', 'over b'), (('a', '20', '2.00 [1.90, 2.10]'), ('b', '10', '1.00'))
)
FOUND = Result({'ratio': 2.0}, (TABLE,), {'seconds': [0.02]})


def test_a_section_has_title_explanation_and_aligned_columns():
    table = Table('Speed', ('who', 'ms'), (('a', '5'), ('longer', '10')), 'Of one.')
    assert markdown_section(table).splitlines() == [
        '**Speed**',
        '',
        'Of one.',
        '',
        '| who    | ms  |',
        '|--------|-----|',
        '| a      | 5   |',
        '| longer | 10  |',
    ]


def test_what_is_written_is_read_again(tmp_path):
    values = to_dict('bridge', FOUND, {'rounds': 3})
    path = write('bridge', values, Figure(), tmp_path)
    again, (table,) = read(path)
    assert again == json.loads(json.dumps(values))
    assert (again['ratio'], again['arguments']) == (2.0, {'rounds': 3})
    assert again['samples'] == {'seconds': [0.02]}
    assert {'processor', 'cores', 'versions'} <= set(again['machine'])
    assert markdown_section(table) == markdown_section(TABLE)
    assert (tmp_path / 'bridge.png').read_bytes().startswith(b'\x89PNG')


def test_what_is_no_json_is_not_written(tmp_path):
    with pytest.raises(ValueError, match='JSON'):
        write('bridge', {'ratio': float('nan')}, None, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('content', ['', '{}', '[]', '{"tables": [{}]}'])
def test_files_of_others_are_refused_by_name(tmp_path, content):
    (tmp_path / 'bridge.json').write_text(content)
    with pytest.raises(OptionError, match='bridge.json'):
        read(tmp_path / 'bridge.json')


@pytest.mark.parametrize(
    ('target', 'aim', 'value', 'words'),
    [
        (3.0, 1.5, 1.5, 'aim reached'),
        (3.0, 1.5, 1.6, 'met'),
        (3.0, 1.5, 3.0, 'met'),
        (3.0, 1.5, 3.6, 'short by 20.0 %'),
        (0.6, 0.8, 0.8, 'aim reached'),
        (0.6, 0.8, 0.79, 'met'),
        (0.6, 0.8, 0.6, 'met'),
        (0.6, 0.8, 0.599, 'short by 0.2 %'),
        (0.6, 0.8, 0.3, 'short by 50.0 %'),
    ],
)
def test_how_far_a_target_is_met(target, aim, value, words):
    assert Target('bridge', 'ratio', 'this', target, aim).met(value) == words


def test_targets_stand_beside_what_was_measured_with_its_interval():
    table = target_table(
        {
            'bridge': {'ratio': 0.65, 'ratio_interval': [0.6, 0.7021]},
            'learning': {
                'steps_ratio_vs_best_sb3': 0.1,
                'steps_ratio_vs_best_sb3_interval': [0.05, None],
                'wall_ratio_vs_best_sb3': None,
            },
            'update': {'mher_ratio_vs_sb3_batch_64': 3.6},
        }
    )
    rows = dict(zip(((t.benchmark, t.figure) for t in TARGETS), table.rows, strict=True))
    assert rows['bridge', 'ratio'][2:] == ('>= 0.6', '>= 0.8', '0.65 [0.6, 0.702]', 'met')
    assert rows['learning', 'steps_ratio_vs_best_sb3'][4:] == ('0.1 [0.05, inf]', 'met')
    assert rows['learning', 'wall_ratio_vs_best_sb3'][4:] == ('not measured', '')
    assert rows['update', 'mher_ratio_vs_sb3_batch_64'][4:] == ('3.6', 'short by 20.0 %')
    assert rows['latency', 'ratio_vs_rclpy'][4:] == ('not measured', '')


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / 'found'
    path.mkdir()
    write('bridge', to_dict('bridge', FOUND, {}), Figure(), path)
    return path


def test_what_stands_around_the_marks_stays(tmp_path, folder):
    page = tmp_path / 'page.md'
    page.write_text(f'Above.\n\n{BEGIN}\nold\n{END}\n\nBelow.\n')
    for _ in range(2):
        write_report(page, folder, {'bridge': 'how fast', 'latency': 'how long'})
    told = page.read_text()
    assert told.startswith(f'Above.\n\n{BEGIN}\nMeasured on: processor: ')
    assert told.endswith(f'\n{END}\n\nBelow.\n')
    assert '\nold\n' not in told
    assert told.count('## `mher bench bridge`\n\nHow fast.\n\n**Speed**') == 1
    assert '![how fast](found/bridge.png)' in told
    assert told.count('## `mher bench latency`\n\nHow long.\n\nNot measured yet.') == 1
    assert '| >= 0.6   | >= 0.8    | 2 ' in told


def test_a_page_that_is_not_there_is_made(tmp_path, folder):
    page = tmp_path / 'new' / 'page.md'
    write_report(page, folder, {'bridge': 'how fast'})
    assert page.read_text().startswith('# Benchmarks\n')
    assert '(../found/bridge.json)' in page.read_text()


@pytest.mark.parametrize('content', ['mine', BEGIN, END, f'{END}\n{BEGIN}'])
def test_a_page_without_both_marks_in_order_is_left_alone(tmp_path, folder, content):
    page = tmp_path / 'page.md'
    page.write_text(content)
    with pytest.raises(OptionError, match=r'page\.md'):
        write_report(page, folder, {'bridge': 'how fast'})
    assert page.read_text() == content
