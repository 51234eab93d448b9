"""
policy_node as it is, but for a note of each answer.

``python -m mher_ros.bench.noted_policy_node FILE`` runs it; at the end the notes are in FILE.
"""

from __future__ import annotations

from pathlib import Path
import sys

from mher_ros.bench.answer_times import AnswerTimes
from mher_ros.ros import latency
from mher_ros.ros.process import run_process

if __name__ == '__main__':
    # policy_node imports it when it is configured, and knows of no file.
    latency.Latency = AnswerTimes  # type: ignore[misc]
    code = run_process('policy_node', sys.argv[1:])
    AnswerTimes.write(Path(sys.argv[1]))
    sys.exit(code)
