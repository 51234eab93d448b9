"""The controllers of real arms, for a simulated one."""

import math

from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel, POSE_JOINTS, spare_rotation, TOOL
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.randomisation import Randomisation
from mher_ros.simulation.contacts import Contacts
from mher_ros.simulation.plant import JointDrivenPlant, Plant
from mher_ros.simulation.plant_draw import draw_plant, PlantDraw
from mher_ros.simulation.transport import Channel, JointSensors, JointState
import mujoco
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

DAMPING = 1e-4  # limits joint velocities near a singularity [m^2]
TURNING = 5.0  # angular velocity of the tool per rad of orientation error [1/s]
POSTURE = 0.5  # velocity of a joint to its initial position per rad, in the null space [1/s]


class ControlledArm(Plant):
    """
    A simulated arm with several controllers.

    ``controller`` selects the meaning of a command, as the output of that name of policy_node:

    - ``joint_position``: positions (k,) [rad or m], as forward_command_controller takes them;
    - ``joint_velocity``: velocities (k,), as forward_command_controller takes them;
    - ``twist``: linear velocity of the tool (3,) [m/s], which keeps its orientation, as MoveIt
      Servo does;
    - ``pose``: position (3,) [m] and orientation (4,) (w, x, y, z) of the tool, as a Cartesian
      controller takes them.

    Without a command, positions and poses are kept, and velocities become 0.
    """

    def __init__(
        self,
        plant: JointDrivenPlant,
        arm: ArmModel,
        delay: float = 0.0,
        lag: float = 0.0,
        ranges: Randomisation | None = None,
    ) -> None:
        """
        Carry out commands after ``delay`` [s], with a lag of time constant ``lag`` [s].

        ``ranges``: what the plant is drawn from at each reset with a seed; before, it is nominal.
        """
        # The delay is rounded to the period; the kinematics of ``plant`` are those of ``arm``.
        self._plant = plant
        self.model, self.data, self.camera = plant.model, plant.data, plant.camera
        self.frame, self.period = plant.frame, plant.period
        self.joint_names, self.command_names = plant.joint_names, plant.command_names
        self.no_forces, self.untouched = plant.no_forces, plant.untouched
        self.controller = 'joint_position'  # of the next command
        self._chain = [plant.joint_names.index(name) for name in arm.state_names]
        self._arm, self._periods = arm, round(delay / plant.period)
        self._share = 1.0 - math.exp(-plant.period / lag) if lag else 1.0
        self._inverse = _InverseKinematics(arm, self._state()[0])
        self._asked: Vector
        self._sensors: JointSensors | None
        self._seen: JointState | None
        self._ranges = ranges
        self.draw: PlantDraw | None = None
        """The plant that was drawn; None: it is the nominal one."""
        self._rng = np.random.default_rng(0)  # of noise and losses; replaced by each draw
        self._forget()

    def description(self, name: str) -> str:
        return self._plant.description(name)

    def reset(self, seed: int | Generator | None = None, start: Vector | None = None) -> None:
        """
        Put the arm at rest in its initial state.

        A seed draws a new plant, if it is random; a generator draws the same one as its seed does,
        and its own numbers stay the same.
        """
        if start is not None:
            self._plant.checked_positions(start)
        if self._ranges is not None and seed is not None:
            rng, self._rng = np.random.default_rng(seed).spawn(2)
            joints, links = len(self.command_names), self._plant.movable_links
            self.draw = draw_plant(self._ranges, rng, joints, links, self.period)
            self._plant.vary(self.draw)
        self._plant.reset(start=start)
        self._forget()

    def joint_state(self) -> tuple[Vector, Vector]:
        """Return what is measured: positions [rad or m] and velocities of ``joint_names``."""
        if self._seen is None:
            return self._plant.joint_state()
        positions, velocities = self._seen
        return positions.copy(), velocities.copy()

    @property
    def has_new_state(self) -> bool:
        return self._states.is_new

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._plant.tool_pose()

    def put_obstacle(
        self, name: str, shape: str, size: ArrayLike, position: ArrayLike, orientation: ArrayLike
    ) -> None:
        self._plant.put_obstacle(name, shape, size, position, orientation)

    def remove_obstacle(self, name: str) -> None:
        self._plant.remove_obstacle(name)

    def contacts(self) -> Contacts | None:
        return self._plant.contacts()

    def advance(self, command: Vector | None) -> None:
        """Move for one period with a command to ``controller``."""
        controller, command = self._commands.send((self.controller, command), self._rng)
        is_velocity = OUTPUTS[controller].is_velocity
        if controller != self._running:
            self._start(controller, is_velocity)
        if is_velocity or command is not None:
            self._last = command
        asked = self._velocities(controller) if is_velocity else self._positions(controller)
        self._asked = self._asked + self._share * (asked - self._asked)
        if is_velocity:
            self._plant.advance_at(self._asked)
        else:
            self._plant.advance(self._asked)
        if self._sensors is not None:
            measured = self._sensors.measure(self._plant.joint_state(), self._rng)
            self._seen = self._states.send(measured, self._rng)

    def _forget(self) -> None:
        first: tuple[str, Vector | None] = ('joint_position', None)
        draw, self._sensors, self._seen = self.draw, None, None
        self._commands = Channel(first, self._periods)
        self._states: Channel[JointState] = Channel(self._plant.joint_state())
        if draw is not None:
            self._commands = Channel(first, self._periods + draw.command_delay, draw.lost_commands)
            joints = [self.joint_names.index(name) for name in self.command_names]
            self._sensors = JointSensors(
                joints, draw.position_noise, draw.velocity_noise, draw.quantisation
            )
            self._seen = self._sensors.measure(self._plant.joint_state(), self._rng)
            self._states = Channel(self._seen, draw.state_delay, draw.lost_states)
        self._start('joint_position', is_velocity=False)

    def _start(self, controller: str, is_velocity: bool) -> None:
        positions, velocities = self._state()
        count = len(self.command_names)
        self._running, self._last = controller, None
        self._kept: Vector | None = None
        self._asked = (velocities if is_velocity else positions)[:count].copy()
        self._reference = positions

    def _state(self) -> tuple[Vector, Vector]:
        """Return positions and velocities (n,) of the joints that move the tool."""
        positions, velocities = self._plant.joint_state()
        return positions[self._chain], velocities[self._chain]

    def _velocities(self, controller: str) -> Vector:
        if self._last is None:
            self._kept = None
            return np.zeros(len(self.command_names))
        if controller == 'joint_velocity':
            return self._last
        if self._kept is None:
            _, self._kept = self.tool_pose()
        positions, _ = self._state()
        _, turn = self._inverse.error(positions, self._kept)
        return self._inverse.velocities(self._last, TURNING * turn)

    def _positions(self, controller: str) -> Vector:
        """Return the set-points (k,) of the joints; for a pose, after one step towards it."""
        count, reference = len(self.command_names), self._reference
        if self._last is not None and controller == 'joint_position':
            reference[:count] = self._plant.checked_positions(self._last)
        elif self._last is not None:
            place, turn = self._inverse.error(reference, self._last[3:])
            left = self._last[:3] - place
            speeds = self._inverse.velocities(left / self.period, turn / self.period)
            moved = reference[:count] + self.period * speeds
            reference[:count] = np.clip(moved, self._arm.lower, self._arm.upper)
        return reference[:count]


class _InverseKinematics:
    """Joint velocities for a velocity of the tool, by damped least squares."""

    def __init__(self, arm: ArmModel, nominal: Vector) -> None:
        """``nominal``: positions (n,) to which redundant joints move."""
        count = len(arm.joint_names)
        self._arm, self._nominal = arm, nominal[:count]
        self._data, self._site = mujoco.MjData(arm.model), arm.model.site(TOOL).id
        self._columns = [int(np.flatnonzero(arm.order == i)[0]) for i in range(count)]
        self._jacobian = np.zeros((6, arm.model.nv))

    def error(self, positions: Vector, orientation: Vector) -> tuple[Vector, Vector]:
        """Return the position of the tool (3,) [m] and its orientation error (3,) [rad]."""
        model, data, rows = self._arm.model, self._data, self._jacobian
        data.qpos[:] = positions[self._arm.order]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacSite(model, data, rows[:3], rows[3:], self._site)
        rotation, turned, left = data.site_xmat[self._site], np.empty(4), np.empty(3)
        mujoco.mju_mat2Quat(turned, rotation)
        mujoco.mju_subQuat(left, orientation, turned)  # in the tool's frame
        return data.site_xpos[self._site].copy(), rotation.reshape(3, 3) @ left

    def velocities(self, linear: Vector, angular: Vector) -> Vector:
        """Return joint velocities (k,) within the limits, at the positions of ``error``."""
        rows = self._jacobian[:, self._columns]
        pull = POSTURE * (self._nominal - self._data.qpos[self._columns])
        if len(self._columns) < POSE_JOINTS:  # the orientation gives way
            entailed, turned = spare_rotation(rows)
            rows, angular = np.vstack((rows[:3], turned)), angular - entailed @ linear
        missing = np.concatenate((linear, angular)) - rows @ pull
        speeds = pull + rows.T @ np.linalg.solve(rows @ rows.T + DAMPING * np.eye(6), missing)
        return speeds / max(1.0, np.max(np.abs(speeds) / self._arm.velocity_limits))
