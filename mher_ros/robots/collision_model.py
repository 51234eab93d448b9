"""The solids of an arm and around it, and the pairs of them that must not touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
import dataclasses
import itertools
import math
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.robots.description import DescriptionError
from mher_ros.robots.model_file import find_file, parse_model, read_model
from mher_ros.robots.robot import Robot
from mher_ros.robots.solids import Solid, with_thickness
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int_]

SAMPLES = 50  # random postures: a pair that touches in all of them always does
HOME_SHARE = 0.5  # of the distance of two parts at home that becomes their clearance, if smaller
CAPSULE = 2  # vertices of a solid that is a capsule


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """A solid that is fixed to one body of the arm's model."""

    name: str
    """Of its link, or of the obstacle."""
    body: int
    """0: the base; i: what the i-th joint from the base moves."""
    solid: Solid
    """In the frame of the body."""
    is_obstacle: bool = False
    links: frozenset[str] = frozenset()
    """Links for which an obstacle holds; empty: all."""


class CollisionModel:
    """
    Parts of an arm and obstacles, as arrays for all pairs that must not touch.

    Of each pair, the first part is nearer to the base. Excluded are pairs on the same body or on
    neighbouring ones, pairs of the robot file's ``collision.ignore`` and of its SRDF, and parts of
    the arm that touch at home or in all of some random postures.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        arm: mujoco.MjModel,
        robot: Robot,
        home: Vector,
        base_link: str,
        excluded: Set[frozenset[str]] = frozenset(),
    ) -> None:
        """
        Take the chain of joints ``arm``, and ``home`` (nv,), a posture without contact.

        ``base_link`` is the link that the first joint connects to the arm. ``excluded``: pairs of
        links that may touch, besides those of the robot file.
        """
        self._set_parts(parts, arm)
        ignored = ignored_pairs(robot) | excluded
        pairs = [
            pair
            for pair in self._possible_pairs()
            if frozenset(self.parts[one].name for one in pair) not in ignored
            and not self._are_neighbours(*pair, base_link)
        ]
        self._set_pairs(pairs, robot.collision.clearance)
        self._exclude_touching(home)

    def _set_parts(self, parts: Sequence[Part], arm: mujoco.MjModel) -> None:
        self.parts = tuple(parts)
        self.model = _build_model(parts, arm)
        """Bodies and joints of the arm, with one geom for each part but planes."""
        count = max((len(part.solid.vertices) for part in parts), default=1)
        vertices = np.array([padded(part.solid.vertices, count) for part in parts])
        self.columns = np.ascontiguousarray(vertices.transpose(0, 2, 1))
        """Vertices (parts, 3, m) in the frames of their bodies [m]; the first one is repeated."""
        self.radii = np.array([part.solid.radius for part in parts])
        """(parts,) [m]"""
        self.centres = (vertices.min(axis=1) + vertices.max(axis=1)) / 2.0
        """Centres of spheres around the parts, in the frames of their bodies (parts, 3) [m]."""
        away = np.linalg.norm(vertices - self.centres[:, None], axis=2).max(axis=1)
        self.sizes = away + self.radii
        """Radii of these spheres (parts,) [m]."""
        self.bodies = np.array([part.body for part in parts], np.int_)
        """(parts,)"""
        self.slides = self.model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        """Which joints are prismatic (nv,)."""
        self.geoms = np.full(len(parts), -1)
        """Geom of each part (parts,); -1: it is a plane."""
        for index in range(self.model.ngeom):
            self.geoms[int(self.model.geom(index).name)] = index

    def _possible_pairs(self) -> Iterator[tuple[int, int]]:
        for one, other in itertools.combinations(range(len(self.parts)), 2):
            if self.bodies[one] == self.bodies[other]:
                continue
            first, last = (one, other) if self.bodies[one] < self.bodies[other] else (other, one)
            links = self.parts[first].links
            if not links or self.parts[last].name in links:
                yield first, last

    def _are_neighbours(self, one: int, other: int, base_link: str) -> bool:
        first, last = self.parts[one], self.parts[other]
        if first.body == 0:
            return last.body == 1 and first.name == base_link and not first.is_obstacle
        return last.body == first.body + 1

    def _set_pairs(self, pairs: list[tuple[int, int]], clearance: float | Vector) -> None:
        self.pairs = np.array(pairs, np.int_).reshape(-1, 2)
        """Indices of parts (pairs, 2)."""
        self.clearances = np.broadcast_to(np.asarray(clearance, np.float64), len(pairs)).copy()
        """Least distances (pairs,) [m]."""
        first, last = self.bodies[self.pairs].T
        joints = np.arange(1, self.model.nbody)
        self.between = (joints > first[:, None]) & (joints <= last[:, None])
        """Which joints move one part of a pair against the other (pairs, nv)."""
        self._set_geoms()

    def _set_geoms(self) -> None:
        # MuJoCo 3.3 returns the segment reversed if the types are in descending order.
        pairs, types = self.geoms[self.pairs], self.model.geom_type
        swaps = (types[pairs[:, 0]] > types[pairs[:, 1]]) & (pairs[:, 0] >= 0)
        self.pair_geoms: list[list[int]] = np.where(swaps[:, None], pairs[:, ::-1], pairs).tolist()
        """Geoms of each pair, in the order in which MuJoCo wants them."""
        self.signs = np.where(swaps, -1.0, 1.0)
        """-1 if that is the reverse order (pairs,)."""
        self.pair_radii = self.radii[self.pairs].sum(axis=1)
        """Sums of the radii of both parts (pairs,) [m]."""

    def _exclude_touching(self, home: Vector) -> None:
        """Exclude parts that touch at home, or always; no clearance is larger than at home."""
        model, random = self.model, np.random.default_rng(0)
        low, high = np.where(model.jnt_limited, model.jnt_range.T, ((-math.pi,), (math.pi,)))
        query = PairDistances(self)
        every = np.arange(len(self.pairs))
        query.move(home)
        at_home = query.evaluate(every)
        always = np.ones(len(every), bool)
        for posture in random.uniform(low, high, (SAMPLES, model.nv)):
            left = every[always]
            if not left.size:
                break
            query.move(posture)
            always[left] = query.evaluate(left) <= 0.0
        obstacles = np.array([self.parts[one].is_obstacle for one in self.pairs[:, 0]], bool)
        kept = obstacles | ~(always | (at_home <= 0.0))
        clearances = self.clearances.copy()
        clearances[~obstacles] = np.minimum(clearances, HOME_SHARE * at_home)[~obstacles]
        self._set_pairs([(a, b) for a, b in self.pairs[kept].tolist()], clearances[kept])

    def names(self, pair: int) -> tuple[str, str]:
        """Return the names of the links, or of link and obstacle, of a pair."""
        one, other = self.pairs[pair]
        return self.parts[one].name, self.parts[other].name


class PairDistances:
    """
    Signed distances of pairs of parts in a posture. It has its own ``MjData``.

    A distance is the gap between two parallel planes, each on one side of a part. Their normal
    comes from ``mj_geomDistance``. No normal gives a larger gap than the distance, so a wrong one
    makes a result too small, never too large.
    """

    def __init__(self, collision: CollisionModel) -> None:
        self._collision, self._model = collision, collision.model
        self.data = mujoco.MjData(collision.model)
        self._rotations = self.data.xmat.reshape(-1, 3, 3)
        normals = [part.solid.normal for part in collision.parts]
        self._plane_normals = {
            index: normal
            for index, first in enumerate(collision.pairs[:, 0].tolist())
            if (normal := normals[first]) is not None
        }

    def move(self, posture: Vector) -> None:
        """Take the joint positions (nv,) of the model."""
        self.data.qpos[:] = posture
        mujoco.mj_kinematics(self._model, self.data)

    def evaluate(self, pairs: Indices, most: float = 10.0) -> Vector:
        """Return distances (p,) [m]; those above ``most`` [m] are returned as ``most``."""
        normals, _, far = self._planes(pairs, most)
        return np.where(far, most, self.gaps(pairs, normals))

    def least(self, parts: Indices) -> Vector:
        """Return lower bounds of the distances of pairs of parts (p, 2) [m]."""
        collision = self._collision
        places = self.data.xpos[collision.bodies] + self._centres()
        apart = np.linalg.norm(places[parts[:, 0]] - places[parts[:, 1]], axis=1)
        return np.asarray(apart - collision.sizes[parts].sum(axis=1))

    def reach(self) -> Vector:
        """
        Return the largest distances of points of last parts from joint axes (pairs, nv) [m].

        That is how far a part of a pair moves against the other one per rad; 1 for a prismatic
        joint, and 0 for a joint that is not between them.
        """
        collision, data = self._collision, self.data
        away = (data.xpos[collision.bodies] + self._centres())[:, None] - data.xanchor
        along = (away * data.xaxis).sum(axis=2)
        squares = np.maximum((away * away).sum(axis=2) - along * along, 0.0)
        reach = np.sqrt(squares) + collision.sizes[:, None]
        if collision.slides.any():
            reach[:, collision.slides] = 1.0
        return np.asarray(collision.between * reach[collision.pairs[:, 1]])

    def _centres(self) -> Vector:
        """Return the centres of the parts relative to their bodies, in the base frame (m, 3)."""
        collision = self._collision
        turns = self._rotations[collision.bodies]
        return np.asarray((turns @ collision.centres[:, :, None])[:, :, 0])

    def planes(self, pairs: Indices, most: float) -> tuple[Vector, Vector, NDArray[np.bool_]]:
        """
        Return normals (p, 3), nearest points of last parts (p, 3), and which pairs are far (p,).

        Normals point from the first part to the last one, in the frame of the first one. Points
        are in the frame of the last one. Of pairs farther than ``most`` [m] they are of no use.
        """
        normals, points, far = self._planes(pairs, most)
        body = self._collision.bodies[self._collision.pairs[pairs, 1]]
        away = (points - self.data.xpos[body])[:, None]
        local = (away @ self._rotations[body])[:, 0]
        return np.asarray((normals[:, None] @ self._turns(pairs))[:, 0]), local, far

    def in_base(self, pairs: Indices, normals: Vector) -> Vector:
        """Return normals (p, 3), given in the frames of the first parts, in the base frame."""
        return np.asarray((self._turns(pairs) @ normals[:, :, None])[:, :, 0])

    def points_in_base(self, pairs: Indices, points: Vector) -> Vector:
        """Return points (p, 3) [m], given in the frames of the last parts, in the base frame."""
        body = self._collision.bodies[self._collision.pairs[pairs, 1]]
        return np.asarray(
            self.data.xpos[body] + (self._rotations[body] @ points[:, :, None])[:, :, 0]
        )

    def _planes(self, pairs: Indices, most: float) -> tuple[Vector, Vector, NDArray[np.bool_]]:
        """Return the same as ``planes``, in the base frame."""
        model, data, geoms = self._model, self.data, self._collision.pair_geoms
        segments, distances = np.zeros((len(pairs), 6)), np.ones(len(pairs))
        beyond = self._collision.pair_radii[pairs] + most
        for index, (pair, limit) in enumerate(zip(pairs.tolist(), beyond.tolist(), strict=True)):
            if pair in self._plane_normals:
                normal = self._plane_normals[pair]
                lowest = self.lowest(pairs[index : index + 1], normal[None])[0]
                segments[index] = *(lowest - normal), *lowest
                continue
            one, other = geoms[pair]
            distances[index] = mujoco.mj_geomDistance(
                model, data, one, other, limit, segments[index]
            )
        far = (distances >= beyond) & (segments == 0.0).all(axis=1)
        normals = segments[:, 3:] - segments[:, :3]
        sizes = np.sqrt((normals * normals).sum(axis=1))
        for index in np.flatnonzero(
            sizes < 1e-9
        ).tolist():  # far, or in contact: the line of centres
            one, other = geoms[pairs[index]]
            apart = data.geom_xpos[other] - data.geom_xpos[one] + (0.0, 0.0, 1e-9)
            normals[index], distances[index] = apart, 1.0
            sizes[index] = math.sqrt(apart @ apart)
        swapped = self._collision.signs[pairs]
        signs = np.where(distances < 0.0, -1.0, 1.0) * swapped
        points = np.where(swapped[:, None] < 0.0, segments[:, :3], segments[:, 3:])
        return normals * (signs / sizes)[:, None], points, far

    def lowest(self, pairs: Indices, normals: Vector) -> Vector:
        """Return the vertices (p, 3) of last parts that are lowest along normals (p, 3)."""
        last = self._collision.pairs[pairs, 1]
        body, columns = self._collision.bodies[last], self._collision.columns[last]
        turns = self._rotations[body]
        nearest = (normals[:, None] @ turns @ columns)[:, 0].argmin(axis=1)
        vertices = columns[np.arange(len(last)), :, nearest]
        return np.asarray(self.data.xpos[body] + (turns @ vertices[:, :, None])[:, :, 0])

    def gaps(self, pairs: Indices, normals: Vector) -> Vector:
        """Return gaps between parts along normals (p, 3) in the base frame (p,) [m]."""
        collision, places = self._collision, self.data.xpos
        first, last = collision.pairs[pairs].T
        base, body = collision.bodies[first], collision.bodies[last]
        rows, turns = normals[:, None], self._rotations
        top = (rows @ turns[base] @ collision.columns[first])[:, 0].max(axis=1)
        low = (rows @ turns[body] @ collision.columns[last])[:, 0].min(axis=1)
        apart = (normals * (places[body] - places[base])).sum(axis=1)
        return np.asarray(apart + low - top - collision.pair_radii[pairs])

    def _turns(self, pairs: Indices) -> Vector:
        """Return the rotations of the bodies of first parts in the base frame (p, 3, 3)."""
        return np.asarray(self._rotations[self._collision.bodies[self._collision.pairs[pairs, 0]]])


def ignored_pairs(robot: Robot) -> set[frozenset[str]]:
    """Return the pairs of links that may touch: those of the robot file and of its SRDF."""
    pairs = {frozenset(pair) for pair in robot.collision.ignore}
    if robot.collision.srdf:
        path = find_file(robot.collision.srdf, robot.folder)
        try:
            top = parse_model(read_model(path))
        except DescriptionError as error:
            raise DescriptionError(f'SRDF {path}: {error}') from None
        for one in top.iterfind('disable_collisions'):
            pairs.add(frozenset((one.get('link1', ''), one.get('link2', ''))))
    return pairs


def _build_model(parts: Sequence[Part], arm: mujoco.MjModel) -> mujoco.MjModel:
    """Compile the joints of an arm with geoms that are named by the indices of their parts."""
    top = Element('mujoco')
    SubElement(top, 'compiler', angle='radian', autolimits='true')
    assets = SubElement(top, 'asset')
    body = SubElement(top, 'worldbody')
    for index in range(arm.nbody):
        if index:
            place = {'pos': _text(arm.body_pos[index]), 'quat': _text(arm.body_quat[index])}
            body = SubElement(body, 'body', place)
            SubElement(body, 'inertial', pos='0 0 0', mass='1', diaginertia='1 1 1')
            kind = 'slide' if arm.jnt_type[index - 1] == mujoco.mjtJoint.mjJNT_SLIDE else 'hinge'
            joint = SubElement(body, 'joint', type=kind, axis=_text(arm.jnt_axis[index - 1]))
            if arm.jnt_limited[index - 1]:
                joint.set('range', _text(arm.jnt_range[index - 1]))
        for number, part in enumerate(parts):
            if part.body == index and part.solid.normal is None:
                _add_geom(body, assets, str(number), part.solid)
    try:
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(top, encoding='unicode'))
    except ValueError as error:
        raise DescriptionError(f'MuJoCo cannot build the collision shapes: {error}') from None


def _add_geom(body: Element, assets: Element, name: str, solid: Solid) -> None:
    """Add a solid; of one with more than two vertices, without its radius."""
    geom = SubElement(body, 'geom', name=name)
    if len(solid.vertices) == 1:
        size = repr(max(float(solid.radius), 1e-6))
        geom.attrib.update(type='sphere', size=size, pos=_text(solid.vertices[0]))
    elif len(solid.vertices) == CAPSULE:
        ends = _text(solid.vertices.ravel())
        geom.attrib.update(type='capsule', size=repr(max(float(solid.radius), 1e-6)), fromto=ends)
    else:
        vertices = with_thickness(solid.vertices)
        SubElement(assets, 'mesh', name=name, vertex=_text(vertices.ravel()))
        geom.attrib.update(type='mesh', mesh=name)


def padded(vertices: Vector, count: int) -> Vector:
    return np.vstack((vertices, np.repeat(vertices[:1], count - len(vertices), axis=0)))


def _text(numbers: Vector) -> str:
    return ' '.join(repr(float(number)) for number in numbers)
