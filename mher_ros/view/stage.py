"""How the page looks before there is anything on it."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import ArrayLike
import viser

__all__ = ['FROM_THE_SIDE', 'look_at', 'set_stage']

FROM_THE_SIDE = (1.1, -0.9, 0.75)
"""Where an arm is looked at from, seen from what is looked at [m]."""


def set_stage(server: viser.ViserServer) -> None:
    """
    Turn z up, set lights, and leave room for the panel beside the picture.

    Shadows and reflections of surroundings are left out: where there is no graphics card they
    take seconds a picture, on the core that leads the arm.
    """
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    scene = server.scene
    scene.set_up_direction('+z')
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    scene.add_light_hemisphere(
        '/lights/sky', sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=2.2
    )
    for name, position, intensity in (
        ('key', (2.0, -3.0, 4.0), 1.2),
        ('fill', (-3.0, 2.0, 2.0), 0.5),
    ):
        scene.add_light_directional(
            f'/lights/{name}', intensity=intensity, cast_shadow=False, position=position
        )


def look_at(server: viser.ViserServer, place: ArrayLike, away: ArrayLike = FROM_THE_SIDE) -> None:
    """Turn everybody's eyes to ``place`` (3,) [m], from as far as ``away`` (3,) [m] from there."""
    centre = np.asarray(place, np.float64)
    eye = centre + np.asarray(away)
    server.initial_camera.look_at, server.initial_camera.position = centre, eye
    for client in server.get_clients().values():
        # One that told nonsense of its own camera is left alone with it.
        with contextlib.suppress(AssertionError, TypeError, ValueError):
            client.camera.position = eye  # which moves what is looked at along
            client.camera.look_at = centre
