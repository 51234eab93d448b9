"""A tiny run by the command line, and what is in a folder or on the screen afterwards."""

import json

import pytest

TINY = (
    *('--preset', 'paper'),
    *('--set', 'schedule.warmup_episodes=1'),
    *('--set', 'schedule.evaluation_goals=5'),
    *('--set', 'agent.hidden=16,16'),
    *('--set', 'model.hidden=16'),
    *('--set', 'model.warmup_fits=2'),
)

TINY_TRAINING = ('train', 'point2d_large', *TINY, '--steps', '300')


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob('*')
    }


def figures(text):
    """Return the one JSON object that ``text`` is."""
    assert text.count('\n') == 1
    assert text.endswith('\n')
    values = json.loads(text, parse_constant=lambda name: pytest.fail(f'{name} is no JSON'))
    assert isinstance(values, dict)
    return values
