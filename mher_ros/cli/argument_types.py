"""What argparse turns texts into, with refusals that say what was expected."""

from __future__ import annotations

import argparse

__all__ = ['positive', 'seed', 'seeds']


def positive(text: str) -> int:
    return _at_least(text, 1)


def seed(text: str) -> int:
    return _at_least(text, 0)


def seeds(text: str) -> list[int]:
    """Read seeds such as ``1-5`` or ``1,2,7``."""
    found: list[int] = []
    for part in text.split(','):
        first, _, last = part.partition('-')
        found += range(_at_least(first, 0), _at_least(last or first, 0) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f'takes seeds such as 1-5 or 1,2,7, got {text!r}')
    return found


def _at_least(text: str, low: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if value < low:
        raise argparse.ArgumentTypeError(f'takes a whole number of at least {low}, got {text!r}')
    return value
