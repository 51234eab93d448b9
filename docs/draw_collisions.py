"""
Draws the pictures of collision avoidance in this folder: ``python docs/draw_collisions.py``.

images/collision_shapes.png  a Panda among obstacles, with its collision shapes
images/collision_line.gif    a straight motion past an obstacle, without and with avoidance
images/page_collisions.png   the page with collision shapes

The motions are simulated with forces and contacts. The last picture needs a browser.
"""

from __future__ import annotations

from mher_ros.tasks.rendering import choose_backend

choose_backend()  # before MuJoCo is imported

import argparse  # noqa: E402
import contextlib  # noqa: E402
import dataclasses  # noqa: E402
import os  # noqa: E402
from pathlib import Path  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import imageio.v3 as imageio  # noqa: E402
from mher_ros.control.filter.motion_limiter import MotionLimits  # noqa: E402
from mher_ros.control.goal_controller import GoalController  # noqa: E402
from mher_ros.robots.robot import load_robot, Robot  # noqa: E402
from mher_ros.robots.scene import CollisionOptions, Obstacle  # noqa: E402
from mher_ros.robots.workspace import place_workspace  # noqa: E402
from mher_ros.simulation.dynamic_arm import DynamicArm  # noqa: E402
from mher_ros.tasks import make  # noqa: E402
from mher_ros.view.drawings import Colour  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image, ImageDraw  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / 'docs'), str(ROOT / 'test' / 'shared' / 'arms')]
import film_page  # noqa: E402
from film_page import Browser, IMAGES, node_process, PATIENCE, wait_for  # noqa: E402
from proportional_policy import write_proportional_policy  # noqa: E402

ROBOT = 'panda'
POST = Obstacle('post', 'cylinder', (0.5, 0.0, 0.25), size=(0.03, 0.5, 0.0))
TABLE = Obstacle('table', 'box', (0.45, 0.0, -0.04), size=(1.0, 1.0, 0.04))
BALL = Obstacle('ball', 'sphere', (0.3, -0.35, 0.35), size=(0.09, 0.0, 0.0))
BLOCK = Obstacle('block', 'box', (0.45, 0.4, 0.1), (0.0, 0.0, 0.5), (0.15, 0.1, 0.24))
START, GOAL = np.array((0.45, -0.15, 0.35)), np.array((0.42, 0.15, 0.35))
SPEED = 0.15  # of the tool [m/s]
SCENE = """
collision: {clearance: 0.01}
scene:
  table: {shape: box, position: [0.45, 0.0, -0.04], size: [1.0, 1.0, 0.04]}
  post: {shape: cylinder, position: [0.68, 0.1, 0.23], radius: 0.03, length: 0.5}
  ball: {shape: sphere, position: [0.35, -0.4, 0.35], radius: 0.09}
  block: {shape: box, position: [0.45, 0.4, 0.1], size: [0.15, 0.1, 0.24], rpy: [0.0, 0.0, 0.5]}
"""
SETTLED = 3.0  # time until the page shows the arm at rest [s]
SIZE, LARGE = (300, 330), (480, 640)  # height and width of a picture [pixels]
RATE = 8.0  # pictures per second of simulated time
LONGEST = 6.0  # of a motion [s]
COLOURS = 128  # of the film
WHITE, BLACK, FAR = 255, 40, 20.0  # background, and its distance [m]
EDGES = 0.8  # opacity of the edges of collision shapes


class Camera:
    """Draws a model as seen from one place."""

    def __init__(
        self,
        model: Any,
        size: tuple[int, int],
        lookat: Any,
        distance: float,
        azimuth: float,
        elevation: float,
    ) -> None:
        model.vis.global_.offheight, model.vis.global_.offwidth = LARGE
        self._renderer = mujoco.Renderer(model, *size)
        self._camera = mujoco.MjvCamera()
        self._camera.lookat[:] = lookat
        self._camera.distance = distance
        self._camera.azimuth, self._camera.elevation = azimuth, elevation
        model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.35, 0.55

    def draw(
        self, data: Any, marks: list[tuple[np.ndarray, float, Any]], edges: bool = False
    ) -> np.ndarray:
        """Return a picture with balls (place, radius, colour) on white, or of edges on black."""
        renderer = self._renderer
        renderer.update_scene(data, self._camera)
        scene = renderer.scene
        scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        scene.flags[mujoco.mjtRndFlag.mjRND_WIREFRAME] = edges
        for place, radius, rgba in marks:
            mujoco.mjv_initGeom(
                scene.geoms[scene.ngeom],
                mujoco.mjtGeom.mjGEOM_SPHERE,
                np.full(3, radius),
                place,
                np.eye(3).ravel(),
                np.array(rgba, np.float32),
            )
            scene.ngeom += 1
        picture = renderer.render().copy()
        if edges:
            return picture
        renderer.enable_depth_rendering()
        picture[renderer.render() > FAR] = WHITE
        renderer.disable_depth_rendering()
        return np.asarray(picture)

    def close(self) -> None:
        self._renderer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--no-page', action='store_true', help='do not start a browser')
    chosen = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    draw_shapes()
    draw_motions()
    if not chosen.no_page:
        take_page()


def robot_among(*obstacles: Obstacle, avoids: bool = True) -> Robot:
    collision = CollisionOptions(enabled=avoids)
    return dataclasses.replace(load_robot(ROBOT), scene=obstacles, collision=collision)


def draw_shapes() -> None:
    """Draw the arm, and over it the edges of its collision shapes."""
    arm = DynamicArm(robot_among(POST, TABLE, BALL, BLOCK), 'joint_position')
    collision = arm.arm.collision
    assert collision is not None
    shapes, place = collision.model, mujoco.MjData(collision.model)
    for index, part in enumerate(collision.parts):
        shapes.geom_rgba[collision.geoms[index]] = (1, 1, 1, not part.is_obstacle)
    place.qpos[:] = arm.positions()[arm.arm.order]
    mujoco.mj_forward(shapes, place)
    mujoco.mj_forward(arm.model, arm.data)
    view = (0.25, 0.0, 0.3), 1.5, 150.0, -25.0
    with contextlib.closing(Camera(arm.model, LARGE, *view)) as camera:
        picture = camera.draw(arm.data, [])
    with contextlib.closing(Camera(shapes, LARGE, *view)) as camera:
        is_edge = camera.draw(place, [], edges=True).max(axis=2) > BLACK
    blended = picture.astype(np.float64)
    blended[is_edge] *= 1.0 - EDGES
    blended[is_edge] += EDGES * WHITE * np.array(Colour.PART[:3])
    imageio.imwrite(IMAGES / 'collision_shapes.png', blended.astype(np.uint8))


def draw_motions() -> None:
    """Film the same motion without and with collision avoidance, side by side."""
    films = [film_of(False), film_of(True)]
    count = max(map(len, films))
    films = [film + [film[-1]] * (count - len(film)) for film in films]
    pictures = [np.hstack(pair) for pair in zip(*films, strict=True)]
    frames = [
        Image.fromarray(picture).quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
        for picture in pictures
    ]
    waits = [round(1000.0 / RATE)] * (count - 1) + [2000]
    frames[0].save(
        IMAGES / 'collision_line.gif', save_all=True, append_images=frames[1:], duration=waits,
        loop=0, optimize=True,
    )  # fmt: skip


def film_of(avoids: bool) -> list[np.ndarray]:
    """Return pictures of a motion from ``START`` to ``GOAL``; contacts are red."""
    robot = robot_among(POST, TABLE, avoids=avoids)
    arm = DynamicArm(robot, 'joint_position')
    interface = make('fetch_reach').interface
    controller = GoalController(
        None,
        interface,
        arm.arm,
        place_workspace(interface, robot),
        'joint_position',
        limits=MotionLimits(SPEED, robot.acceleration),
    )
    path, pictures = controller.path, []
    touched: list[np.ndarray] = []
    with contextlib.closing(
        Camera(arm.model, SIZE, (0.42, 0.0, 0.38), 0.9, 180.0, -55.0)
    ) as camera:
        for goal, is_filmed in ((START, False), (GOAL, True)):
            arm.settle(path)
            controller.take_goal(arm.now, goal)
            began, due = arm.now, arm.now
            touched.clear()
            while arm.now < began + LONGEST and controller.goal is not None:
                arm.step(path)
                touched += contacts_with(arm, POST.name)
                if is_filmed and arm.now >= due:
                    due += 1.0 / RATE
                    marks = [(GOAL, 0.015, Colour.REACHED)]
                    marks += [(place, 0.02, (1.0, 0.0, 0.0, 1.0)) for place in touched[-1:]]
                    picture = camera.draw(arm.data, marks)
                    pictures.append(labelled(picture, avoids, bool(touched), controller.reached))
                if controller.reached and path.filter.is_at_rest:
                    break
    return pictures


def contacts_with(arm: DynamicArm, name: str) -> list[np.ndarray]:
    """Return where an obstacle is touched (3,) [m]."""
    post = arm.model.geom(name).id
    return [
        contact.pos.copy()
        for contact in arm.data.contact
        if post in contact.geom.tolist() and contact.dist < 0.0
    ]


def labelled(picture: np.ndarray, avoids: bool, touches: bool, reached: bool) -> np.ndarray:
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    draw.text((8, 6), f'collision avoidance {"on" if avoids else "off"}', fill=(40, 40, 40))
    if touches:
        draw.text((8, 22), 'contact', fill=(200, 0, 0))
    elif reached:
        draw.text((8, 22), 'goal reached', fill=(0, 120, 30))
    return np.asarray(image)


def take_page() -> None:
    """Take a picture of the page of a simulated arm with collision shapes."""
    os.environ.update(ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST', ROS_DOMAIN_ID=film_page.DOMAIN)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Browser()) as browser:
        file = Path(folder) / f'{ROBOT}.yaml'
        own = load_robot(ROBOT)
        file.write_text((own.folder / f'{ROBOT}.yaml').read_text() + SCENE)
        policy = write_proportional_policy(Path(folder) / 'policy.onnx')
        robot = {'robot': str(file), 'output': 'joint_position'}
        parameters = {**robot, 'policy': str(policy), 'controller': 'straight_line'}
        parameters['safety.state_timeout'] = 1.0  # the browser takes the same cores
        with (
            node_process('sim_node', robot),
            node_process('policy_node', parameters),
            film_page.open_page(browser) as window,
        ):
            wait_for(lambda: 'there is no goal' in window.text(), PATIENCE, 'policy_node')
            window.tick('Collision shapes')
            wait_for(lambda: _moves(window), PATIENCE, 'a motion')
            wait_for(lambda: 'reached' in window.text(), PATIENCE, 'the goal')
            time.sleep(SETTLED)
            (IMAGES / 'page_collisions.png').write_bytes(window.png())


def _moves(window: film_page.Page) -> bool:
    """Return whether there is a goal; if not, ask for one: a busy page may discard it as late."""
    if 'Distance' in window.text():
        return True
    window.press('Random goal')
    return False


if __name__ == '__main__':
    main()
