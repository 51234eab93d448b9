"""How long a node takes to answer each joint state."""

# ``python -m mher_ros.bench.response_times FILE`` runs policy_node, and writes its response times
# to FILE at the end.

from array import array
from pathlib import Path
import sys
import time
from typing import Any

from mher_ros.errors import ArmError
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.ros.common.process import run_process, StopRequest
import numpy as np
from numpy.typing import ArrayLike, NDArray

Times = NDArray[np.int64]

MIN_STATES = 5000  # least number of joint states for a 99.9th percentile: five are above it


class ResponseTimes(Latency):
    """A ``Latency`` that keeps all values; it adds less than a microsecond to a response."""

    def __init__(self, deadline: float) -> None:
        super().__init__(deadline)
        # Alternating: when a message was received, and when its answer was published [ns].
        self._kept = array('q')

    def note(self, received: int) -> None:
        """Record an answer, just published, to a message received at this time of day [ns]."""
        self._kept.extend((received, time.time_ns()))
        super().note(received)

    def write(self, path: Path) -> None:
        """Save when each message was received and answered, (a, 2) [ns], as a .npy file."""
        np.save(path, np.array(self._kept, np.int64).reshape(-1, 2))


def summary(responses: Times, states: ArrayLike) -> dict[str, Any]:
    """
    Return percentiles of response times [us], answers per state, and the number of late answers.

    ``responses`` (a, 2) are times of receipt and answer [ns], ``states`` (s,) the times at which
    joint states were published [ns]. The last state only ends the period of the one before. A
    state is missed unless its answer is published before the next state. With fewer than
    ``MIN_STATES`` states the 99.9th percentile is None.
    """
    times = np.asarray(states)
    received, sent = _during(responses, times).T
    if not len(received):
        raise ArmError(f'expected answers to {len(times)} joint states, got none')
    median, p99, p999 = (np.percentile(sent - received, (50, 99, 99.9)) / 1000.0).tolist()
    state, count = np.searchsorted(times, received, 'right') - 1, len(times) - 1
    return {
        'median_us': median,
        'p99_us': p99,
        'p999_us': p999 if count >= MIN_STATES else None,
        'answered': len(received) / count,
        'missed': count - len(np.unique(state[sent < times[state + 1]])),
    }


def histogram(responses: Times, states: ArrayLike) -> dict[str, int]:
    """Return the number of responses by response time, in whole microseconds."""
    received, sent = _during(responses, np.asarray(states)).T
    micros, counts = np.unique((sent - received) // 1000, return_counts=True)
    return dict(zip(map(str, micros.tolist()), counts.tolist(), strict=True))


def _during(responses: Times, states: Times) -> Times:
    """Return the responses to messages received from the first state on, before the last."""
    return responses[(states[0] <= responses[:, 0]) & (responses[:, 0] < states[-1])]


def _run_policy_node(stop: StopRequest) -> None:
    from mher_ros.ros.deploy import policy_node

    recorders: list[ResponseTimes] = []

    def recorder(deadline: float) -> ResponseTimes:
        recorders.append(ResponseTimes(deadline))
        return recorders[-1]

    policy_node.run(stop, recorder)
    for one in recorders:
        one.write(Path(sys.argv[1]))


if __name__ == '__main__':
    sys.exit(run_process('policy_node', sys.argv[1:], _run_policy_node))
