"""Vertices of mesh files, and the solids around them."""

import dataclasses
import itertools
import math
from pathlib import Path

from foreign_arms import KINOVA_PLACED, write_arm
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.mesh_file import FACET, mesh_vertices, MeshError
from mher_ros.robots.model_file import find_file
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import hull_of, obstacle_solid
import numpy as np
import pytest
from scipy.spatial import ConvexHull

PANDA = 'python://example-robot-data/robots/panda_description/meshes/'
CORNERS = '0 0 0  1 0 0  0 1 0  0 0 1'
NODE = '<instance_geometry url="#g"/>'


def collada(nodes=f'<node>{NODE}</node>', asset='', numbers=CORNERS, accessor='', more=''):
    """Return a Collada file with a tetrahedron in its only geometry."""
    accessor = accessor or f'count="{len(numbers.split()) // 3}" stride="3"'
    return f"""<?xml version="1.0" encoding="utf-8"?>
    <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
      <asset>{asset}</asset>
      <library_geometries><geometry id="g"><mesh>
        <source id="s"><float_array id="a" count="12">{numbers}</float_array>
          <technique_common><accessor source="#a" {accessor}/></technique_common></source>
        <source id="n"><float_array id="b" count="3">9 9 9</float_array></source>
        <vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
      </mesh></geometry></library_geometries>
      {more}
      <library_visual_scenes><visual_scene id="w">{nodes}</visual_scene></library_visual_scenes>
      <scene><instance_visual_scene url="#w"/></scene>
    </COLLADA>"""


@pytest.fixture
def read(tmp_path):
    def vertices(text, name='mesh.dae'):
        path = tmp_path / name
        path.write_text(text)
        return mesh_vertices(path)

    return vertices


def assert_same(found, expected):
    """Compare vertices, whose order does not matter."""
    expected = np.unique(np.round(expected, 9), axis=0)
    found = np.unique(np.round(found, 9), axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_meshes_are_read_from_stl_and_obj(tmp_path):
    facet = np.zeros(1, FACET)
    facet['vertices'] = np.eye(3)
    binary, text, other = (tmp_path / name for name in ('a.stl', 'b.STL', 'c.obj'))
    binary.write_bytes(bytes(80) + np.uint32(1).tobytes() + facet.tobytes())
    rows = ['1 0 0', '0 1 0', '0 0 1']
    text.write_text('solid\n' + ''.join(f'vertex {row}\n' for row in rows))
    other.write_text(''.join(f'v {row}\n' for row in rows) + 'vn 0 0 9\nf 1 2 3\n')
    for path in (binary, text, other):
        np.testing.assert_array_equal(mesh_vertices(path), np.eye(3)[::-1])
    (tmp_path / 'd.obj').write_text('v 1 2 nan\n')
    for name in ('d.obj', 'e.ply'):
        with pytest.raises(MeshError, match=name):
            mesh_vertices(tmp_path / name)


@pytest.mark.parametrize(('place', 'scale'), [(1e308, 1.0), (1e308, 1e6), (1e6, 1e6)])
def test_vertices_whose_squares_may_be_infinite_are_refused(tmp_path, place, scale):
    path = tmp_path / 'far.obj'
    path.write_text(f'v {place} {place} {place}\n')
    with pytest.raises(MeshError, match=r'far\.obj: coordinates up to 1e\+06 m'):
        mesh_vertices(path, (scale, scale, scale))


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('v 1000 0 0\nv 1001 0 0\nv 1000 1 0\nv 1000 0 1\n', 'within 100 m of its origin'),
        ('v 0 0 0\nv 1000 0 0\n', 'at most 10 m'),
    ],
)
def test_an_obstacle_that_is_large_or_far_away_is_refused(tmp_path, text, named):
    path = tmp_path / 'shelf.obj'
    path.write_text(text)
    obstacle = Obstacle('shelf', 'mesh', (0.0, 0.0, 0.0), file=str(path))
    with pytest.raises(MeshError, match=named):
        obstacle_solid(obstacle)
    small = dataclasses.replace(obstacle, scale=(1e-3, 1e-3, 1e-3))
    assert np.ptp(obstacle_solid(small).vertices, axis=0).max() <= 1.0


TETRAHEDRON = np.array(CORNERS.split(), float).reshape(4, 3)
TURN = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))  # by 90 degrees about z


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        ({}, TETRAHEDRON),
        ({'asset': '<unit name="millimeter" meter="0.001"/>'}, 0.001 * TETRAHEDRON),
        ({'asset': '<up_axis>Y_UP</up_axis>'}, TETRAHEDRON),
        ({'asset': '<up_axis>X_UP</up_axis>'}, TETRAHEDRON),
        (
            {'nodes': f'<node><matrix>2 0 0 5 0 2 0 6 0 0 2 7 0 0 0 1</matrix>{NODE}</node>'},
            2.0 * TETRAHEDRON + (5, 6, 7),
        ),
        (  # the first transform is the outermost one
            {
                'nodes': '<node><translate>1 2 3</translate><rotate>0 0 2 90</rotate>'
                f'<scale>1 1 4</scale>{NODE}</node>'
            },
            (TETRAHEDRON * (1, 1, 4)) @ TURN.T + (1, 2, 3),
        ),
        (
            {
                'nodes': '<node><rotate>0 0 1 90</rotate><node><translate>1 0 0</translate>'
                f'{NODE}</node></node>'
            },
            (TETRAHEDRON + (1, 0, 0)) @ TURN.T,
        ),
        (
            {
                'more': f'<library_nodes><node id="k">{NODE}</node></library_nodes>',
                'nodes': '<node><instance_node url="#k"/></node>'
                '<node><translate>5 0 0</translate><instance_node url="#k"/></node>',
            },
            np.vstack((TETRAHEDRON, TETRAHEDRON + (5, 0, 0))),
        ),
        (
            {'numbers': '9 0 0 0 9 0 1 2 3 9', 'accessor': 'count="2" stride="5" offset="1"'},
            np.array(((0, 0, 0), (1, 2, 3))),
        ),
    ],
)
def test_the_nodes_of_a_collada_file_place_its_geometries(read, arguments, expected):
    assert_same(read(collada(**arguments)), expected)


def doubled(levels):
    """Return nodes that each contain the next one twice."""
    twice = ''.join(
        f'<node id="k{level}">{f"""<instance_node url="#k{level + 1}"/>""" * 2}</node>'
        for level in range(levels)
    )
    return f'<library_nodes>{twice}<node id="k{levels}">{NODE}</node></library_nodes>'


HOSTILE = {
    'no scene': '<COLLADA/>',
    'another format': '<robot/>',
    'no xml': 'solid cube',
    'entities': '<!DOCTYPE a [<!ENTITY b "c">]><COLLADA/>',
    'a node in itself': collada(
        '<node><instance_node url="#k"/></node>',
        more='<library_nodes><node id="k"><instance_node url="#k"/></node></library_nodes>',
    ),
    'nodes without end': collada('<node><instance_node url="#k0"/></node>', more=doubled(60)),
    'deep nodes': collada('<node>' * 5000 + '</node>' * 5000),
    'another file': collada('<node><instance_geometry url="file:///etc/passwd"/></node>'),
    'a source as a geometry': collada('<node><instance_geometry url="#s"/></node>'),
    'an unknown geometry': collada('<node><instance_geometry url="#h"/></node>'),
    'too few numbers': collada(accessor='count="5" stride="3"'),
    'many vertices': collada(accessor=f'count="{"9" * 9}" stride="3"'),
    'a count of a million digits': collada(accessor=f'count="{"9" * 10**6}" stride="3"'),
    'a negative offset': collada(accessor='count="1" stride="3" offset="-3"'),
    'no stride': collada(accessor='count="4" stride="0"'),
    'words': collada(numbers='a b c'),
    'not a number': collada(numbers='0 0 nan'),
    'infinite by its scale': collada(
        f'<node><scale>1e300 1e300 1e300</scale><scale>1e300 1 1</scale>{NODE}</node>'
    ),
    'an infinite unit': collada(asset='<unit meter="inf"/>'),
    'no vertices': collada('<node/>'),
    'a short matrix': collada(f'<node><matrix>1 0 0</matrix>{NODE}</node>'),
    'no axis': collada(f'<node><rotate>0 0 0 90</rotate>{NODE}</node>'),
    'skew': collada(f'<node><skew>0 1 0 0 0 1 0</skew>{NODE}</node>'),
    'a skin': collada('<node><instance_controller url="#g"/></node>'),
}


@pytest.mark.parametrize('name', HOSTILE)
def test_a_hostile_collada_file_is_refused_with_its_name(read, name):
    with pytest.raises(MeshError, match=r'mesh\.dae') as told:
        read(HOSTILE[name])
    assert len(str(told.value)) < 500


def test_collada_and_stl_files_of_a_link_have_the_same_place_and_size():
    for link in ('link1', 'link2', 'link3', 'hand'):
        seen, touched = (
            mesh_vertices(find_file(f'{PANDA}{kind}/{link}{suffix}', Path()))
            for kind, suffix in (('visual', '.dae'), ('collision', '.stl'))
        )
        np.testing.assert_allclose(seen.min(axis=0), touched.min(axis=0), atol=0.005)
        np.testing.assert_allclose(seen.max(axis=0), touched.max(axis=0), atol=0.005)


def test_an_arm_with_collada_meshes_is_read(tmp_path):
    """Each link of this arm reaches from its own joint to the next one."""
    text = 'collision: {enabled: true}\n'
    robot = load_robot(write_arm(tmp_path, 'kinova', KINOVA_PLACED + text))
    arm = ArmModel(robot)
    assert arm.unprotected == ''
    solids = {part.name: part.solid for part in arm.collision.parts}
    for body in range(1, 6):
        solid = solids[f'j2s6s200_link_{body}']
        ends = solid.vertices.min(axis=0) - 0.01, solid.vertices.max(axis=0) + 0.01
        for point in (np.zeros(3), arm.model.body_pos[body + 1]):
            assert (ends[0] <= point).all()
            assert (point <= ends[1]).all()


def ellipsoid(count, random):
    points = random.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * (0.1, 0.15, 0.3)


@pytest.mark.parametrize('count', [2000, 55_000])
def test_a_mesh_of_many_triangles_is_inside_its_solid(tmp_path, count):
    """The larger one has more than 100,000 triangles."""
    random = np.random.default_rng(2)
    points = ellipsoid(count, random)
    triangles = points[ConvexHull(points).simplices]
    facets = np.zeros(len(triangles), FACET)
    facets['vertices'] = triangles
    path = tmp_path / 'heavy.stl'
    path.write_bytes(bytes(80) + np.uint32(len(facets)).tobytes() + facets.tobytes())
    solid = hull_of(mesh_vertices(path))
    assert len(solid.vertices) <= 64
    assert 0.0 < solid.radius < 0.015
    directions = random.normal(size=(500, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    most = (solid.vertices @ directions.T).max(axis=0) + solid.radius
    extent = (points @ directions.T).max(axis=0)
    assert (most >= extent - 1e-6).all()  # of single precision
    assert (most <= extent + 0.015).all()
    assert math.isclose(solid.radius, max(most - extent), abs_tol=0.005)


def test_a_mesh_of_too_many_vertices_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr('mher_ros.robots.mesh_file.MAX_VERTICES', 3)
    path = tmp_path / 'box.obj'
    path.write_text('v 0 0 0\nv 0 0 1\nv 0 1 0\nv 1 0 0\n')
    with pytest.raises(MeshError, match='at most 3 different vertices are expected, got 4'):
        mesh_vertices(path)


def test_a_flat_mesh_of_many_vertices_is_its_outline():
    grid = np.array(list(itertools.product(np.linspace(0.0, 1.0, 50), repeat=2)))
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    corners = np.array(((0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1))) @ turn
    solid = hull_of(np.column_stack((grid, np.ones(len(grid)))) @ turn)
    assert_same(solid.vertices, corners)
    assert solid.radius == 0.0
    line = hull_of(np.linspace(0.0, 1.0, 500)[:, None] * (0.1, 0.2, 0.3))
    assert_same(line.vertices, np.array(((0.0, 0.0, 0.0), (0.1, 0.2, 0.3))))


@pytest.mark.parametrize(('count', 'most_added'), [(1000, 0.02), (50_000, 0.5)])
def test_a_disc_of_many_vertices_is_inside_its_solid(count, most_added):
    angles = np.linspace(0.0, 2.0 * math.pi, count)
    disc = np.column_stack((np.cos(angles), np.sin(angles), np.zeros(len(angles))))
    solid = hull_of(disc)
    assert len(solid.vertices) <= 64
    assert np.abs(solid.vertices[:, 2]).max() < 1e-3
    assert solid.radius < most_added
    most = (solid.vertices @ disc.T).max(axis=0) + solid.radius
    assert (most >= 1.0 - 1e-6).all()
