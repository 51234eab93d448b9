"""The table of outputs, and what the documentation says of each."""

from pathlib import Path

from mher_ros.robots.outputs import OUTPUTS

DOCS = Path(__file__).resolve().parents[2] / 'docs'
SENT = [name for name, output in OUTPUTS.items() if output.message]


def rows(page, heading):
    """Return the cells of the table with this first heading, by the first cell of each row."""
    lines = iter((DOCS / page).read_text().splitlines())
    for line in lines:
        if line.startswith(f'| {heading} |'):
            break
    next(lines)
    table = {}
    for line in lines:
        if not line.startswith('|'):
            break
        first, *cells = (cell.strip() for cell in line.strip('|').split('|'))
        table.update(dict.fromkeys((name.strip('` ') for name in first.split(',')), cells))
    return table


def test_documentation_describes_each_output_and_no_other():
    table = rows('deploy.md', '`output`')
    assert table.keys() == OUTPUTS.keys()
    for name in SENT:
        message, _, if_killed = table[name]
        assert message.startswith(OUTPUTS[name].message), name
        assert if_killed == OUTPUTS[name].if_killed, name


def test_documentation_describes_the_simulated_controller_of_each_output():
    assert sorted(rows('ros.md', 'output')) == sorted(SENT)


def test_documentation_of_robot_files_lists_each_output():
    text = rows('add_an_arm.md', 'key')['output'][-1]
    assert [name for name in OUTPUTS if f'`{name}`' not in text] == []
