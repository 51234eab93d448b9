"""Reads the vertices of meshes: STL, OBJ and Collada files."""

from collections.abc import Hashable
from pathlib import Path

from mher_ros.files import read_at_most
from mher_ros.robots.collada import collada_vertices
from mher_ros.robots.description import DescriptionError
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MAX_MESH_BYTES = 2**25
MAX_VERTICES = 500_000
MAX_TOTAL_BYTES = 2**27  # of the meshes of a robot
FARTHEST_VERTEX = 1e6  # largest coordinate [m]: its squares are finite
KINDS = ('.stl', '.obj', '.dae')
FACET = np.dtype([('normal', '<f4', 3), ('vertices', '<f4', (3, 3)), ('attribute', '<u2')])


class MeshError(DescriptionError):
    """A mesh cannot be read."""


class MeshBudget:
    """Counts the bytes of the meshes of one robot: reading them takes a bounded time."""

    def __init__(self) -> None:
        self._sizes: dict[Hashable, int] = {}

    def take(self, path: Path, variant: Hashable = None) -> None:
        """Count a file, once for each variant; MeshError if all files together are too large."""
        self._sizes[path, variant] = path.stat().st_size
        if sum(self._sizes.values()) > MAX_TOTAL_BYTES:
            raise MeshError(f'all meshes together have more than {MAX_TOTAL_BYTES} bytes')


def mesh_vertices(path: Path, scale: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Vector:
    """Return the different vertices (m, 3) of an STL, OBJ or Collada file, scaled [m]."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise MeshError(f'{path.name}: an STL, OBJ or Collada (.dae) file is expected')
    content = read_at_most(path, MAX_MESH_BYTES)
    try:
        if kind == '.dae':
            found = collada_vertices(content.decode())
        elif kind == '.stl' and len(content) == 84 + 50 * int.from_bytes(content[80:84], 'little'):
            facets = np.frombuffer(content, FACET, offset=84)
            found = facets['vertices'].reshape(-1, 3).astype(np.float64)
        else:
            word = b'vertex' if kind == '.stl' else b'v'
            lines = (line.split() for line in content.splitlines())
            rows = [line[1:4] for line in lines if line and line[0] == word]
            found = np.array(rows, np.float64).reshape(-1, 3)
    except DescriptionError as error:
        raise MeshError(f'{path.name}: {error}') from None
    except ValueError as error:
        raise MeshError(f'{path.name}: vertices are three numbers; {error}') from None
    if not len(found) or not np.isfinite(found).all():
        raise MeshError(f'{path.name}: vertices of finite numbers are expected')
    with np.errstate(over='ignore'):
        found = found * scale
    farthest = np.abs(found).max()
    if not farthest <= FARTHEST_VERTEX:
        raise MeshError(
            f'{path.name}: coordinates up to {FARTHEST_VERTEX:g} m are expected, got {farthest:g} '
            'm; scale gives its unit'
        )
    vertices = np.unique(found, axis=0)
    if len(vertices) > MAX_VERTICES:
        raise MeshError(
            f'{path.name}: at most {MAX_VERTICES} different vertices are expected, got '
            f'{len(vertices)}; simplify the mesh'
        )
    return vertices
