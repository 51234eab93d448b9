"""
Takes goals, and tells of each in a line: ``took [x, y, z] from somewhere``.

Each answer to a goal is told, too: ``answered: ``, then its code, position and frame as JSON.

Goals outside a box are refused, or projected with the argument ``project``. With the argument
``tf`` there is something that looks like tf2_ros; with ``patient`` a goal waits for its transform
for a minute. Lines that are read:

    tool X Y Z                  the tool is there from now on
    show X Y Z                  the goal was set another way
    frame NAME X Y Z SECONDS    a frame lay there in 'base' at that time, turned by a right angle
                                about z; 0: it always does
    stop [NANOSECONDS]          what was sent or received until then (time.monotonic_ns), or now,
                                does not count
    hold                        looks at nothing until the next line has been dealt with
    close, open                 take no goals, take goals again
    refused                     prints their number
"""

import json
import math
import queue
import signal
import sys
import threading
import time
import types

from geometry_msgs.msg import TransformStamped
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.status import DeploymentStatus
from mher_ros.ros.deploy import goal_input
from mher_ros.ros.deploy.goal_input import check_sent, GoalInput
import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time

LOW, HIGH = np.array([0.0, -0.5, 0.1]), np.array([1.0, 0.5, 0.9])


class Buffer:
    """As tf2 has it: two transforms enclose a time, or there is none; 0 is the newest."""

    frames = {}

    def lookup_transform(self, target, source, time):
        known = self._known(target, source)
        wanted = time.nanoseconds / 1e9 or max(known)
        if 0 in known:
            return transform(known[0])
        if not min(known) <= wanted <= max(known):
            say('looked for', source, 'in vain')
            raise ExtrapolationException(f'{wanted} is not within {min(known)} to {max(known)}')
        times = sorted(known)
        return transform(
            [np.interp(wanted, times, [known[t][i] for t in times]) for i in range(3)]
        )

    def get_latest_common_time(self, target, source):
        return Time(nanoseconds=round(max(self._known(target, source)) * 1e9))

    def _known(self, target, source):
        if target != 'base' or source not in self.frames:
            raise LookupException(f'"{source}" passed to lookupTransform does not exist')
        return self.frames[source]


class TransformListener:
    def __init__(self, buffer, node):
        assert isinstance(buffer, Buffer) and node is not None

    def unregister(self):
        say('tf2 unregistered')


class TransformException(Exception):
    pass


class ExtrapolationException(TransformException):
    pass


class LookupException(TransformException):
    pass


class Taker:
    def __init__(self, node):
        self._node, self._tool, self._counts_from = node, None, 0
        self.is_held = False
        self.open()

    def open(self):
        self.input = GoalInput(
            self._node,
            DeploymentStatus(frame='base'),
            self._take,
            lambda: self._tool,
            (0.5, 0.0, 0.5),
            0.05,
            self._say_answer,
            lambda: self._counts_from,
        )

    def close(self):
        self.input.close()

    def tool(self, *position):
        self._tool = np.array(position, float)

    def show(self, *position):
        # As a goal that is accepted does.
        self.input._goal = np.array(position, float)
        self.input._marker.place(self.input._goal)

    def frame(self, name, x, y, z, seconds):
        Buffer.frames.setdefault(name, {})[float(seconds)] = float(x), float(y), float(z)

    def stop(self, at=None):
        self._counts_from = time.monotonic_ns() if at is None else int(at)

    def hold(self):
        self.is_held = True

    def refused(self):
        say('refused:', self.input.status.refused)

    def _say_answer(self):
        status = self.input.status
        answer = status.answer, status.answered_position, status.answered_frame
        say('answered:', json.dumps(answer))

    def _take(self, position, source, sent):
        check_sent(sent, self._counts_from)
        accepted = np.clip(position, LOW, HIGH)
        if 'project' not in sys.argv and (accepted != position).any():
            raise GoalError(
                f'a goal in the box is expected, got {position.tolist()}',
                Refusal.OUTSIDE_WORKSPACE,
            )
        say('took', json.dumps(accepted.tolist()), 'from', source)
        return accepted


def transform(position):
    found = TransformStamped()
    place, turn = found.transform.translation, found.transform.rotation
    place.x, place.y, place.z = position
    turn.w = turn.z = math.sqrt(0.5)
    return found


def say(*words):
    # Where the log goes: so lines keep their order.
    print(*words, file=sys.stderr, flush=True)


def main():
    if 'patient' in sys.argv:
        goal_input.PATIENCE = 60.0
    if 'tf' in sys.argv:
        sys.modules['tf2_ros'] = types.ModuleType('tf2_ros')
        for part in (Buffer, TransformListener, TransformException):
            setattr(sys.modules['tf2_ros'], part.__name__, part)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    ended, lines = threading.Event(), queue.SimpleQueue()
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    threading.Thread(target=lambda: [lines.put(line) for line in sys.stdin], daemon=True).start()
    node = rclpy.create_node('taker')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    taker = Taker(node)
    say('ready')
    while not ended.is_set():
        executor.spin_once(timeout_sec=0.02)
        while not lines.empty() or taker.is_held:
            name, *arguments = lines.get().split()
            taker.is_held = False
            getattr(taker, name)(*arguments)
            say('did', name)
    rclpy.shutdown()


if __name__ == '__main__':
    main()
