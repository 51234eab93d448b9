"""Pictures of tasks, on machines with and without a screen."""

from __future__ import annotations

import ctypes.util
import os
import sys
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
import numpy as np
from numpy.typing import NDArray

__all__ = ['RenderingError', 'SceneRenderer', 'choose_backend', 'draw_square']

WIDTH, HEIGHT = 640, 480


class RenderingError(MherError, RuntimeError):
    """No picture can be made here; the message says what to install."""


def choose_backend() -> None:
    """
    Choose how MuJoCo draws, unless MUJOCO_GL already says so.

    MuJoCo reads the variable when it is first imported, so this comes before that.
    """
    if os.environ.get('MUJOCO_GL') or 'mujoco' in sys.modules:
        return
    for library, backend in (('EGL', 'egl'), ('OSMesa', 'osmesa')):
        if ctypes.util.find_library(library):
            os.environ['MUJOCO_GL'] = backend
            return


class SceneRenderer:
    """Draws a MuJoCo scene with the goal as a translucent ball."""

    def __init__(self, model: Any, camera: dict[str, Any]) -> None:
        import mujoco

        model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
        # The bodies that lead an arm are no part of what one would see.
        model.geom_rgba[model.body_mocapid[model.geom_bodyid] >= 0, 3] = 0.0
        try:
            self._renderer = mujoco.Renderer(model, HEIGHT, WIDTH)
        except Exception as error:  # each backend fails in a way of its own
            raise RenderingError(
                'MuJoCo cannot draw here: without a screen it needs EGL or OSMesa (Debian and '
                'Ubuntu: apt install libegl1 libgl1), and MUJOCO_GL=egl or osmesa set '
                f'before Python starts; it said: {error}'
            ) from error
        self._camera = mujoco.MjvCamera()
        self._camera.lookat[:] = camera['lookat']
        self._camera.distance = camera['distance']
        self._camera.azimuth = camera['azimuth']
        self._camera.elevation = camera['elevation']
        self._shown = mujoco.MjvOption()
        self._shown.sitegroup[:] = 0  # models mark targets of their own with sites
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0

    def draw(self, data: Any, goal: NDArray[np.float64], radius: float) -> NDArray[np.uint8]:
        """Return the picture (HEIGHT, WIDTH, 3) with a ball of ``radius`` at ``goal``."""
        import mujoco

        self._renderer.update_scene(data, self._camera, self._shown)
        scene = self._renderer.scene
        for size, colour in ((radius, (0.1, 0.8, 0.2, 0.3)), (radius / 5, (0.9, 0.1, 0.1, 1.0))):
            mujoco.mjv_initGeom(
                scene.geoms[scene.ngeom],
                mujoco.mjtGeom.mjGEOM_SPHERE,
                np.full(3, size),
                goal,
                np.eye(3).ravel(),
                np.array(colour, np.float32),
            )
            scene.ngeom += 1
        picture: NDArray[np.uint8] = self._renderer.render()
        return picture

    def close(self) -> None:
        """Free the graphics context."""
        self._renderer.close()


def draw_square(
    half_side: float,
    walls: tuple[tuple[float, float, float, float], ...],
    position: NDArray[np.float64],
    goal: NDArray[np.float64],
    interface: TaskInterface,
) -> NDArray[np.uint8]:
    """Return a picture (HEIGHT, HEIGHT, 3) of the square from above."""
    from PIL import Image, ImageDraw

    image = Image.new('RGB', (HEIGHT, HEIGHT), 'white')
    draw = ImageDraw.Draw(image)
    scale = HEIGHT / (2.0 * half_side)

    def pixel(x: float, y: float) -> tuple[float, float]:
        return (x + half_side) * scale, (half_side - y) * scale

    for x0, x1, y0, y1 in walls:
        draw.rectangle((*pixel(x0, y1), *pixel(x1, y0)), fill='grey')
    for centre, radius, colour in (
        (goal, interface.success_threshold, (150, 220, 150)),
        (position, 0.12 * half_side / 4.0, (40, 80, 200)),
    ):
        (x, y), size = pixel(*centre), radius * scale
        draw.ellipse((x - size, y - size, x + size, y + size), fill=colour)
    return np.asarray(image)
