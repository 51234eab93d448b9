"""Observations of a policy: the fields of its contract, each from its source."""

from collections.abc import Mapping, Sequence

from mher_ros.control.fit import (
    check_fit,
    FitError,
    JOINT_POSITION,
    JOINT_VELOCITY,
    POSITION,
    VELOCITY,
    velocity_unit,
)
from mher_ros.interface import SOURCES, TaskInterface
import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]
Seen = tuple[NDArray[np.float64], ...]
"""
Position (3,) [m] and velocity (3,) [m/s] of the tool, and where joints are observed their
positions (n,) [rad or m] and velocities (n,).
"""
NOTHING: NDArray[np.float64] = np.empty(0)


class Observer:
    """Makes a policy's observation: its fields by name, in its units, each from its source."""

    def __init__(self, interface: TaskInterface, joints: Sequence[str] = ()) -> None:
        """``joints`` (n): names of the joints that are seen."""
        check_fit(interface)
        fields = interface.observation
        values = *POSITION, *VELOCITY
        for prefix in (JOINT_POSITION, JOINT_VELOCITY):
            values += tuple(f'{prefix}{joint}' for joint in joints)
        for field in fields:
            if (
                field.name.startswith((JOINT_POSITION, JOINT_VELOCITY))
                and field.name not in values
            ):
                raise FitError(
                    f'a policy that observes some of the joints {", ".join(joints)} is expected, '
                    f'got one that observes {field.name}'
                )
        self._nominal = np.array([field.nominal for field in fields])
        self._entries: dict[str, tuple[Index, Index, NDArray[np.float64]]] = {}
        self._previous = [index for index, field in enumerate(fields) if field.source == 'action']
        for source in SOURCES:
            # Entries of the observation, and which of ``values`` they show.
            seen = [
                (
                    index,
                    values.index(field.name),
                    velocity_unit(field, interface) if field.name in VELOCITY else 1.0,
                )
                for index, field in enumerate(fields)
                if field.name in values and field.source == source
            ]
            if seen:
                entries, shown, factors = zip(*seen, strict=True)
                self._entries[source] = np.array(entries), np.array(shown), np.array(factors)
        self.sources = tuple(self._entries)
        """Sources of what is ``seen``."""

    def __call__(
        self, seen: Mapping[str, Seen], previous: NDArray[np.float64] = NOTHING
    ) -> NDArray[np.float64]:
        """
        Return the observation (n,) of what is ``seen``, by source.

        ``previous``: entries of the earlier actions that are observed, the newest action first.
        The tool is in the policy's workspace: ``Workspace.to_policy`` and ``velocity_to_policy``.
        """
        observation = self._nominal.copy()
        for source, (entries, shown, factors) in self._entries.items():
            observation[entries] = np.concatenate(seen[source])[shown] * factors
        observation[self._previous] = previous
        return observation
