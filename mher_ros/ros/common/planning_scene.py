"""Obstacles as ``moveit_msgs/PlanningScene``, from MoveIt's move_group."""

from collections.abc import Callable
import dataclasses
import importlib
import time
from typing import Any, cast

from mher_ros.control.obstacle_tracker import ObstacleError
from mher_ros.options import OptionError
from mher_ros.robots.description import Pose
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.scene import LARGEST
from mher_ros.robots.workspace import Refusal
from mher_ros.ros.common.arm_clock import STEADY
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.common.obstacle_changes import (
    Change,
    check_finite,
    checked_shape,
    hull_shape,
    MOST_POINTS,
    NOWHERE,
    pose_in,
    Shape,
    short_name,
)
from mher_ros.ros.common.polled_topic import earliest_time
import mujoco
import numpy as np
from rclpy.node import Node
from shape_msgs.msg import SolidPrimitive

SCENE = 'planning_scene'
SERVICE = 'get_planning_scene'
DEPTH = 100
ASK_AGAIN = 1.0  # time between two requests of the whole scene [s]
PLATE, THICK = LARGEST, 0.02
"""Edge and thickness of the box that a plane is taken for [m]."""
LEAST_NORMAL = 1e-6  # length of the normal of a plane
ADD, REMOVE, APPEND, MOVE = (bytes([number]) for number in range(4))
"""Operations of a ``CollisionObject``."""
WHOLE = f'everything ({SCENE})'
"""Stands for the obstacles of a scene that has not been received."""


class PlanningSceneTopic:
    """Receives a planning scene: the whole of it from a service or the topic, then changes."""

    def __init__(self, node: Node, topic: str, take: Callable[[list[Change], int], None]) -> None:
        """Call ``take`` with changes, and the system time [ns] at which they were sent."""
        try:
            messages = importlib.import_module('moveit_msgs.msg')
            services = importlib.import_module('moveit_msgs.srv')
        except ImportError:
            raise OptionError(
                "planning_scene takes '' where moveit_msgs is not installed"
            ) from None
        self._node, self._pass_on, self._reader = node, take, SceneReader()
        self._kind = services.GetPlanningScene
        self._parts = messages.PlanningSceneComponents
        self._future: Any = None
        # Until then the arm does not move.
        text = f'a planning scene is expected on {topic}, or from {SERVICE}; there was none'
        take([_refused(WHOLE, ObstacleError(text, Refusal.NOT_RECEIVED))], time.time_ns())
        self._subscription = node.create_subscription(
            messages.PlanningScene, topic, cast(Any, self._take), DEPTH
        )
        self._client = node.create_client(self._kind, SERVICE)
        self._timer = node.create_timer(ASK_AGAIN, self._ask, clock=STEADY)
        self._ask()

    def close(self) -> None:
        """Close the topic."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_client(self._client)
        self._node.destroy_subscription(self._subscription)

    def _take(self, scene: Any, info: Any) -> None:
        self._pass_on(self._reader.read(scene), earliest_time(info))

    def _ask(self) -> None:
        """Ask for the whole scene until there is one."""
        if self._reader.is_whole or not self._client.service_is_ready():
            return
        if self._future is not None and not self._future.done():
            self._client.remove_pending_request(self._future)
        kind, request = self._parts, self._kind.Request()
        request.components.components = (
            kind.ROBOT_STATE_ATTACHED_OBJECTS
            | kind.WORLD_OBJECT_NAMES
            | kind.WORLD_OBJECT_GEOMETRY
            | kind.OCTOMAP
        )
        self._future = self._client.call_async(request)
        self._future.add_done_callback(self._take_whole)

    def _take_whole(self, future: Any) -> None:
        answer = future.result()
        if answer is not None and not self._reader.is_whole:
            answer.scene.is_diff = False
            self._pass_on(self._reader.read(answer.scene), time.time_ns())


class SceneReader:
    """Reads planning scenes; remembers objects, because messages may change parts of them."""

    def __init__(self) -> None:
        self.is_whole = False
        """Whether a whole scene was read."""
        self._shapes: dict[str, tuple[Shape, ...]] = {}
        """Shapes of objects, in the frames of these."""

    def read(self, scene: Any) -> list[Change]:
        """Return the changes of a message, in their order."""
        changes: list[Change] = []
        if not scene.is_diff:
            self.is_whole = True
            self._shapes.clear()
        for attached in scene.robot_state.attached_collision_objects:
            changes.append(_attached(attached))
        for one in scene.world.collision_objects:
            changes.append(self._change(one))
        data = scene.world.octomap.octomap.data
        if len(data):
            text = 'no octomap is expected, got one'
            changes.append(
                _refused(f'octomap ({SCENE})', ObstacleError(text, Refusal.UNSUPPORTED))
            )
        if not scene.is_diff:
            kept = frozenset(change.name for change in changes if not change.is_removal)
            changes.insert(0, Change(SCENE, kept=kept))
        return changes

    def _change(self, one: Any) -> Change:
        if one.operation == REMOVE:
            if not one.id:  # all of them
                self._shapes.clear()
                return Change(SCENE)
            self._shapes.pop(one.id, None)
            return Change(SCENE, _name(one.id))
        change = Change(SCENE, _name(one.id), header=one.header, rests=True)
        try:
            before = self._shapes.get(one.id, ())
            if one.operation == ADD:
                shapes = _shapes(one)
            elif one.operation == APPEND:
                shapes = before + _shapes(one)
            elif one.operation == MOVE and before and not _has_shapes(one):
                shapes = before
            else:
                raise ObstacleError(
                    'ADD, REMOVE, APPEND, or MOVE of an object that is known and without its '
                    f'shapes, is expected, got operation {one.operation!r}',
                    Refusal.UNSUPPORTED,
                )
            if not 1 <= len(shapes) <= SLOTS:
                raise ObstacleError(
                    f'an object of 1 to {SLOTS} shapes is expected, got {len(shapes)}',
                    Refusal.TOO_MANY,
                )
            self._shapes[one.id] = shapes
            pose = pose_in(one.pose)
            placed = tuple(shape.under(pose) for shape in shapes)
            return dataclasses.replace(change, shapes=placed)
        except ObstacleError as error:
            return dataclasses.replace(change, error=error)


def _name(object_id: str) -> str:
    """Return the name of an obstacle, which no marker has."""
    return f'{short_name(object_id)} ({SCENE})'


def _refused(name: str, error: ObstacleError) -> Change:
    return Change(SCENE, name, error=error)


def _attached(attached: Any) -> Change:
    """Return the change for an object that is attached to the arm."""
    name = f'{_name(attached.object.id)} attached'
    if attached.object.operation == REMOVE:
        return Change(SCENE, name)
    text = f'an object of the world is expected, got one that is attached to {attached.link_name}'
    return _refused(name, ObstacleError(text, Refusal.UNSUPPORTED))


def _shapes(one: Any) -> tuple[Shape, ...]:
    """Return the shapes of an object in its frame; ObstacleError if one cannot be used."""
    return (
        *(_primitive(shape, pose) for shape, pose in _placed(one.primitives, one.primitive_poses)),
        *(_mesh(shape, pose) for shape, pose in _placed(one.meshes, one.mesh_poses)),
        *(_plate(shape, pose) for shape, pose in _placed(one.planes, one.plane_poses)),
    )


def _has_shapes(one: Any) -> bool:
    """Return whether a message has shapes of an object, or poses of them."""
    given = one.primitives, one.meshes, one.planes
    return any(map(len, (*given, one.primitive_poses, one.mesh_poses, one.plane_poses)))


def _placed(shapes: Any, poses: Any) -> list[tuple[Any, Pose]]:
    """Return each shape with its pose; a single one may have none."""
    if len(shapes) == 1 and not len(poses):
        return [(shapes[0], NOWHERE)]
    if len(shapes) != len(poses):
        raise ObstacleError(
            f'a pose for each shape is expected, got {len(poses)} for {len(shapes)}',
            Refusal.BAD_MESSAGE,
        )
    return [(shape, pose_in(pose)) for shape, pose in zip(shapes, poses, strict=True)]


def _primitive(solid: Any, pose: Pose) -> Shape:
    kinds, numbers = SolidPrimitive, list(solid.dimensions)
    expected = {kinds.BOX: 3, kinds.SPHERE: 1, kinds.CYLINDER: 2, kinds.CONE: 2}
    if expected.get(solid.type) != len(numbers):
        raise ObstacleError(
            'a BOX, SPHERE, CYLINDER or CONE with its dimensions is expected, got type '
            f'{solid.type} with {numbers}',
            Refusal.UNSUPPORTED,
        )
    if solid.type == kinds.BOX:
        return checked_shape('box', (numbers[0], numbers[1], numbers[2]), pose)
    if solid.type == kinds.SPHERE:
        return checked_shape('sphere', (numbers[0], 0.0, 0.0), pose)
    # A cone is inside of a cylinder.
    return checked_shape('cylinder', (numbers[1], numbers[0], 0.0), pose)


def _mesh(mesh: Any, pose: Pose) -> Shape:
    points = np.array([numbers_of(point) for point in mesh.vertices[: MOST_POINTS + 1]])
    return hull_shape(points.reshape(-1, 3), pose)


def _plate(plane: Any, pose: Pose) -> Shape:
    """Return a thin box for the plane a x + b y + c z + d = 0, around its point next to 0."""
    *normal, offset = plane.coef
    check_finite(plane.coef)
    size = float(np.linalg.norm(normal))
    if size < LEAST_NORMAL:
        raise ObstacleError(
            f'a plane with a normal is expected, got {list(plane.coef)}', Refusal.BAD_MESSAGE
        )
    turn, axis = np.empty(4), np.array(normal) / size
    mujoco.mju_quatZ2Vec(turn, axis)
    plate = Shape('box', (PLATE, PLATE, THICK), (-offset / size * axis, turn))
    return plate.under(pose)
