"""A robot with a URDF, as its simulations need it: its file, its joints and its home."""

from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.model_file import find_file, parse_model, read_model
from mher_ros.robots.robot import Robot, RobotError
from mher_ros.simulation.urdf_scene import UrdfScene, with_found_meshes
import numpy as np


class UrdfArm:
    """The URDF that a robot file names for its simulation."""

    def __init__(self, robot: Robot) -> None:
        simulated = robot.simulated()
        path = find_file(simulated.model, simulated.folder)
        self.text, self.folder = read_model(path), path.parent
        self.model = ArmModel(simulated, self.text)
        """The chain of joints from its base to its tool."""
        links = UrdfScene(parse_model(self.text), self.model.base_frame, self.folder, False)
        self.joint_names = tuple(joint.name for joint in links.spec.joints)
        """All joints of the file that move."""
        self.commanded = [self.joint_names.index(name) for name in self.model.joint_names]
        """Indices of the commanded joints (k)."""
        self.chain = [self.joint_names.index(name) for name in self.model.state_names]
        """Indices of those that move the tool (n)."""
        self.home = self._checked_home(robot)
        """Their initial positions [rad or m]; those that are not commanded stay there."""
        middle = self.model.tool_pose(self.home[self.chain])[0] / 2.0
        self.camera = {'lookat': middle, 'distance': 2.0, 'azimuth': 135.0, 'elevation': -20.0}

    @property
    def description(self) -> str:
        """The URDF, with full paths of its meshes."""
        return with_found_meshes(self.text, self.folder)

    def _checked_home(self, robot: Robot) -> Vector:
        unknown = [name for name in robot.home if name not in self.joint_names]
        if unknown:
            raise RobotError(
                f'robot {robot.name}: home takes joints of the model '
                f'({", ".join(self.joint_names)}); got {", ".join(unknown)}'
            )
        home = np.array([robot.home.get(name, 0.0) for name in self.joint_names])
        limits = zip(self.model.joint_names, self.model.lower, self.model.upper, strict=True)
        for place, (name, low, high) in zip(home[self.commanded], limits, strict=True):
            if not low <= place <= high:
                raise RobotError(
                    f'robot {robot.name}: home.{name} is from {low:g} to {high:g}, got {place:g}'
                )
        return home
