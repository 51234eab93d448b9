"""Decodes the actions of a policy into motions of an arm."""

import math

from mher_ros.control.fit import FitError
from mher_ros.control.motion import JointVelocities, Motion, ToolVelocity
from mher_ros.interface import TaskInterface
import numpy as np
from numpy.typing import NDArray

RESPONSE = {'tool_displacement': 0.62, 'target_displacement': 1.0, 'setpoint_displacement': 1.0}
"""
Share of the displacement that the tool has covered at the next action, by meaning.

In training, a tool whose target is 50 mm away moves 30 to 33 mm in one control period.
"""


class ActionDecoder:
    r"""
    Returns the motion that an action asks for.

    An action :math:`a \in [-1, 1]^k` that displaces the tool asks for the velocity
    :math:`a_i \, scale_i \, r / period` along the axes of the base frame, with the response
    :math:`r` of the arm in training. An action that displaces joints asks for the joint
    velocities :math:`a_i \, scale_i / period`.
    """

    def __init__(self, interface: TaskInterface, lengths: float = 1.0) -> None:
        """
        Decode actions of ``interface``; FitError if they do not move an arm.

        ``lengths``: length on the arm over length in training, ``Workspace.scale``.
        """
        meaning, period = interface.action_meaning, interface.control_period
        self._moves_joints = interface.moves_joints
        if not (self._moves_joints or meaning in RESPONSE):
            raise FitError(
                f'a policy for {interface.task} cannot move an arm: its actions mean {meaning}; '
                f'expected one of joint_displacement, {", ".join(RESPONSE)}'
            )
        scales = np.array([field.scale for field in interface.action])
        if not self._moves_joints:
            scales = scales[:3] * RESPONSE[meaning] * lengths
        self._rates = scales / period

    def decode(self, action: NDArray[np.floating]) -> Motion:
        """Return the motion that an action (k,) asks for; ValueError if it is not finite."""
        velocity = action[: len(self._rates)] * self._rates
        if not math.isfinite(velocity.sum()):
            raise ValueError(f'finite actions are expected of the policy, got {action.tolist()}')
        return JointVelocities(velocity) if self._moves_joints else ToolVelocity(velocity)
