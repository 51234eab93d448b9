"""What argparse turns texts into, with refusals that say what was expected."""

from __future__ import annotations

import argparse
import math

__all__ = ['finite', 'names', 'port', 'positive', 'positives', 'seed', 'seeds']


def finite(text: str) -> float:
    """Read a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f'takes a finite number, got {text!r}')
    return number


def port(text: str) -> int:
    """Read the number of a TCP port; 0 stands for any that is free."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'takes a whole number from 0 to 65535, got {text!r}')
    return int(text)


def positive(text: str) -> int:
    return _at_least(text, 1)


def positives(text: str) -> list[int]:
    """Read whole numbers with commas between them."""
    return [_at_least(part, 1) for part in text.split(',')]


def seed(text: str) -> int:
    return _at_least(text, 0)


def seeds(text: str) -> list[int]:
    """Read how many seeds, from 1 (``5``), or which (``1-5``, ``1,2,7``)."""
    if text.isdecimal():
        return list(range(1, _at_least(text, 1) + 1))
    found: list[int] = []
    for part in text.split(','):
        first, _, last = part.partition('-')
        found += range(_at_least(first, 0), _at_least(last or first, 0) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f'takes seeds such as 5, 1-5 or 1,2,7, got {text!r}')
    return list(dict.fromkeys(found))


def names(text: str) -> list[str]:
    """Read names with commas between them."""
    found = [name.strip() for name in text.split(',')]
    if not all(found):
        raise argparse.ArgumentTypeError(f'takes names such as a,b, got {text!r}')
    return found


def _at_least(text: str, low: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if value < low:
        raise argparse.ArgumentTypeError(f'takes a whole number of at least {low}, got {text!r}')
    return value
