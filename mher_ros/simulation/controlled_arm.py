"""The controllers that real arms come with, in front of a simulated one."""

from __future__ import annotations

from collections import deque
import math

from mher_ros.control.arm_model import ArmModel, TOOL
from mher_ros.simulation.plant import JointDrivenPlant, Plant
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['ControlledArm']

Vector = NDArray[np.float64]

DAMPING = 1e-4
"""Squared; keeps joints slow near a singularity [m^2]."""
TURNING = 5.0
"""Speed at which the tool turns back to its orientation per rad that it is off [1/s]."""
POSTURE = 0.5
"""Speed of a joint towards its start per rad, as far as the tool does not move by it [1/s]."""


class ControlledArm(Plant):
    """
    An arm whose commands go to one of several controllers.

    What a command is depends on ``controller``, whose commands are those of policy_node's output
    of that name:

    - ``joint_position``: positions (k,) [rad or m], as forward_command_controller takes them;
    - ``joint_velocity``: velocities (k,), as forward_command_controller takes them;
    - ``twist``: linear velocity of the tool (3,) [m/s], which keeps its orientation, as MoveIt
      Servo does;
    - ``pose``: position (3,) [m] and orientation (4,) (w, x, y, z) of the tool, as a Cartesian
      controller takes them.

    Without a command positions and poses stay in force, and velocities end.
    """

    def __init__(
        self, plant: JointDrivenPlant, arm: ArmModel, delay: float = 0.0, lag: float = 0.0
    ) -> None:
        """
        Control ``plant``, whose kinematics are those of ``arm``.

        Commands are carried out ``delay`` [s] later, to the period, and what they ask of the
        joints passes a first-order lag with the time constant ``lag`` [s].
        """
        self._plant = plant
        self.model, self.data, self.camera = plant.model, plant.data, plant.camera
        self.frame, self.period = plant.frame, plant.period
        self.joint_names, self.command_names = plant.joint_names, plant.command_names
        self.controller = 'joint_position'
        """That which the next command is for."""
        self._chain = [plant.joint_names.index(name) for name in arm.state_names]
        self._arm, self._periods = arm, round(delay / plant.period)
        self._share = 1.0 - math.exp(-plant.period / lag) if lag else 1.0
        self._inverse = _InverseKinematics(arm, self._state()[0])
        self._asked: Vector
        self._forget()

    def description(self, name: str) -> str:
        """Return the URDF of the arm."""
        return self._plant.description(name)

    def reset(self, seed: int | None = None) -> None:
        """Put the arm in its initial state."""
        self._plant.reset(seed)
        self._forget()

    def joint_state(self) -> tuple[Vector, Vector]:
        """Return positions and velocities of all joints."""
        return self._plant.joint_state()

    def tool_pose(self) -> tuple[Vector, Vector]:
        """Return position (3,) [m] and orientation (4,) (w, x, y, z) of the tool."""
        return self._plant.tool_pose()

    def advance(self, command: Vector | None) -> None:
        """Move for one period under a command to ``controller``."""
        self._under_way.append((self.controller, command))
        controller, command = self._under_way.popleft()
        is_velocity = controller in ('joint_velocity', 'twist')
        if controller != self._running:
            self._start(controller, is_velocity)
        if is_velocity or command is not None:
            self._last = command
        if is_velocity:
            asked = self._velocities(controller)
        else:
            asked = self._positions(controller)
        self._asked = self._asked + self._share * (asked - self._asked)
        if is_velocity:
            self._plant.advance_at(self._asked)
        else:
            self._plant.advance(self._asked)

    def _forget(self) -> None:
        self._under_way: deque[tuple[str, Vector | None]] = deque(
            [('joint_position', None)] * self._periods
        )
        self._start('joint_position', is_velocity=False)

    def _start(self, controller: str, is_velocity: bool) -> None:
        positions, velocities = self._state()
        count = len(self.command_names)
        self._running, self._last = controller, None
        self._kept: Vector | None = None
        self._asked = (velocities if is_velocity else positions)[:count]
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
        """Return the set-points (k,) of the joints; those of a pose are one step nearer to it."""
        count, reference = len(self.command_names), self._reference
        if self._last is not None and controller == 'joint_position':
            reference[:count] = self._plant.checked_positions(self._last)
        elif self._last is not None:
            place, turn = self._inverse.error(reference, self._last[3:])
            speeds = self._inverse.velocities(
                (self._last[:3] - place) / self.period, turn / self.period
            )
            moved = reference[:count] + self.period * speeds
            reference[:count] = np.clip(moved, self._arm.lower, self._arm.upper)
        return reference[:count]


class _InverseKinematics:
    """Velocities of the commanded joints for one of the tool: damped least squares."""

    def __init__(self, arm: ArmModel, ease: Vector) -> None:
        """``ease``: positions (n,) that joints free to move are drawn to."""
        count = len(arm.joint_names)
        self._arm, self._ease = arm, ease[:count]
        self._data, self._site = mujoco.MjData(arm.model), arm.model.site(TOOL).id
        self._columns = [int(np.flatnonzero(arm.order == i)[0]) for i in range(count)]
        self._jacobian = np.zeros((6, arm.model.nv))

    def error(self, positions: Vector, orientation: Vector) -> tuple[Vector, Vector]:
        """Return where the tool is (3,) [m] and the rotation (3,) [rad] that it lacks."""
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
        """Return velocities (k,) within the limits where ``error`` was asked last."""
        rows = self._jacobian[:, self._columns]
        pull = POSTURE * (self._ease - self._data.qpos[self._columns])
        missing = np.concatenate((linear, angular)) - rows @ pull
        speeds = pull + rows.T @ np.linalg.solve(rows @ rows.T + DAMPING * np.eye(6), missing)
        return speeds / max(1.0, np.max(np.abs(speeds) / self._arm.velocity_limits))
