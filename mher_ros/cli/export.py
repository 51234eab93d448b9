"""``mher export``."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "write policy.onnx from a run's checkpoint (model.onnx where a learner plans)"


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('run', metavar='RUN', help='folder of the run')
    parser.add_argument('--out', metavar='FILE', help='default: policy.onnx in that folder')


def run(chosen: argparse.Namespace) -> None:
    from mher_ros.learning.run import export_run

    print(export_run(Path(chosen.run), Path(chosen.out) if chosen.out else None))
