"""Common parts of the pages: lights and cameras, the arm of a URDF, learning curves."""

from collections.abc import Mapping
import contextlib
import itertools
from pathlib import Path
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import Vector
from mher_ros.robots.model_file import parse_model
from mher_ros.robots.urdf import read_urdf
from mher_ros.simulation.shapes import Shape, visible_shapes
from mher_ros.simulation.urdf_scene import scene_of
import mujoco
import numpy as np
from numpy.typing import ArrayLike
import trimesh
import viser
from viser import uplot

STEPS = 'environment steps'
FROM_THE_SIDE = (1.1, -0.9, 0.75)  # default position of the camera, relative to the arm [m]
NUMBERS = itertools.count()  # one per arm, so that a new one is drawn before the old is removed
STILL = 1e-4  # largest invisible motion, in metres and in entries of a quaternion


def set_stage(server: viser.ViserServer) -> None:
    """Set lights and the upward axis z, and dock the panel."""
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    scene = server.scene
    scene.set_up_direction('+z')
    # No shadows or reflections: without a graphics card an image would take seconds, on the core
    # that commands the arm.
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    scene.add_light_hemisphere(
        '/lights/sky', sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=2.2
    )
    for name, place, strength in (('key', (2.0, -3.0, 4.0), 1.2), ('fill', (-3.0, 2.0, 2.0), 0.5)):
        scene.add_light_directional(
            f'/lights/{name}', intensity=strength, cast_shadow=False, position=place
        )


def look_at(server: viser.ViserServer, place: ArrayLike, away: ArrayLike = FROM_THE_SIDE) -> None:
    """Point all cameras at ``place`` (3,) [m], from there plus ``away`` (3,) [m]."""
    centre = np.asarray(place, np.float64)
    eye = centre + np.asarray(away)
    server.initial_camera.look_at, server.initial_camera.position = centre, eye
    for client in server.get_clients().values():
        # A client that sent invalid values of its camera is skipped.
        with contextlib.suppress(AssertionError, TypeError, ValueError):
            client.camera.position = eye  # this also moves look_at
            client.camera.look_at = centre


class ArmSceneError(MherError, ValueError):
    """A URDF that cannot be shown."""


class ArmScene:
    """One arm in the axes of the link ``base``; after the start only moved links are sent."""

    def __init__(self, server: viser.ViserServer, urdf: str, base: str = '') -> None:
        """Draw the arm of ``urdf``; ``base`` is the name of a link, by default the root."""
        try:
            description = read_urdf(parse_model(urdf))
            self.base = base or description.root
            # The URDF came over a topic: its meshes have absolute paths.
            model = scene_of(urdf, self.base, Path.cwd())
        except MherError as error:
            link = base or 'at its root'
            raise ArmSceneError(f'expected a URDF with a link {link}; {error}') from error
        self.links = frozenset(description.links)
        self._server, self._model, self._data = server, model, mujoco.MjData(model)
        self._addresses = {
            model.joint(index).name: int(model.jnt_qposadr[index]) for index in range(model.njnt)
        }
        self._frames: dict[int, viser.FrameHandle] = {}
        self._shapes: list[Any] = []
        root = f'/arm{next(NUMBERS)}'
        with server.atomic():
            for shape in visible_shapes(model, tuple(self._addresses)):
                name = f'{root}/{shape.body}'
                if shape.body not in self._frames:
                    self._frames[shape.body] = server.scene.add_frame(name, show_axes=False)
                self._shapes.append(_add(server.scene, f'{name}/{len(self._shapes)}', shape))
        self.is_empty = not self._shapes  # nothing is visible; perhaps no mesh was found
        self.move({})

    def move(self, positions: Mapping[str, float]) -> None:
        """Set joint positions [rad or m] by name; unknown joints are ignored."""
        for name, position in positions.items():
            if name in self._addresses and np.isfinite(position):
                self._data.qpos[self._addresses[name]] = position
        mujoco.mj_kinematics(self._model, self._data)
        with self._server.atomic():
            for body, frame in self._frames.items():
                place, turn = self._data.xpos[body], self._data.xquat[body]
                moved = np.abs(place - frame.position).max() > STILL
                if moved or np.abs(turn - frame.wxyz).max() > STILL:
                    frame.position, frame.wxyz = place.copy(), turn.copy()

    def centre(self) -> Vector:
        """Return the centre of the links (3,) [m]."""
        places = self._data.xpos
        return (places.min(0) + places.max(0)) / 2.0

    def remove(self) -> None:
        for handle in (*self._shapes, *self._frames.values()):
            handle.remove()
        self._frames, self._shapes = {}, []


class Curves:
    def __init__(self, server: viser.ViserServer) -> None:
        percent = uplot.Scale(auto=False, range=(0.0, 105.0))
        self._success = _plot(server, 'goals reached [%]', '#d55e00', percent)
        self._errors = {
            unit: _plot(server, f'final error [{unit}]', '#0072b2', uplot.Scale(auto=True))
            for unit in ('mm', '1')
        }

    def show(self, rows: Vector, unit: str) -> None:
        """Draw rows (n, 3) of steps, success rate, final error in ``unit`` (metres as mm)."""
        factor, own = (1000.0, 'mm') if unit == 'm' else (1.0, '1')
        _show(self._success, rows[:, 0], 100.0 * rows[:, 1])
        for name, plot in self._errors.items():
            shown = rows if name == own else rows[:0]
            _show(plot, shown[:, 0], factor * shown[:, 2])


def _add(scene: viser.SceneApi, name: str, shape: Shape) -> Any:
    *colour, opacity = shape.rgba
    how: dict[str, Any] = {
        'color': tuple(round(255.0 * part) for part in colour),
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
    vertices, faces = np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.uint32)
    # Flat shading keeps the edges of a CAD model.
    return scene.add_mesh_simple(name, vertices, faces, flat_shading=True, **how)


def _show(plot: viser.GuiUplotHandle, x: Vector, y: Vector) -> None:
    if plot.visible != (len(x) > 0):
        plot.visible = len(x) > 0
    if len(x):
        plot.data = (x.copy(), y.copy())


def _plot(
    server: viser.ViserServer, label: str, colour: str, scale: uplot.Scale
) -> viser.GuiUplotHandle:
    points = uplot.Series_Points(show=True, size=6)
    return server.gui.add_uplot(
        (np.zeros(1), np.zeros(1)),
        (
            uplot.Series(label=STEPS),
            uplot.Series(label=label, stroke=colour, width=2, points=points),
        ),
        scales={'x': uplot.Scale(time=False, auto=True), 'y': scale},
        # In the title: there is no room for labels at the axes.
        title=f'{label} over {STEPS}',
        axes=(uplot.Axis(), uplot.Axis()),
        legend=uplot.Legend(show=False),
        aspect=2.0,  # so that both plots are visible below the lines and buttons of a run
        padding=(8, 14, 0, 0),  # [pixels], clockwise: room for the outermost tick labels
        visible=False,
    )
