"""
Learn goal-reaching policies for robot arms with MHER, and run them.

    import mher_ros

    run = mher_ros.train('reach', steps=2000)
    policy = mher_ros.load(run.policy)
    print(mher_ros.evaluate(policy))
"""

from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from mher_ros.api import (
        evaluate,
        load,
        make,
        register_algorithm,
        register_relabelling,
        register_task,
        Robot,
        train,
        TrainedRun,
    )

__all__ = [
    'Robot',
    'TrainedRun',
    'evaluate',
    'load',
    'make',
    'register_algorithm',
    'register_relabelling',
    'register_task',
    'train',
]


def __getattr__(name: str) -> Any:
    # On first use: a node starts sooner if it does not import what it does not need.
    if name in __all__:
        from mher_ros import api

        return getattr(api, name)
    if name != '__version__':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version('mher_ros')
    except PackageNotFoundError:  # imported from a source tree that was never installed
        return '0+unknown'


def __dir__() -> list[str]:
    return [*__all__, '__version__']
