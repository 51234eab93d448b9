"""Learn goal-reaching policies for arms with MHER and export them to ONNX."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Looked up when somebody asks: a node need not start that much later.
    if name != '__version__':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version('mher_ros')
    except PackageNotFoundError:  # imported from a source tree that was never installed
        return '0+unknown'
