"""MuJoCo's own window on a simulated arm."""

from __future__ import annotations

import os

from mher_ros.options import OptionError
from mher_ros.simulation.plant import Plant
import mujoco
import mujoco.viewer

__all__ = ['SimWindow']


class SimWindow:
    """Shows a copy of the arm, so that nothing done in the window disturbs a run."""

    def __init__(self, plant: Plant) -> None:
        if not (os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY')):
            raise OptionError(
                "MuJoCo's window needs a screen, but neither DISPLAY nor WAYLAND_DISPLAY is set: "
                'leave viewer false (headless:=true)'
            )
        self._plant = plant
        self._copy = mujoco.MjData(plant.model)
        self._window = mujoco.viewer.launch_passive(
            plant.model, self._copy, show_left_ui=False, show_right_ui=False
        )
        for name, value in plant.camera.items():
            setattr(self._window.cam, name, value)

    def show(self) -> None:
        """Show the arm as it is now; nothing once somebody has closed the window."""
        if self._window.is_running():
            for name in ('qpos', 'mocap_pos', 'mocap_quat'):
                getattr(self._copy, name)[:] = getattr(self._plant.data, name)
            mujoco.mj_kinematics(self._plant.model, self._copy)
            self._window.sync()

    def close(self) -> None:
        """Close the window."""
        self._window.close()
