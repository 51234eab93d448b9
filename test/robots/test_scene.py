"""What the sections `collision` and `scene` of a robot file may say."""

import copy
import math

from mher_ros.robots.robot import load_robot, RobotError
import numpy as np
import pytest
import yaml

LEAST = {
    'model': 'arm.urdf',
    'tool_frame': 'tip',
    'joints': ['shoulder', 'elbow'],
    'output': 'twist',
}


@pytest.fixture
def load(tmp_path):
    def read(**changes):
        path = tmp_path / 'mine.yaml'
        path.write_text(yaml.safe_dump({**LEAST, **changes}))
        return load_robot(path)

    return read


def test_collisions_are_avoided_unless_the_file_says_otherwise(load):
    robot = load()
    assert robot.collision.enabled
    assert robot.collision.clearance > 0.0
    assert robot.scene == ()
    ball = {'ball': {'shape': 'sphere', 'position': [1.0, 0.0, 0.0], 'radius': 0.1}}
    assert load(scene=ball).collision.enabled
    assert not load(collision={'enabled': False}).collision.enabled
    assert not load(scene=ball, collision={'enabled': False}).collision.enabled


def test_obstacles_are_read_with_their_poses(load):
    robot = load(
        collision={'clearance': 0.02, 'ignore': [['tip', 'table']]},
        scene={
            'table': {'shape': 'box', 'position': [1, 0, 0.2], 'size': [1, 1, 0.4]},
            'ball': {'shape': 'sphere', 'position': [0, 1, 0], 'radius': 0.1},
            'post': {
                'shape': 'cylinder',
                'position': [0, 0, 1],
                'rpy': [math.pi / 2, 0, 0],
                'radius': 0.05,
                'length': 1.0,
            },
            'floor': {'shape': 'plane', 'position': [0, 0, 0]},
        },
    )
    assert robot.collision.clearance == 0.02
    assert robot.collision.ignore == (('tip', 'table'),)
    ball, floor, post, table = sorted(robot.scene, key=lambda one: one.name)
    assert (table.name, table.shape, table.size) == ('table', 'box', (1.0, 1.0, 0.4))
    assert ball.size[0] == 0.1
    assert post.size[:2] == (0.05, 1.0)
    np.testing.assert_allclose(post.pose[1], [math.sqrt(0.5), math.sqrt(0.5), 0, 0])
    assert floor.position == (0.0, 0.0, 0.0)


def test_walls_for_links_are_virtual(load):
    robot = load(
        scene={
            'cage': {'shape': 'keep_in', 'position': [0, 0, 1], 'size': [2, 2, 2]},
            'wall': {'shape': 'plane', 'position': [1, 0, 0], 'links': ['tip']},
            'floor': {'shape': 'plane', 'position': [0, 0, 0]},
        }
    )
    assert {one.name: one.is_virtual for one in robot.scene} == {
        'cage': True,
        'wall': True,
        'floor': False,
    }
    assert {one.name: one.links for one in robot.scene}['wall'] == ('tip',)


def test_the_file_of_a_mesh_is_relative_to_the_robot_file(load, tmp_path):
    (tmp_path / 'shelf.obj').write_text('v 0 0 0\n')
    mesh = {'shape': 'mesh', 'position': [1, 0, 0], 'file': 'shelf.obj'}
    scaled = copy.deepcopy(mesh)
    scaled.update(file=str(tmp_path / 'shelf.obj'), scale=[0.001, 0.001, 0.001])
    one, other = load(scene={'a': mesh, 'b': scaled}).scene
    assert one.file == other.file == str(tmp_path / 'shelf.obj')
    assert one.scale == (1.0, 1.0, 1.0)
    assert other.scale == (0.001, 0.001, 0.001)


BOX = {'shape': 'box', 'position': [0, 0, 0], 'size': [1, 1, 1]}


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'collision': {'clearance': 0.0}}, 'collision.clearance'),
        ({'collision': {'clearance': 'wide'}}, 'collision.clearance'),
        ({'collision': {'enabled': 'yes'}}, 'collision.enabled'),
        ({'collision': {'ignore': [['tip']]}}, 'collision.ignore'),
        ({'collision': {'ignore': [['tip', 'tip']]}}, 'collision.ignore'),
        ({'collision': {'margin': 1.0}}, 'collision.margin'),
        ({'scene': [BOX]}, 'scene'),
        ({'scene': {'a': {**BOX, 'shape': 'torus'}}}, 'scene.a.shape'),
        ({'scene': {'a': {**BOX, 'size': [1, 1, 0]}}}, 'scene.a.size'),
        ({'scene': {'a': {**BOX, 'position': [0, 0, math.nan]}}}, 'scene.a.position'),
        ({'scene': {'a': {**BOX, 'position': [0, 0, 1e3]}}}, 'scene.a.position'),
        ({'scene': {'a': {**BOX, 'radius': 1.0}}}, 'scene.a.radius'),
        ({'scene': {'a': {'shape': 'sphere', 'position': [0, 0, 0]}}}, 'scene.a.radius'),
        ({'scene': {'a': {**BOX, 'links': []}}}, 'scene.a.links'),
        ({'scene': {'a': {**BOX, 'links': 'tip'}}}, 'scene.a.links'),
        ({'scene': {'a': {**BOX, 'file': 'a.stl'}}}, 'scene.a.file'),
        ({'scene': {'a': {**BOX, 'shape': 'keep_in', 'size': [1, 1, -1]}}}, 'scene.a.size'),
        ({'scene': {'a': {'shape': 'mesh', 'position': [0, 0, 0]}}}, 'scene.a.file'),
        (
            {'scene': {'a': {'shape': 'mesh', 'position': [0, 0, 0], 'file': 'none.stl'}}},
            'scene.a.file',
        ),
        (
            {
                'scene': {
                    'a': {
                        'shape': 'mesh',
                        'position': [0, 0, 0],
                        'file': 'mine.yaml',
                        'scale': [1, 0, 1],
                    }
                }
            },
            'scene.a.scale',
        ),
        ({'scene': {str(i): copy.deepcopy(BOX) for i in range(101)}}, 'scene'),
    ],
)
def test_what_is_wrong_is_named(load, changes, named):
    with pytest.raises(RobotError, match=named):
        load(**changes)
