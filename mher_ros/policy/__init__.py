"""
The deployable policy: one ONNX file that says what it sees, what it commands and how well.

Running one needs numpy and onnxruntime; writing one, ``mher_ros.policy.export``, torch and onnx.
"""

from mher_ros.policy.contract import Contract, PolicyFileError
from mher_ros.policy.run import load, OnnxPolicy

__all__ = ['Contract', 'OnnxPolicy', 'PolicyFileError', 'load']
