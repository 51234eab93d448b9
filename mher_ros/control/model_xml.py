"""
URDF and MJCF as trees of elements, read within limits.

A model may come over a topic from anybody, and is read before it is judged. What it can cost is
bounded: the size of the text, the number and the depth of its elements. There are no document
types, hence no entities, which could stand for far more text than there is.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, TreeBuilder, XMLParser

from mher_ros.control.description import DescriptionError
from mher_ros.files import read_at_most

__all__ = ['parse_model', 'read_model']

MOST_BYTES = 2**20
"""Five times the largest URDF of example-robot-data."""
MOST_ELEMENTS = 20_000
MOST_ATTRIBUTES = 100
"""Of one element."""
DEEPEST = 128
"""Levels of elements: bodies of MJCF lie inside each other."""


def read_model(path: Path) -> str:
    """Return the text of a file with a model."""
    try:
        return read_at_most(path, MOST_BYTES).decode()
    except OSError as error:
        raise DescriptionError(f'{path}: cannot be read: {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise DescriptionError(f'{path}: UTF-8 is expected, got {error}') from None


def parse_model(text: str) -> Element:
    """Return the top element of a model."""
    if len(text) > MOST_BYTES:
        raise DescriptionError(
            f'a model of at most {MOST_BYTES} characters is expected, got {len(text)}'
        )
    parser = XMLParser(target=_BoundedBuilder())
    try:
        parser.feed(text)
        top: Element = parser.close()
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise DescriptionError(
            f'URDF or MJCF is expected, got {text.strip()[:40]!r}...: {error}'
        ) from None
    return top


class _BoundedBuilder(TreeBuilder):
    """Builds a tree until it is too large."""

    def __init__(self) -> None:
        super().__init__()
        self._count = self._depth = 0

    def doctype(self, *_: str | None) -> None:
        raise DescriptionError('a model without <!DOCTYPE> is expected, got one with it')

    def start(self, tag: str, attributes: dict[str, str]) -> Element:
        self._count += 1
        self._depth += 1
        for what, found, most in (
            ('elements', self._count, MOST_ELEMENTS),
            ('levels of elements', self._depth, DEEPEST),
            (f'attributes of <{tag[:40]}>', len(attributes), MOST_ATTRIBUTES),
        ):
            if found > most:
                raise DescriptionError(f'a model has at most {most} {what}, got more')
        return super().start(tag, attributes)

    def end(self, tag: str) -> Element:
        self._depth -= 1
        return super().end(tag)
