"""
Takes goals, and tells of each in a line: ``took [x, y, z] from somewhere``.

Goals outside a box are refused, or projected with the argument ``project``. With the argument
``tf`` there is something that looks like tf2_ros. Lines that are read:

    tool X Y Z                  the tool is there from now on
    show X Y Z                  the goal was set another way
    frame NAME X Y Z SECONDS    a frame lies there in 'base', turned by a right angle about z
    close, open                 take no goals, take goals again
    refused                     prints their number
"""

import json
import math
import queue
import signal
import sys
import threading
import types

from geometry_msgs.msg import TransformStamped
from mher_ros.errors import MherError
from mher_ros.ros.goal_input import GoalInput
import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

LOW, HIGH = np.array([0.0, -0.5, 0.1]), np.array([1.0, 0.5, 0.9])


class Buffer:
    frames = {}

    def lookup_transform(self, target, source, time):
        if target != 'base' or source not in self.frames:
            raise TransformException(f'"{source}" passed to lookupTransform does not exist')
        assert time.nanoseconds == 0
        return self.frames[source]


class TransformListener:
    def __init__(self, buffer, node):
        assert isinstance(buffer, Buffer) and node is not None

    def unregister(self):
        say('tf2 unregistered')


class TransformException(Exception):
    pass


class Taker:
    def __init__(self, node):
        self._node, self._tool = node, None
        self.open()

    def open(self):
        self.input = GoalInput(
            self._node, 'base', self._take, lambda: self._tool, (0.5, 0.0, 0.5), 0.05
        )

    def close(self):
        self.input.close()

    def tool(self, *position):
        self._tool = np.array(position, float)

    def show(self, *position):
        self.input.show([float(number) for number in position])

    def frame(self, name, x, y, z, seconds):
        found = TransformStamped()
        found.header.stamp.sec = int(seconds)
        place, turn = found.transform.translation, found.transform.rotation
        place.x, place.y, place.z = float(x), float(y), float(z)
        turn.w = turn.z = math.sqrt(0.5)
        Buffer.frames[name] = found

    def refused(self):
        say('refused:', self.input.refused)

    def _take(self, position, source):
        accepted = np.clip(position, LOW, HIGH)
        if 'project' not in sys.argv and (accepted != position).any():
            raise MherError(f'a goal in the box is expected, got {position.tolist()}')
        say('took', json.dumps(accepted.tolist()), 'from', source)
        return accepted


def say(*words):
    # Where the log goes: so lines keep their order.
    print(*words, file=sys.stderr, flush=True)


def main():
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
        while not lines.empty():
            name, *arguments = lines.get().split()
            getattr(taker, name)(*arguments)
            say('did', name)
    rclpy.shutdown()


if __name__ == '__main__':
    main()
