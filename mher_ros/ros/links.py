"""The ways to step an arm, by the name that the parameter ``stepping`` gives them."""

from __future__ import annotations

from mher_ros.ros.arm_link import ArmLink
from mher_ros.ros.lockstep_link import LockstepLink
from mher_ros.ros.paced_link import PacedLink

__all__ = ['LINKS']

LINKS: dict[str, type[ArmLink]] = {link.stepping: link for link in (LockstepLink, PacedLink)}
