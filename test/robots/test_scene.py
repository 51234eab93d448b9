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


def test_collisions_are_avoided_if_the_file_has_a_section_about_them(load):
    robot = load()
    assert not robot.collision.enabled
    assert robot.collision.clearance > 0.0
    assert robot.scene == ()
    ball = {'ball': {'shape': 'sphere', 'position': [1.0, 0.0, 0.0], 'radius': 0.1}}
    assert load(scene=ball).collision.enabled
    assert load(collision={'clearance': 0.02}).collision.enabled
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
        ({'scene': {str(i): copy.deepcopy(BOX) for i in range(101)}}, 'scene'),
    ],
)
def test_what_is_wrong_is_named(load, changes, named):
    with pytest.raises(RobotError, match=named):
        load(**changes)
