"""What a simulated arm touches, as MuJoCo's own contacts tell."""

from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np

TOUCH = 0.001  # depth from which on a contact counts [m]


class Contacts(NamedTuple):
    """Contacts of an arm with obstacles and with itself, since its last reset."""

    number: int = 0
    """Those deeper than ``TOUCH``; one counts again after both bodies were apart."""
    deepest: float = 0.0
    """Largest depth [m]."""
    between: str = ''
    """The two bodies of that contact; empty: there was none."""


class ContactLog:
    """Counts the contacts of a simulation."""

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData, name_of: Callable[[int], str]
    ) -> None:
        """``name_of``: returns the name of a geom's link or obstacle."""
        self._model, self._data, self._name_of = model, data, name_of
        self.clear()

    def clear(self) -> None:
        """Forget all contacts."""
        self.contacts = Contacts()
        self._counted: set[tuple[int, int]] = set()

    def look(self) -> None:
        """Take the contacts of the last step."""
        if not self._data.ncon:
            self._counted.clear()
            return
        number, deepest, between = self.contacts
        touching = set()
        distances, pairs = self._data.contact.dist, self._data.contact.geom
        for index in np.flatnonzero(distances < 0.0).tolist():
            one, other = (int(geom) for geom in pairs[index])
            depth = -float(distances[index])
            bodies = (int(self._model.geom_bodyid[one]), int(self._model.geom_bodyid[other]))
            touching.add(bodies)
            if depth > TOUCH and bodies not in self._counted:
                self._counted.add(bodies)
                number += 1
            if depth > deepest:
                deepest, between = depth, f'{self._name_of(one)} and {self._name_of(other)}'
        self._counted &= touching
        self.contacts = Contacts(number, deepest, between)
