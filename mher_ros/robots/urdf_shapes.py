"""Reads the collision shapes of the links of a URDF."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from mher_ros.errors import MherError
from mher_ros.robots.description import DescriptionError
from mher_ros.robots.mesh_file import MeshBudget
from mher_ros.robots.model_file import find_file
from mher_ros.robots.solids import (
    box_solid,
    capsule_solid,
    cylinder_solid,
    LinkShape,
    mesh_solid,
    Solid,
)
from mher_ros.robots.urdf import numbers_of, origin_of
import numpy as np

MAX_SHAPES = 1000  # of a robot


def urdf_shapes(top: Element, folder: Path) -> Iterator[LinkShape]:
    """Yield the collision shapes of links; ``folder``: of their meshes."""
    if sum(map(len, top.iter('geometry'))) > MAX_SHAPES:
        raise DescriptionError(f'a robot of at most {MAX_SHAPES} shapes is expected, got more')
    budget = MeshBudget()
    for link in top.findall('link'):
        name, shapes = link.get('name', ''), link.findall('collision')
        if not shapes and link.find('visual') is not None:
            yield LinkShape(name, None, trouble='no collision shape')
        for shape in shapes:
            try:
                origin = origin_of(shape)
                for one in shape.iterfind('geometry/*'):
                    solid = _solid(one, folder, budget).at(origin)
                    yield LinkShape(name, solid, shape.get('name', ''))
            except (MherError, OSError) as error:
                yield LinkShape(name, None, trouble=str(error))
            except ValueError as error:
                raise DescriptionError(f'a collision shape of {name}: {error}') from None


def _solid(shape: Element, folder: Path, budget: MeshBudget) -> Solid:
    """
    Return the solid of a child of ``geometry``; MeshError if a mesh cannot be read.

    Meshes are named relative to ``folder``.
    """
    try:
        if shape.tag == 'box':
            return box_solid(np.array(numbers_of(shape, 'size', '')))
        if shape.tag == 'sphere':
            return Solid(np.zeros((1, 3)), float(shape.attrib['radius']))
        if shape.tag in ('cylinder', 'capsule'):
            radius, length = float(shape.attrib['radius']), float(shape.attrib['length'])
            if shape.tag == 'cylinder':
                return cylinder_solid(radius, length)
            return capsule_solid(radius, length)
        if shape.tag != 'mesh':
            raise ValueError(f'box, sphere, cylinder or mesh is expected, got {shape.tag[:80]}')
        scale = numbers_of(shape, 'scale', '1 1 1')
    except (KeyError, ValueError) as error:
        raise DescriptionError(f'a collision shape of the URDF: {error}') from None
    path = find_file(shape.get('filename', ''), folder)
    budget.take(path, tuple(scale))
    return mesh_solid(path, (scale[0], scale[1], scale[2]))
