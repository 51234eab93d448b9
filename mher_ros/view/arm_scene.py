"""An arm on the page: its links as its URDF describes them, where its joints have them."""

from __future__ import annotations

from collections.abc import Mapping
import itertools
from pathlib import Path
from typing import Any

from mher_ros.control.model_xml import parse_model
from mher_ros.control.urdf_file import read_urdf
from mher_ros.errors import MherError
from mher_ros.simulation.shapes import Shape, visible_shapes
from mher_ros.simulation.urdf_scene import scene_of
import mujoco
import numpy as np
from numpy.typing import NDArray
import trimesh
import viser

__all__ = ['ArmScene', 'ArmSceneError']

NUMBERS = itertools.count()
"""So that one arm can be drawn before another is taken away."""
STILL = 1e-4
"""What has moved less, in metres and in parts of a quaternion, since it was told is not seen."""


class ArmSceneError(MherError, ValueError):
    """A description of an arm that cannot be shown."""


class ArmScene:
    """
    One arm, drawn once; then only its links that move are told.

    The page's axes are those of the link ``base``.
    """

    def __init__(self, server: viser.ViserServer, urdf: str, base: str = '') -> None:
        """Draw the arm of ``urdf``; ``base`` names a link, default: the root."""
        try:
            description = read_urdf(parse_model(urdf))
            self.base = base or description.root
            # Meshes in a URDF that came over a topic have full addresses.
            model = scene_of(urdf, self.base, Path.cwd())
        except MherError as error:
            raise ArmSceneError(
                f'a URDF with a link {base or "at its root"} is expected, got one with this '
                f'trouble: {error}'
            ) from error
        self.links = frozenset(description.links)
        self._server, self._model, self._data = server, model, mujoco.MjData(model)
        self._addresses = {
            model.joint(index).name: int(model.jnt_qposadr[index]) for index in range(model.njnt)
        }
        self._root = f'/arm{next(NUMBERS)}'
        self._frames: dict[int, viser.FrameHandle] = {}
        self._shapes: list[Any] = []
        with server.atomic():
            self._draw()
        self.move({})

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that ``move`` takes."""
        return tuple(self._addresses)

    def move(self, positions: Mapping[str, float]) -> None:
        """Put joints, by name, to positions [rad or m]; joints it does not have do not matter."""
        for name, position in positions.items():
            if name in self._addresses and np.isfinite(position):
                self._data.qpos[self._addresses[name]] = position
        mujoco.mj_kinematics(self._model, self._data)
        with self._server.atomic():
            for body, frame in self._frames.items():
                _place(frame, self._data.xpos[body], self._data.xquat[body])

    def centre(self) -> NDArray[np.float64]:
        """Return the middle of the links (3,) [m], to be looked at."""
        places = self._data.xpos
        return (places.min(0) + places.max(0)) / 2.0

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it can be seen: none of its meshes was found, say."""
        return not self._shapes

    def remove(self) -> None:
        """Take it off the page."""
        for handle in (*self._shapes, *self._frames.values()):
            handle.remove()
        self._frames, self._shapes = {}, []

    def _draw(self) -> None:
        model = self._model
        for shape in visible_shapes(model, self.joint_names):
            if shape.body not in self._frames:
                self._frames[shape.body] = self._server.scene.add_frame(
                    f'{self._root}/{shape.body}', show_axes=False
                )
            name = f'{self._root}/{shape.body}/{len(self._shapes)}'
            self._shapes.append(_add(self._server.scene, name, shape))


def _add(scene: viser.SceneApi, name: str, shape: Shape) -> Any:
    red, green, blue, opacity = shape.rgba
    how: dict[str, Any] = {
        'color': tuple(round(255.0 * part) for part in (red, green, blue)),
        'opacity': opacity if opacity < 1.0 else None,
        'position': shape.position,
        'wxyz': shape.orientation,
    }
    x, y, z = shape.size
    if shape.kind == 'box':
        return scene.add_box(name, dimensions=(x, y, z), **how)
    if shape.kind == 'sphere':
        return scene.add_icosphere(name, radius=x / 2.0, **how)
    if shape.kind == 'cylinder':
        return scene.add_cylinder(name, radius=x / 2.0, height=z, **how)
    mesh: Any = trimesh.load(shape.mesh, force='mesh')
    return scene.add_mesh_simple(
        name,
        np.asarray(mesh.vertices, np.float32),
        np.asarray(mesh.faces, np.uint32),
        # Edges stay sharp where a CAD model has them.
        flat_shading=True,
        **how,
    )


def _place(
    frame: viser.FrameHandle, position: NDArray[np.float64], orientation: NDArray[np.float64]
) -> None:
    moved = np.abs(position - frame.position).max() > STILL
    if moved or np.abs(orientation - frame.wxyz).max() > STILL:
        frame.position, frame.wxyz = position.copy(), orientation.copy()
