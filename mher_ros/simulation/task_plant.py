"""The arm of a task, with the task's own dynamics."""

from mher_ros.interface import Vector
from mher_ros.simulation.plant import Plant
from mher_ros.tasks import make
from mher_ros.tasks.task import TaskOptions
import numpy as np


class TaskPlant(Plant):
    """A simulated task: a command is an action of the task."""

    def __init__(self, task_name: str, options: TaskOptions | None = None) -> None:
        self._task = make(task_name, options)
        self.frame = self._task.interface.frame
        self.period = self._task.interface.control_period
        self.joint_names = self._task.joint_names
        self.command_names = tuple(field.name for field in self._task.interface.action)
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        self._task.reset(seed=seed)
        self.model, self.data, self.camera = self._task.scene()

    def joint_state(self) -> tuple[Vector, Vector]:
        return self._task.joint_state()

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._task.tool_pose()

    def advance(self, command: Vector | None) -> None:
        """Do one control period with an action (k,), clipped to [-1, 1]."""
        if command is None:
            self._task.hold()
        else:
            self._task.move(command.astype(np.float32).clip(-1.0, 1.0))
        self._task.scene()  # updates ``data``
