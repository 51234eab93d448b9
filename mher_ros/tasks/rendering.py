"""Images of tasks, on machines with and without a display."""

import ctypes.util
import os
import sys
from typing import Any

from mher_ros.errors import MherError
from mher_ros.tasks.task import Array
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 640, 480


class RenderingError(MherError, RuntimeError):
    """This machine cannot render; the message says what to install."""


def choose_backend() -> None:
    """Set MUJOCO_GL if it is not set; has no effect after the import of MuJoCo."""
    if os.environ.get('MUJOCO_GL') or 'mujoco' in sys.modules:
        return
    for library, backend in (('EGL', 'egl'), ('OSMesa', 'osmesa')):
        if ctypes.util.find_library(library):
            os.environ['MUJOCO_GL'] = backend
            return


class SceneRenderer:
    """Renders a MuJoCo scene with the goal as a translucent ball."""

    def __init__(self, model: Any, camera: dict[str, Any]) -> None:
        import mujoco

        model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
        # Mocap bodies are not part of the real scene.
        model.geom_rgba[model.body_mocapid[model.geom_bodyid] >= 0, 3] = 0.0
        try:
            self._renderer = mujoco.Renderer(model, HEIGHT, WIDTH)
        except Exception as error:  # each backend raises another type
            raise RenderingError(
                'MuJoCo cannot render: without a display it needs EGL or OSMesa (Debian and '
                'Ubuntu: apt install libegl1 libgl1) and MUJOCO_GL=egl or osmesa, set before '
                f'Python starts; its error: {error}'
            ) from error
        self._camera = mujoco.MjvCamera()
        for name, value in camera.items():
            setattr(self._camera, name, value)
        self._shown = mujoco.MjvOption()
        self._shown.sitegroup[:] = 0  # the models' own target markers
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0

    def render(self, data: Any, goal: Array, radius: float) -> NDArray[np.uint8]:
        """Return the image (HEIGHT, WIDTH, 3) with a ball of ``radius`` at ``goal``."""
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
        return self._renderer.render()

    def close(self) -> None:
        self._renderer.close()
