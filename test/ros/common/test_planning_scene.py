"""MoveIt's planning scene as obstacles: its objects, and what changes them."""

import dataclasses
import math
import sys
import threading
import types

from arm_models import load_arm
from geometry_msgs.msg import Point, Pose, Quaternion
from mher_ros.control.obstacle_tracker import ObstacleTracker
from mher_ros.options import OptionError
from mher_ros.robots.scene import CollisionOptions
from mher_ros.ros.common.obstacle_input import ObstacleInput
from mher_ros.ros.common.planning_scene import PlanningSceneTopic, SceneReader
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from shape_msgs.msg import Mesh, Plane, SolidPrimitive
from std_msgs.msg import Header

pytestmark = pytest.mark.ros

ADD, REMOVE, APPEND, MOVE = (bytes([number]) for number in range(4))
BOX, SPHERE, CYLINDER, CONE = range(1, 5)


# The messages of moveit_msgs, which the wheels of ROS lack; shapes and poses are real ones.
@dataclasses.dataclass
class CollisionObject:
    id: str = ''
    operation: bytes = ADD
    pose: Pose = dataclasses.field(default_factory=Pose)
    primitives: list = dataclasses.field(default_factory=list)
    primitive_poses: list = dataclasses.field(default_factory=list)
    meshes: list = dataclasses.field(default_factory=list)
    mesh_poses: list = dataclasses.field(default_factory=list)
    planes: list = dataclasses.field(default_factory=list)
    plane_poses: list = dataclasses.field(default_factory=list)
    header: Header = dataclasses.field(default_factory=lambda: Header(frame_id='base'))


@dataclasses.dataclass
class AttachedCollisionObject:
    object: CollisionObject
    link_name: str = 'hand'


@dataclasses.dataclass
class Octomap:
    data: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class OctomapWithPose:
    octomap: Octomap = dataclasses.field(default_factory=Octomap)


@dataclasses.dataclass
class World:
    collision_objects: list = dataclasses.field(default_factory=list)
    octomap: OctomapWithPose = dataclasses.field(default_factory=OctomapWithPose)


@dataclasses.dataclass
class RobotState:
    attached_collision_objects: list = dataclasses.field(default_factory=list)
    joint_state: JointState = dataclasses.field(default_factory=JointState)
    is_diff: bool = True


@dataclasses.dataclass
class PlanningScene:
    world: World = dataclasses.field(default_factory=World)
    robot_state: RobotState = dataclasses.field(default_factory=RobotState)
    is_diff: bool = False


class Frames:
    """The base frame, and no other one: there is no tf2."""

    base = 'base'

    def placement(self, header):
        assert header.frame_id in ('', 'base')
        return np.eye(3), np.zeros(3)


class Tracked(ObstacleTracker):
    """A tracker that takes what the input gives, at a time that stands still."""

    def __init__(self, slots, options, lock):
        super().__init__(slots, options)
        self.lock = lock

    def now(self):
        return 5.0

    def put(self, name, shape, change, sent):
        if change.rests:
            self.forget(name)
        return super().put(name, shape.solid, 5.0, 5.0, change.moves)

    def remove(self, name, now=5.0):
        super().remove(name, now)


class Reader:
    """Reads scenes as if they were received."""

    def __init__(self, node):
        self.slots = load_arm('panda', avoids_collisions=True)[1].obstacle_slots()
        options = CollisionOptions(enabled=True)
        self.tracker = Tracked(self.slots, options, threading.Lock())
        self.input = ObstacleInput(node, self.tracker, Frames())
        self.reader = SceneReader()

    def take(self, *objects, attached=(), is_diff=True, octomap=()):
        scene = PlanningScene(
            World(list(objects), OctomapWithPose(Octomap(list(octomap)))),
            RobotState(list(attached)),
            is_diff,
        )
        self.input.take(self.reader.read(scene), 0)
        return self.input.figures()

    def names(self):
        return sorted(name.replace(' (planning_scene)', '') for name in self.tracker.slots)

    def solid(self, name):
        name, _, part = name.partition('#')
        full = f'{name} (planning_scene)' + (f'#{part}' if part else '')
        return self.slots.parts[self.tracker.slots[full]].solid


@pytest.fixture
def reader(world):
    return Reader(world.peer().node)


def pose(x=0.0, y=0.0, z=0.0, turn=0.0):
    found = Pose(position=Point(x=x, y=y, z=z))
    found.orientation = Quaternion(w=math.cos(turn / 2), z=math.sin(turn / 2))
    return found


def solid(kind, *dimensions):
    return SolidPrimitive(type=kind, dimensions=list(dimensions))


def one_box(name='table', **changes):
    primitives = [solid(BOX, 0.2, 0.4, 0.6)]
    found = CollisionObject(name, primitives=primitives, primitive_poses=[pose(x=1.0)])
    return dataclasses.replace(found, **changes)


def spread(vertices):
    return np.concatenate((vertices.min(axis=0), vertices.max(axis=0)))


def test_shapes_are_placed_in_the_object_and_the_object_in_its_frame(reader):
    """The object is turned by a right angle: x becomes y."""
    told = reader.take(one_box(pose=pose(y=0.5, turn=math.pi / 2)))
    assert (told['obstacles'], told['obstacles_refused']) == (1, 0)
    expected = (-0.2, 1.4, -0.3, 0.2, 1.6, 0.3)
    assert spread(reader.solid('table').vertices) == pytest.approx(expected)


def test_all_shapes_of_an_object_are_obstacles(reader):
    corners = [Point(x=x, y=y, z=z) for x in (0.0, 0.1) for y in (0.0, 0.2) for z in (0.0, 0.3)]
    many = CollisionObject(
        'many',
        primitives=[solid(SPHERE, 0.3), solid(CYLINDER, 0.5, 0.1), solid(CONE, 0.5, 0.1)],
        primitive_poses=[pose(x=1.0), pose(x=2.0), pose(x=3.0)],
        meshes=[Mesh(vertices=corners)],
        mesh_poses=[pose(x=4.0)],
        planes=[Plane(coef=[0.0, 0.0, 2.0, 1.0])],
        plane_poses=[pose()],
    )
    assert reader.take(many)['obstacles'] == 5
    ball = reader.solid('many#0')
    assert (ball.radius, *ball.vertices[0]) == (0.3, 1.0, 0.0, 0.0)
    for name, x in (('many#1', 2.0), ('many#2', 3.0)):
        vertices = reader.solid(name).vertices - (x, 0.0, 0.0)
        assert np.ptp(vertices[:, 2]) == pytest.approx(0.5)
        assert (np.linalg.norm(vertices[:, :2], axis=1) >= 0.1).all()
    assert spread(reader.solid('many#3').vertices) == pytest.approx((4.0, 0, 0, 4.1, 0.2, 0.3))
    plate = spread(reader.solid('many#4').vertices)
    assert plate[[2, 5]] == pytest.approx((-0.51, -0.49))  # 2 z + 1 = 0
    assert (plate[3:5] - plate[:2] > 5.0).all()


def test_objects_are_appended_to_moved_and_removed(reader):
    reader.take(one_box())
    more = one_box(operation=APPEND, primitive_poses=[pose(x=2.0)])
    assert reader.take(more)['obstacles'] == 2
    reader.take(CollisionObject('table', MOVE, pose(z=1.0)))
    assert reader.names() == ['table#0', 'table#1']
    assert reader.solid('table#1').vertices.mean(axis=0) == pytest.approx((2.0, 0.0, 1.0))
    for moved in range(10):  # it rests in between, and needs no updates
        reader.take(CollisionObject('table', MOVE, pose(z=1.0 + 0.1 * moved)))
    assert reader.tracker.problem(1000.0) == ''
    assert not reader.slots.speeds.any()
    reader.take(one_box('other'))
    reader.take(CollisionObject('table', REMOVE))
    assert reader.names() == ['other']
    reader.take(CollisionObject('', REMOVE))
    assert reader.names() == []


def test_a_whole_scene_replaces_what_there_was(reader):
    reader.take(one_box('a'), one_box('b', primitives=[solid(BOX, 0.2, -1.0, 0.2)]))
    assert reader.tracker.refused.startswith('b ')
    reader.take(one_box('c'), is_diff=False)
    assert reader.names() == ['c']
    assert reader.tracker.refused == ''
    reader.take(is_diff=True)
    assert reader.names() == ['c']
    # What is moved must be known: shapes of an earlier scene are not.
    reader.take(CollisionObject('a', MOVE, pose(z=1.0)))
    assert reader.tracker.refused.startswith('a ')


WRONG = {
    'bad_size': one_box(primitives=[solid(BOX, 0.2, 0.0, 0.2)]),
    'bad_message': one_box(primitive_poses=[pose(), pose()]),
    'unsupported': one_box(primitives=[solid(5, 0.2)]),
    'too_many': CollisionObject('table'),
}


@pytest.mark.parametrize('code', sorted(WRONG))
def test_an_object_that_cannot_be_used_is_refused_until_it_is_removed(reader, code):
    assert reader.take(WRONG[code])['obstacle_answer'] == code
    assert reader.tracker.refused.startswith('table (planning_scene): ')
    reader.take(CollisionObject('table', REMOVE))
    assert reader.tracker.refused == ''


def test_one_that_was_usable_is_lost(reader):
    reader.take(one_box())
    reader.take(WRONG['bad_size'])
    assert reader.tracker.problem(5.0).startswith('table (planning_scene): ')
    reader.take(one_box())
    assert reader.tracker.problem(5.0) == ''


def test_an_attached_object_is_refused_until_it_is_detached(reader):
    reader.take(attached=[AttachedCollisionObject(one_box('cup'))])
    assert 'hand' in reader.tracker.refused
    reader.take()  # says nothing about it
    assert reader.tracker.refused
    gone = AttachedCollisionObject(one_box('cup', operation=REMOVE))
    reader.take(one_box('cup'), attached=[gone])
    assert reader.tracker.refused == ''
    assert reader.names() == ['cup']


def test_an_octomap_is_refused(reader):
    assert reader.take(octomap=[1, 2])['obstacle_answer'] == 'unsupported'
    assert 'octomap' in reader.tracker.refused
    reader.take(is_diff=False)
    assert reader.tracker.refused == ''


def test_without_moveit_msgs_it_cannot_be_asked_for(world, monkeypatch):
    monkeypatch.setitem(sys.modules, 'moveit_msgs', None)
    with pytest.raises(OptionError, match='moveit_msgs is not installed'):
        PlanningSceneTopic(types.SimpleNamespace(), 'scene', lambda changes, sent: None)
