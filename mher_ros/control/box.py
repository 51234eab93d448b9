"""Boxes along the axes of a frame."""

from __future__ import annotations

from mher_ros.options import OptionError
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['read_box']


def read_box(
    low: ArrayLike, high: ArrayLike, name: str = 'box'
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners (3,) of a box; OptionError names it if it is none."""
    corners = []
    for key, values in (('low', low), ('high', high)):
        try:
            corner = np.array(values, np.float64)
        except (TypeError, ValueError):
            corner = np.array(())
        if corner.shape != (3,) or not np.isfinite(corner).all():
            raise OptionError(f'{name}.{key} takes three finite numbers, got {values!r}')
        corners.append(corner)
    if not (corners[0] < corners[1]).all():
        raise OptionError(
            f'{name}.low must lie below {name}.high on every axis, '
            f'got {corners[0].tolist()} and {corners[1].tolist()}'
        )
    return corners[0], corners[1]
