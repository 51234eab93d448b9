"""Obstacles at run time in a simulation."""

import threading
import time

from mher_ros.control.obstacle_tracker import ObstacleError
from mher_ros.robots.workspace import Refusal
from mher_ros.ros.common.frames import Frames
from mher_ros.ros.common.obstacle_changes import Change, Shape
from mher_ros.ros.common.obstacle_input import ObstacleInput
from mher_ros.simulation.plant import Plant
from rclpy.node import Node


class PlantObstacles:
    """Puts obstacles from topics into a plant; one that cannot be used stays where it was."""

    def __init__(
        self, node: Node, plant: Plant, lock: threading.Lock, planning_scene: str = ''
    ) -> None:
        """``lock``: held while the plant moves, or is changed."""
        self.lock, self._plant = lock, plant
        self._input = ObstacleInput(node, self, Frames(node, plant.frame), planning_scene)
        self.figures = self._input.figures

    def now(self) -> float:
        return time.monotonic()

    def put(self, name: str, shape: Shape, change: Change, sent: int) -> str:
        try:
            self._plant.put_obstacle(name, shape.kind, shape.size, *shape.pose)
        except ValueError as error:
            raise ObstacleError(str(error), Refusal.UNSUPPORTED) from None
        return ''

    def remove(self, name: str) -> None:
        self._plant.remove_obstacle(name)

    def lose(self, name: str, reason: str) -> None:
        """Do nothing: the status says what was refused."""
