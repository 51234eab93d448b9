"""Learn goal-reaching arm policies with MHER, export them to ONNX and run them over ROS 2."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version('mher_ros')
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = '0+unknown'
