"""Where the file with an arm's model is."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution, PackageNotFoundError
import os
from pathlib import Path

from mher_ros.errors import MherError

__all__ = ['find_file', 'ModelFileError']

PACKAGE, PYTHON, FILE = 'package://', 'python://', 'file://'


class ModelFileError(MherError, FileNotFoundError):
    """A file that is not where it was said to be."""


def find_file(address: str, folder: Path) -> Path:
    """
    Return the file at an address.

    ``package://PACKAGE/PATH`` is below a ROS package's share folder. ``python://PROJECT/PATH`` is
    a file that ``pip install PROJECT`` put somewhere, whose path ends in ``PATH``. Everything else
    is a path, relative to ``folder``.

    A package that is not installed is also looked for among the folders that ``folder`` is in, as
    collections of models are laid out.
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
        told = ', '.join(map(str, found)) or 'none'
        raise ModelFileError(
            f'one file of the Python package {project} whose path ends in {rest} is expected; '
            f'got {told}'
        )
    return Path(str(found[0].locate()))
