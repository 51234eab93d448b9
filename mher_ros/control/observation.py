"""Observations of a policy: the fields of its contract, each from its source."""

from collections.abc import Mapping

from mher_ros.control.fit import check_fit, POSITION, VELOCITY, velocity_unit
from mher_ros.interface import SOURCES, TaskInterface
import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]
Tool = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Position (3,) [m] and velocity (3,) [m/s]."""


class Observer:
    """Makes a policy's observation: its fields by name, in its units, each from its source."""

    def __init__(self, interface: TaskInterface) -> None:
        check_fit(interface)
        fields = interface.observation
        self._nominal = np.array([field.nominal for field in fields])
        self._entries: dict[str, tuple[Index, Index, NDArray[np.float64]]] = {}
        for source in SOURCES:
            # Entries of the observation, and which of (position, velocity) they show (6,).
            seen = [
                (
                    index,
                    (*POSITION, *VELOCITY).index(field.name),
                    velocity_unit(field, interface) if field.name in VELOCITY else 1.0,
                )
                for index, field in enumerate(fields)
                if field.name in (*POSITION, *VELOCITY) and field.source == source
            ]
            if seen:
                entries, shown, factors = zip(*seen, strict=True)
                self._entries[source] = np.array(entries), np.array(shown), np.array(factors)
        self.sources = tuple(self._entries)
        """Sources that are observed: ``measured``, ``setpoint``, or both."""

    def __call__(self, tools: Mapping[str, Tool]) -> NDArray[np.float64]:
        """
        Return the observation (n,) of ``tools``, by source: positions [m] and velocities [m/s].

        They are in the policy's workspace: ``Workspace.to_policy`` and ``velocity_to_policy``.
        """
        observation = self._nominal.copy()
        for source, (entries, shown, factors) in self._entries.items():
            observation[entries] = np.concatenate(tools[source])[shown] * factors
        return observation
