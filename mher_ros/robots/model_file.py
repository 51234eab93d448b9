"""Finds and reads the file with the model of an arm."""

from importlib.metadata import Distribution, distribution, PackageNotFoundError
import os
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, TreeBuilder, XMLParser

from mher_ros.errors import MherError
from mher_ros.files import read_at_most
from mher_ros.robots.description import DescriptionError

PACKAGE, PYTHON, FILE = 'package://', 'python://', 'file://'


class ModelFileError(MherError, FileNotFoundError):
    """A file was not found."""


def find_file(address: str, folder: Path) -> Path:
    """
    Return the file at an address.

    ``package://PACKAGE/PATH`` is in the share folder of a ROS package. ``python://PROJECT/PATH``
    is a file of ``pip install PROJECT`` whose path ends in ``PATH``. Everything else is a path,
    relative to ``folder``.

    A package that is not installed is also searched among the parents of ``folder``, as in
    collections of models.
    """
    try:
        if address.startswith(PACKAGE):
            path = _in_package(*_parts(address, PACKAGE), folder)
        elif address.startswith(PYTHON):
            path = _in_project(*_parts(address, PYTHON))
        else:
            path = folder / Path(address.removeprefix(FILE)).expanduser()
        is_file = path.is_file()
    except ModelFileError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # too long a name, an unknown user
        raise ModelFileError(f'{address[:200]!r} names no file: {error}'[:400]) from None
    if not is_file:
        raise ModelFileError(f'{address} names a file; there is none at {path}')
    return path


def _parts(address: str, scheme: str) -> tuple[str, str]:
    name, _, rest = address.removeprefix(scheme).partition('/')
    if not name or not rest:
        raise ModelFileError(f'{scheme}NAME/PATH is expected, got {address!r}')
    return name, rest


def _in_package(package: str, rest: str, folder: Path) -> Path:
    prefixes = [Path(entry) for entry in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)]
    shares = [prefix / 'share' / package for prefix in prefixes]
    shares += [parent for parent in (folder, *folder.parents) if parent.name == package]
    for share in shares:
        if share.is_dir():
            return share / rest
    raise ModelFileError(
        f'{PACKAGE}{package}/... needs the ROS package {package}; it is not on AMENT_PREFIX_PATH. '
        'Is it installed, and its setup.bash sourced?'
    )


def _in_project(project: str, rest: str) -> Path:
    try:
        installed: Distribution = distribution(project)
    except PackageNotFoundError:
        raise ModelFileError(
            f'{PYTHON}{project}/... needs the Python package {project}; try pip install {project}'
        ) from None
    wanted = Path(rest).parts
    found = [file for file in installed.files or () if file.parts[-len(wanted) :] == wanted]
    if len(found) != 1:
        names = ', '.join(map(str, found)) or 'none'
        raise ModelFileError(
            f'one file of the Python package {project} whose path ends in {rest} is expected; '
            f'got {names}'
        )
    return Path(str(found[0].locate()))


MAX_BYTES = 2**20  # five times the largest URDF in example-robot-data
MAX_ELEMENTS = 20_000
MAX_ATTRIBUTES = 100  # of one element
DEEPEST = 128  # levels of elements: bodies of MJCF are nested


def read_model(path: Path) -> str:
    """Return the text of a file with a model."""
    try:
        return read_at_most(path, MAX_BYTES).decode()
    except OSError as error:
        raise DescriptionError(f'{path}: cannot be read: {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise DescriptionError(f'{path}: UTF-8 is expected, got {error}') from None


def parse_model(text: str, most: int = MAX_BYTES) -> Element:
    """Return the top element of a model of at most ``most`` characters."""
    if len(text) > most:
        raise DescriptionError(
            f'a model of at most {most} characters is expected, got {len(text)}'
        )
    parser = XMLParser(target=_BoundedBuilder())
    try:
        parser.feed(text)
        top: Element = parser.close()
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise DescriptionError(f'XML is expected, got {text.strip()[:40]!r}...: {error}') from None
    return top


class _BoundedBuilder(TreeBuilder):
    """Builds a tree of limited size."""

    def __init__(self) -> None:
        super().__init__()
        self._count = self._depth = 0

    def doctype(self, *_: str | None) -> None:
        raise DescriptionError('a model without <!DOCTYPE> is expected, got one with it')

    def start(self, tag: str, attributes: dict[str, str]) -> Element:
        self._count += 1
        self._depth += 1
        for what, found, most in (
            ('elements', self._count, MAX_ELEMENTS),
            ('levels of elements', self._depth, DEEPEST),
            (f'attributes of <{tag[:40]}>', len(attributes), MAX_ATTRIBUTES),
        ):
            if found > most:
                raise DescriptionError(f'a model has at most {most} {what}, got more')
        return super().start(tag, attributes)

    def end(self, tag: str) -> Element:
        self._depth -= 1
        return super().end(tag)
