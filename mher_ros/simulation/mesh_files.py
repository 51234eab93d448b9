"""Meshes of compiled models as files, for programs that show them."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
import re
import tempfile

from mher_ros.files import write_atomically
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['mesh_file']


def mesh_file(model: mujoco.MjModel, mesh: int) -> Path:
    """
    Return a binary STL file with the mesh in the frame of its geoms, written if it is not there.

    It is in the user's cache, or in a temporary folder of this process where there is none.
    """
    first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    vertices = model.mesh_vert[first : first + count]
    first, count = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    content = _stl(vertices[model.mesh_face[first : first + count]])
    name = re.sub(r'\W+', '_', model.mesh(mesh).name.removeprefix('robot0:')) or 'mesh'
    below = Path(hashlib.sha256(content).hexdigest()[:16]) / f'{name}.stl'
    for folder in (_cache_folder, _temporary_folder):
        try:
            path = folder() / below
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)
            return path
        except (OSError, RuntimeError) as error:  # no home, no permission, a full disk
            refused = error
    raise refused


def _stl(triangles: NDArray[np.float32]) -> bytes:
    """Return triangles (n, 3, 3) as a binary STL file."""
    facets = np.zeros(
        len(triangles),
        [('normal', '<f4', 3), ('vertices', '<f4', (3, 3)), ('attribute', '<u2')],
    )
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    facets['normal'] = normals / np.where(lengths > 0.0, lengths, 1.0)
    facets['vertices'] = triangles
    return bytes(80) + np.uint32(len(facets)).astype('<u4').tobytes() + facets.tobytes()


def _cache_folder() -> Path:
    told = os.environ.get('XDG_CACHE_HOME', '')
    cache = Path(told) if os.path.isabs(told) else Path.home() / '.cache'
    return cache / 'mher_ros' / 'meshes'


def _temporary_folder() -> Path:
    return Path(_own_temporary_folder().name)


@functools.cache
def _own_temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that goes away with this process."""
    return tempfile.TemporaryDirectory(prefix='mher_ros_meshes_')
