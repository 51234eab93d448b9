"""Obstacles that come, move and go while an arm is simulated."""

from typing import Any

from mher_ros.interface import Vector
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.scene import FARTHEST, LARGEST, SMALLEST
from mher_ros.simulation.obstacles import COLOUR, CONTACT, geom_size, KINDS
import mujoco
import numpy as np
from numpy.typing import ArrayLike

SLOT = 'obstacle_slot'
SHAPES = {'box': 3, 'sphere': 1, 'cylinder': 2}
"""Number of entries of ``size`` that count."""
HIDDEN = (0.0, 0.0, 0.0, 0.0)


def add_slots(spec: Any) -> None:
    """Add empty places for obstacles to an ``MjSpec``, as bodies that nothing moves."""
    for number in range(SLOTS):
        body = spec.worldbody.add_body(name=f'{SLOT}{number}', mocap=True)
        # MuJoCo makes a bounding box only for a geom that can touch something.
        body.add_geom(
            name=f'{SLOT}{number}',
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=(SMALLEST, 0.0, 0.0),
            rgba=HIDDEN,
            mass=0.0,
            contype=CONTACT,
            conaffinity=0,
        )


class ObstacleBodies:
    """Puts obstacles into the slots of a model, and takes them out."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Empty all slots."""
        self._model, self._data = model, data
        self._poses: dict[str, tuple[int, Vector, Vector]] = {}
        for slot in range(SLOTS):
            self._show(slot, is_there=False)

    def put(
        self, name: str, shape: str, size: ArrayLike, position: ArrayLike, orientation: ArrayLike
    ) -> None:
        """Put an obstacle, or move one that is there; ValueError: it is refused."""
        edges, place = _checked_size(shape, size), _numbers('position', position, 3)
        turn = _numbers('orientation', orientation, 4)
        length = float(np.linalg.norm(turn))
        if np.abs(place).max() > FARTHEST or not length > 0.0:
            raise ValueError(
                f'an obstacle is within {FARTHEST:g} m and has an orientation (w, x, y, z); '
                f'got {position!r} and {orientation!r}'
            )
        if name in self._poses:
            slot = self._poses[name][0]
        else:
            used = {taken for taken, _, _ in self._poses.values()}
            free = [slot for slot in range(SLOTS) if slot not in used]
            if not free:
                raise ValueError(f'at most {SLOTS} obstacles are expected, got one more: {name}')
            slot = free[0]
        self._poses[name] = slot, place, turn / length
        model, geom = self._model, self._geom(slot)
        half = np.array(geom_size(shape, edges))
        model.geom_type[geom], model.geom_size[geom] = KINDS[shape], half
        extent = {'box': half, 'sphere': half[[0, 0, 0]], 'cylinder': half[[0, 0, 1]]}[shape]
        corner = {'box': half, 'sphere': half[:1], 'cylinder': half[:2]}[shape]
        model.geom_rbound[geom] = np.linalg.norm(corner)
        bounds = np.concatenate((np.zeros(3), extent))
        model.geom_aabb[geom] = bounds
        model.bvh_aabb[model.body_bvhadr[model.geom_bodyid[geom]]] = bounds
        self._show(slot, is_there=True)
        self.restore()

    def remove(self, name: str) -> None:
        """Take an obstacle out, if there is one of that name."""
        if name in self._poses:
            slot, _, _ = self._poses.pop(name)
            self._show(slot, is_there=False)

    def restore(self) -> None:
        """Put all obstacles where they are, also after a reset of the data."""
        for slot, place, turn in self._poses.values():
            mocap = self._model.body_mocapid[self._model.geom_bodyid[self._geom(slot)]]
            self._data.mocap_pos[mocap], self._data.mocap_quat[mocap] = place, turn
        mujoco.mj_kinematics(self._model, self._data)

    def name_of(self, geom: int) -> str:
        """Return the name of the obstacle that is this geom; empty: it is none."""
        for name, (slot, _, _) in self._poses.items():
            if self._geom(slot) == geom:
                return name
        return ''

    def _show(self, slot: int, is_there: bool) -> None:
        model, geom = self._model, self._geom(slot)
        kind = CONTACT if is_there else 0
        model.geom_contype[geom] = model.body_contype[model.geom_bodyid[geom]] = kind
        model.geom_rgba[geom] = COLOUR if is_there else HIDDEN

    def _geom(self, slot: int) -> int:
        return int(self._model.geom(f'{SLOT}{slot}').id)


def _checked_size(shape: str, size: ArrayLike) -> tuple[float, float, float]:
    if shape not in SHAPES:
        raise ValueError(f'a shape is one of {", ".join(SHAPES)}; got {shape!r}')
    first, second, third = _numbers('size', size, 3).tolist()
    counted = (first, second, third)[: SHAPES[shape]]
    if not all(SMALLEST <= edge <= LARGEST for edge in counted):
        raise ValueError(
            f'edges, radius and length of a {shape} are from {SMALLEST:g} to {LARGEST:g} m; '
            f'got {counted}'
        )
    return first, second, third


def _numbers(name: str, values: ArrayLike, count: int) -> Vector:
    checked = np.asarray(values, np.float64)
    if checked.shape != (count,) or not np.isfinite(checked).all():
        raise ValueError(f'{name} of an obstacle is {count} finite numbers, got {values!r}')
    return checked.copy()
