"""MJCF files as descriptions of arms: bodies and sites are links."""

from __future__ import annotations

import math
from pathlib import Path

from mher_ros.control.description import (
    after,
    Description,
    DescriptionError,
    Joint,
    Pose,
    pose_of,
    turned,
)
import mujoco
import numpy as np

__all__ = ['read_mjcf']

WORLD = 'world'
KINDS = {
    mujoco.mjtJoint.mjJNT_FREE: 'free',
    mujoco.mjtJoint.mjJNT_BALL: 'ball',
    mujoco.mjtJoint.mjJNT_HINGE: 'hinge',
    mujoco.mjtJoint.mjJNT_SLIDE: 'slide',
}


def read_mjcf(text: str, path: Path | None) -> Description:
    """Read a model from its file, or from its text where it needs no other files."""
    try:
        if path is not None:
            model = mujoco.MjModel.from_xml_path(str(path))
        else:
            model = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        raise DescriptionError(f'MuJoCo cannot read the model: {error}') from None
    joints = [joint for body in range(1, model.nbody) for joint in _joints_of(model, body)]
    links = {joint.child for joint in joints}
    for site in range(model.nsite):
        name = model.site(site).name
        if name and name not in links:
            pose = model.site_pos[site], model.site_quat[site]
            joints.append(_fixed(_link(model, int(model.site_bodyid[site])), name, pose))
    return Description(WORLD, joints)


def _joints_of(model: mujoco.MjModel, body: int) -> list[Joint]:
    r"""
    Return the body's joints one after the other, and what is left to its own frame.

    A joint with the anchor :math:`p` and the reference :math:`q_0` moves the body by
    :math:`T(p)\,J(q - q_0)\,T(-p)`, where :math:`J(q - q_0) = J(-q_0)\,J(q)`.
    """
    parent = _link(model, int(model.body_parentid[body]))
    pose: Pose = (model.body_pos[body], model.body_quat[body])
    joints: list[Joint] = []
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for index in range(first, first + count):
        kind, axis = KINDS[mujoco.mjtJoint(model.jnt_type[index])], model.jnt_axis[index]
        name, anchor = model.joint(index).name, model.jnt_pos[index]
        back = -model.qpos0[model.jnt_qposadr[index]]
        reference = (back * axis, turned(axis, 0.0)) if kind == 'slide' else pose_of()
        if kind == 'hinge':
            reference = np.zeros(3), turned(axis, back)
        limited = bool(model.jnt_limited[index])
        child = f'{_link(model, body)} after {name}'
        joints.append(
            Joint(
                name=name,
                kind=kind,
                parent=parent,
                child=child,
                origin=after(after(pose, pose_of(anchor)), reference),
                axis=axis.copy(),
                lower=float(model.jnt_range[index, 0]) if limited else -math.inf,
                upper=float(model.jnt_range[index, 1]) if limited else math.inf,
            )
        )
        parent, pose = child, pose_of(-anchor)
    return [*joints, _fixed(parent, _link(model, body), pose)]


def _fixed(parent: str, child: str, pose: Pose) -> Joint:
    origin = pose[0].copy(), pose[1].copy()
    return Joint(f'{child} fixed', 'fixed', parent, child, origin, np.array((1.0, 0.0, 0.0)))


def _link(model: mujoco.MjModel, body: int) -> str:
    return WORLD if body == 0 else model.body(body).name or f'body{body}'
