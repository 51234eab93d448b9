"""
Passes messages between an env and its arm, and loses, doubles, delays and reorders them.

States go from ``joint_states`` to ``relayed/joint_states``, commands from ``relayed/...`` to
``action``. Arguments are ``key=value``:

    drop, double, delay, reorder   chances of what happens to a message
    seed                           of those
    hold                           numbers of the commands, joined by commas, at which nothing is
                                   passed on until a line is read

A command that is sent again counts once. At the end it says how often each thing happened.
"""

from collections import Counter
import heapq
import json
import signal
import sys
import threading
import time

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState, Joy

FAULTS = ('drop', 'double', 'delay', 'reorder')
LONGEST = 0.15
"""Of a delay [s]; longer than it takes the env to send a command again."""
QOS = QoSProfile(depth=1000)


class Relay:
    def __init__(self, node, options):
        self._chances = {fault: float(options.get(fault, 0.0)) for fault in FAULTS}
        self._rng = np.random.default_rng(int(options.get('seed', 0)))
        self._holds = [int(number) for number in options.get('hold', '').split(',') if number]
        self._holding = threading.Event()
        self._stamps = set()
        self._later = []
        self._behind = {}
        self.counts = Counter()
        states = node.create_publisher(JointState, 'relayed/joint_states', QOS)
        commands = node.create_publisher(Joy, 'action', QOS)
        node.create_subscription(
            JointState, 'joint_states', lambda raw: self._take(states, raw), QOS, raw=True
        )
        node.create_subscription(
            Joy,
            'relayed/action',
            lambda raw: self._take_command(commands, raw),
            QOS,
            raw=True,
        )

    def go_on(self):
        self._holding.clear()

    def until_due(self):
        """Return the time until a delayed message is to be passed on [s]."""
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else 0.05

    def send_due(self):
        while self._later and self._later[0][0] <= time.monotonic():
            _, _, publisher, raw = heapq.heappop(self._later)
            publisher.publish(raw)

    def _take_command(self, publisher, raw):
        stamp = deserialize_message(raw, Joy).header.stamp
        stamp = (stamp.sec, stamp.nanosec)
        if stamp != (0, 0) and stamp not in self._stamps:
            self._stamps.add(stamp)
            if self._holds and len(self._stamps) == self._holds[0]:
                print('holding', self._holds.pop(0), flush=True)
                self._holding.set()
        self._take(publisher, raw)

    def _take(self, publisher, raw):
        if self._holding.is_set():
            return
        chance = dict(zip(FAULTS, self._rng.random(len(FAULTS)), strict=True))
        happens = {fault for fault in FAULTS if chance[fault] < self._chances[fault]}
        self.counts.update(happens | {'messages'})
        if 'drop' in happens:
            return
        if 'double' in happens:
            self._send_later(publisher, raw)
        if 'delay' in happens:
            self._send_later(publisher, raw)
            return
        if 'reorder' in happens and publisher not in self._behind:
            self._behind[publisher] = raw
            return
        publisher.publish(raw)
        if publisher in self._behind:
            publisher.publish(self._behind.pop(publisher))

    def _send_later(self, publisher, raw):
        due = time.monotonic() + self._rng.uniform(0.0, LONGEST)
        heapq.heappush(self._later, (due, self.counts['messages'], publisher, raw))


def main():
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    ended = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    node = rclpy.create_node('relay')
    relay = Relay(node, dict(argument.split('=') for argument in sys.argv[1:]))

    def read():
        for _ in sys.stdin:
            relay.go_on()

    threading.Thread(target=read, daemon=True).start()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    print('ready', flush=True)
    while not ended.is_set():
        executor.spin_once(timeout_sec=relay.until_due())
        relay.send_due()
    print(json.dumps(relay.counts), flush=True)
    rclpy.shutdown()


if __name__ == '__main__':
    main()
