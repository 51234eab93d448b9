"""Steps of a simulated arm behind ROS topics, against the same task in one process."""

# ``python -m mher_ros.bench.bridge`` runs the node that answers the bare round trips.

from collections.abc import Iterator, Mapping
import contextlib
import sys
import time
from typing import Any

from mher_ros.bench.result import Result
from mher_ros.bench.timing import log_progress
from mher_ros.errors import ArmError
from mher_ros.experiments.tables import Table
from mher_ros.interface import Vector
from mher_ros.ros.bringup.node_process import client_node, node_process
from mher_ros.ros.common import raw_messages
from mher_ros.ros.common.polled_topic import PolledTopic, RELIABLE_QUEUE
from mher_ros.ros.common.process import run_process, StopRequest
from mher_ros.ros.train.arm_env import sim_node_env
from mher_ros.tasks import make
import numpy as np
from numpy.typing import NDArray
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState, Joy

TASK = 'fetch_reach'
ROUND = 200  # steps of one contestant before the next one's turn
ROUNDS_PER_LOG = 10
BRIDGED, DIRECT, BARE = 'over topics', 'in one process', 'bare round trip'
NOTE = (
    'Over topics, a step is an action (sensor_msgs/Joy) to sim_node and a joint state back. A '
    'bare round trip is the same two messages between two nodes that write, send, await, read and '
    'check them as in lockstep, but simulate nothing. All run on one core. Resets are not '
    'measured, which favours topics: a reset takes about as long as two steps there, and as a '
    'third of a step in one process. With a reset every 50 steps, as in training, the first ratio '
    'is 3 to 4 % less.'
)

RESEND = 0.1  # time after which an unanswered action is sent again, as in lockstep [s]
PATIENCE = 0.05  # longest time between two checks whether to stop [s]
TIMEOUT = 30.0  # time within which an action must be answered [s]
NAMESPACE = '/bare'


def measure(steps: int) -> Result:
    """Step the arm over topics, the task in this process, and bare messages, in turn."""
    rounds = -(-steps // ROUND)
    actions = np.random.default_rng(0).uniform(-1, 1, (ROUND, 4)).astype(np.float32)
    seconds = {name: np.empty(rounds) for name in (BRIDGED, DIRECT, BARE)}
    # The arm first: it pins this process, and with it all that it starts, to the shared core.
    with sim_node_env(TASK) as (env, _), _round_trip() as bare:
        steppers: dict[str, Any] = {BRIDGED: env, DIRECT: make(TASK), BARE: bare}
        for index in range(rounds):
            for name, stepper in steppers.items():
                stepper.reset(seed=index)
                started = time.perf_counter()
                for action in actions:
                    stepper.step(action)
                seconds[name][index] = (time.perf_counter() - started) / ROUND
            if (index + 1) % ROUNDS_PER_LOG == 0:
                log_progress(f'{(index + 1) * ROUND} of {rounds * ROUND} steps each')
        repeats = env.link.repeats
    figures = figures_of(seconds) | {'commands_repeated': repeats}
    samples = {f'seconds {name}': values.tolist() for name, values in seconds.items()}
    return Result(figures, (_table(figures),), samples)


def figures_of(seconds: Mapping[str, Vector]) -> dict[str, Any]:
    """Return the figures from the medians of step times [s], one value per round."""
    # ``ratio_possible`` is that of a bridge which adds nothing to a step but the bare round trip.
    bridged, direct, bare = (float(np.median(seconds[name])) for name in (BRIDGED, DIRECT, BARE))
    return {
        'ratio': direct / bridged,
        'ratio_vs_round_trip': bare / bridged,
        'ratio_possible': direct / (direct + bare),
        'steps': len(seconds[BRIDGED]) * ROUND,
        'steps_per_second': 1.0 / bridged,
        'steps_per_second_in_process': 1.0 / direct,
        'round_trips_per_second': 1.0 / bare,
        'overhead_microseconds': 1e6 * (bridged - direct),
        'overhead_beyond_round_trip_microseconds': 1e6 * (bridged - direct - bare),
    }


def _table(figures: Mapping[str, Any]) -> Table:
    direct = figures['steps_per_second_in_process']
    rates = {
        BRIDGED: figures['steps_per_second'],
        DIRECT: direct,
        BARE: figures['round_trips_per_second'],
        'one process and bare round trip': figures['ratio_possible'] * direct,
    }
    rows = tuple(
        (name, f'{1e6 / rate:.0f} us', f'{rate:.0f}', f'{rate / direct:.2f}')
        for name, rate in rates.items()
    )
    header = ('', 'time per step', 'steps/s, this machine', 'over one process')
    return Table(f'{TASK}, steps in lockstep', header, rows, NOTE)


class RoundTrip:
    """The client of the bare round trip, with the methods of an environment."""

    def __init__(self, node: Node) -> None:
        task = make(TASK)
        self._writer = raw_messages.ActionWriter(len(task.interface.action))
        self._reader = raw_messages.JointStateReader(task.joint_names)
        self._states = PolledTopic(node, JointState, 'joint_states')
        self._actions = node.create_publisher(Joy, 'action', RELIABLE_QUEUE)
        self._stamp = 0

    def reset(self, seed: int) -> None:
        """Do nothing."""

    def step(self, action: NDArray[np.float32]) -> None:
        """Send an action and wait for the joint state with its stamp; resend lost actions."""
        self._stamp += 1
        message = self._writer.write(self._stamp, action)
        deadline = time.monotonic() + TIMEOUT
        self._actions.publish(message)
        while True:
            raw = self._states.take(time.monotonic() + RESEND)
            if raw is not None and self._reader.read(raw)[0] == self._stamp:
                return
            if time.monotonic() > deadline:
                raise ArmError(f'no answer on {self._states.topic} within {TIMEOUT:g} s')
            if raw is None:
                self._actions.publish(message)


@contextlib.contextmanager
def _round_trip() -> Iterator[RoundTrip]:
    with (
        node_process('echo_node', {}, namespace=NAMESPACE, module='mher_ros.bench.bridge'),
        client_node('round_trip', NAMESPACE) as node,
    ):
        bare = RoundTrip(node)
        bare.step(np.zeros(4, np.float32))  # returns when the nodes have discovered each other
        yield bare
        node.destroy_node()


def _answer_actions(stop: StopRequest) -> None:
    """Answer each action with a joint state that has its stamp."""
    node, task = rclpy.create_node('echo_node'), make(TASK)
    reader = raw_messages.ActionReader(len(task.interface.action))
    writer = raw_messages.JointStateWriter(task.joint_names, task.interface.frame)
    actions = PolledTopic(node, Joy, 'action')
    states = node.create_publisher(JointState, 'joint_states', RELIABLE_QUEUE)
    ones = np.ones(len(task.joint_names))
    while not stop():
        raw = actions.take(time.monotonic() + PATIENCE)
        if raw is not None:
            states.publish(writer.write(reader.read(raw)[0], ones, ones))
    node.destroy_node()


if __name__ == '__main__':
    sys.exit(run_process('echo_node', sys.argv[1:], _answer_actions))
