"""Learn goal-reaching policies for arms with MHER and export them to ONNX."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version('mher_ros')
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = '0+unknown'
