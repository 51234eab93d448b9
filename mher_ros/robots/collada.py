"""Reads the vertices of Collada files: geometries, as the nodes of the visual scene place them."""

from collections.abc import Iterator
import math
from xml.etree.ElementTree import Element

from mher_ros.robots.description import DescriptionError
from mher_ros.robots.model_file import DEEPEST, parse_model
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MAX_NODES = 10_000  # a node may contain others many times
MAX_VERTICES = 2_000_000
NUMBERS = {'matrix': 16, 'translate': 3, 'rotate': 4, 'scale': 3}
"""How many numbers a transform has; other ones are refused."""


class ColladaError(DescriptionError):
    """The content of a Collada file is not as expected."""


def collada_vertices(text: str) -> Vector:
    """
    Return vertices (m, 3) [m].

    ``unit`` is applied. ``up_axis`` is not, as in RViz, MoveIt and Gazebo: a mesh of a robot is in
    the frame of its link.
    """
    with np.errstate(over='ignore', invalid='ignore'):  # the result may be infinite
        return _Collada(parse_model(text, most=len(text))).vertices()


class _Collada:
    def __init__(self, top: Element) -> None:
        for element in top.iter():
            element.tag = element.tag.rpartition('}')[2]  # without the namespace
        if top.tag != 'COLLADA':
            raise ColladaError(f'<COLLADA> is expected, got <{top.tag[:80]}>')
        self._top = top
        self._named = {element.get('id', ''): element for element in top.iter()}
        self._nodes = self._count = 0
        self._read: dict[str, Vector] = {}

    def vertices(self) -> Vector:
        unit = self._top.find('asset/unit')
        scale = 1.0 if unit is None else _numbers(unit.get('meter', '1'), 1)[0]
        if not 1e-6 <= scale <= 1e6:
            raise ColladaError(f'a unit from 1e-6 to 1e6 m is expected, got {scale:g}')
        found = [placed for node in self._roots() for placed in self._below(node, np.eye(4), 0)]
        return scale * np.concatenate([np.empty((0, 3)), *found])

    def _roots(self) -> list[Element]:
        """Return the nodes of the visual scene."""
        shown = self._top.find('scene/instance_visual_scene')
        if shown is not None:
            return self._target(shown, 'url', 'visual_scene').findall('node')
        scene = self._top.find('library_visual_scenes/visual_scene')
        if scene is None:
            raise ColladaError('a visual scene is expected, there is none')
        return scene.findall('node')

    def _below(self, node: Element, placed: Vector, depth: int) -> Iterator[Vector]:
        """Yield the vertices (m, 3) of the geometries of a node, and of the nodes in it."""
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > DEEPEST:
            raise ColladaError(f'at most {MAX_NODES} nodes on {DEEPEST} levels are expected')
        for child in node:
            if child.tag in NUMBERS:
                placed = placed @ _transform(child)
            elif child.tag == 'node':
                yield from self._below(child, placed, depth + 1)
            elif child.tag == 'instance_node':
                yield from self._below(self._target(child, 'url', 'node'), placed, depth + 1)
            elif child.tag == 'instance_geometry':
                vertices = self._geometry(child.get('url', ''), child)
                self._count += len(vertices)
                if self._count > MAX_VERTICES:
                    raise ColladaError(f'at most {MAX_VERTICES} vertices are expected, got more')
                yield vertices @ placed[:3, :3].T + placed[:3, 3]
            elif child.tag in ('instance_controller', 'lookat', 'skew'):
                raise ColladaError(f'geometries that do not bend are expected, got <{child.tag}>')

    def _geometry(self, url: str, instance: Element) -> Vector:
        if url not in self._read:
            geometry = self._target(instance, 'url', 'geometry')
            inputs = [
                one
                for one in geometry.iterfind('*/vertices/input')
                if one.get('semantic') == 'POSITION'
            ]
            if not inputs:
                raise ColladaError('a geometry has vertices with a POSITION; one has none')
            sources = [self._target(one, 'source', 'source') for one in inputs]
            self._read[url] = np.concatenate([self._source(source) for source in sources])
        return self._read[url]

    def _source(self, source: Element) -> Vector:
        array, accessor = source.find('float_array'), source.find('technique_common/accessor')
        if array is None or accessor is None:
            raise ColladaError('a source of vertices has a float_array and an accessor')
        numbers = _numbers(array.text or '')
        stride, offset, count = (
            _whole(accessor.get(key, default))
            for key, default in (('stride', '1'), ('offset', '0'), ('count', '0'))
        )
        if stride < 3 or offset + count * stride > len(numbers) + stride - 3:
            raise ColladaError(
                f'{count} vertices of {stride} numbers are expected, got {len(numbers)} numbers'
            )
        rows = offset + stride * np.arange(count)
        return np.stack([numbers[rows + axis] for axis in range(3)], axis=1)

    def _target(self, element: Element, key: str, tag: str) -> Element:
        """Return the element with the tag ``tag`` whose id an attribute gives, as ``#ID``."""
        name = element.get(key, '')
        target = self._named.get(name.removeprefix('#'))
        if not name.startswith('#') or target is None or target.tag != tag:
            raise ColladaError(f'the id of a {tag} is expected, got {name[:80]!r}')
        return target


def _transform(element: Element) -> Vector:
    numbers, made = _numbers(element.text or '', NUMBERS[element.tag]), np.eye(4)
    if element.tag == 'matrix':
        made[:3] = numbers.reshape(4, 4)[:3]
    elif element.tag == 'translate':
        made[:3, 3] = numbers
    elif element.tag == 'scale':
        made[:3, :3] = np.diag(numbers)
    else:
        axis, angle = numbers[:3], math.radians(numbers[3])
        length = float(np.linalg.norm(axis))
        if length == 0.0:
            raise ColladaError('a rotation about an axis is expected, got 0 0 0')
        x, y, z = axis / length
        cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
        made[:3, :3] += math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross
    return made


def _numbers(text: str, count: int = -1) -> Vector:
    try:
        numbers = np.array(text.split(), np.float64)
    except ValueError as error:
        raise ColladaError(f'numbers are expected; {error}'[:200]) from None
    if count not in (-1, len(numbers)) or not np.isfinite(numbers).all():
        what = 'finite numbers' if count == -1 else f'{count} finite numbers'
        raise ColladaError(f'{what} are expected, got {text.strip()[:80]!r}')
    return numbers


def _whole(text: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        raise ColladaError(f'a whole number is expected, got {text[:80]!r}')
    return int(text)
