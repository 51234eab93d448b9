"""The deployable policy, one ONNX file; only ``mher_ros.policy.export`` needs torch and onnx."""

from mher_ros.policy.contract import Contract, PolicyFileError
from mher_ros.policy.onnx_policy import load, OnnxPolicy

__all__ = ['Contract', 'OnnxPolicy', 'PolicyFileError', 'load']
