"""
policy_node as it is, but for a note of each answer.

``python -m mher_ros.bench.noted_policy_node FILE`` runs it; at the end the notes are in FILE.
"""

from __future__ import annotations

from pathlib import Path
import sys

from mher_ros.bench.answer_times import AnswerTimes
from mher_ros.ros import policy_node
from mher_ros.ros.process import run_process, StopRequest


def run(stop: StopRequest) -> None:
    """Run the node until asked to stop, and write the notes."""
    made: list[AnswerTimes] = []

    def latency(deadline: float) -> AnswerTimes:
        made.append(AnswerTimes(deadline))
        return made[-1]

    policy_node.run(stop, latency)
    for answers in made:
        answers.write(Path(sys.argv[1]))


if __name__ == '__main__':
    sys.exit(run_process('policy_node', sys.argv[1:], run))
