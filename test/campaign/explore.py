"""
Judges train_node from outside while it explores a robot at random.

It starts sim_node and train_node, in lockstep or in real time, and knows of them what comes over
DDS. In lockstep time is the simulation's, as the stamps of commands tell it, and each episode is
judged by itself. In real time episodes do not reset the arm. Where something blocks it, for
example its table, train_node stops it and ends. Then the arm is put back at its start, as a person
would do, train_node is started with the next seed, and the stop is counted. With --holds,
train_node is suspended for up to 0.6 s now and then, as on a busy machine. Nothing of mher_ros is
imported here.
"""

import argparse
import bisect
from collections import Counter
import json
from pathlib import Path
import random
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

from diagnostic_msgs.msg import DiagnosticStatus
from judge import Command, Judge, Limits, Record
import numpy as np
from outside_arm import DEFAULT_TOPICS, OutsideArm, ROBOTS
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory
import yaml

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STATUSES = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
EPISODE = 50
"""Steps of an episode."""
HALF, MARGIN = 0.15, 0.05
"""Of the box of goals, and how far around it the tool may go, if the file gives no box [m]."""
CONTROL_PERIOD = 0.04  # between two steps [s]
BLOCKED = ('not_following', 'outside_box')
"""Stops if something blocks the arm, or pushes its tool out of the box."""
HOLDS, APART = (0.05, 0.12, 0.2, 0.4, 0.6), (0.3, 3.0)
"""Times for which train_node is suspended, and least and most time between two of them [s]."""
MOST_LOST = 0.02  # share of commands that may be lost on the way to the judge
BEFORE = 3  # commands after a lost one that tell how the arm moves
TOOL = 'judged_tool'


class Explorer:
    """A robot that explores, and what is seen of it."""

    def __init__(self, options):
        self._options = options
        self._file = yaml.safe_load((ROBOTS / f'{options.robot}.yaml').read_text())
        self._lockstep = options.stepping == 'lockstep'
        self._output = 'joint_trajectory' if self._lockstep else self._file['output']
        self._commands, self._measured, self._frozen = [], [], []
        self._stops, self._is_done, self._ended_by = Counter(), False, ''
        self._number, self._lost = 0, []
        self._model = None
        self._looked_at, self._waited = time.time(), {}
        self._random, self._held_since = random.Random(options.seed), None
        self._changes_at, self._holds = 0.0, 0
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        node = rclpy.create_node('explorer')
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        topics = {**DEFAULT_TOPICS, **self._file.get('topics', {})}
        kind = JointTrajectory if self._output == 'joint_trajectory' else Float64MultiArray
        node.create_subscription(String, 'robot_description', self._on_model, LATCHED)
        node.create_subscription(JointState, 'joint_states', self._on_state, 1000)
        node.create_subscription(DiagnosticStatus, 'train_node/status', self._on_status, STATUSES)
        self._told = node.create_subscription(kind, topics[self._output], self._on_command, 1000)
        self._reset = node.create_client(Trigger, 'sim_node/reset')

    def run(self, folder):
        """Return a report of what it did."""
        with (folder / 'nodes.log').open('w') as log:
            processes = [self._start('sim_node', {}, log)]
            try:
                while self._model is None:
                    self._look(processes)
                self._executor.spin_once(0.5)
                seed = self._options.seed
                while (left := self._options.steps - self._steps_done()) > 0:
                    self._learn(processes, folder / f'run_{seed}', seed, left, log)
                    seed += 1
            finally:
                for process in reversed(processes):
                    process.send_signal(signal.SIGINT)
                    process.send_signal(signal.SIGCONT)
                    process.wait(30.0)
        return self._report()

    def _learn(self, processes, out, seed, steps, log):
        """Run train_node until it has explored for ``steps``, or was stopped."""
        episodes = -(-steps // EPISODE)
        choices = {
            'schedule.warmup_episodes': episodes,
            'schedule.episode_steps': EPISODE,
            'schedule.warmup_updates': 1,
            'schedule.episodes_per_epoch': episodes,
            'schedule.evaluation_goals': 1,
            'task.joint_speed': self._options.joint_speed,
        }
        parameters = {
            'out': out,
            'steps': (episodes + 1) * EPISODE,
            'seed': seed,
            'set': ' '.join(f'{key}={value}' for key, value in choices.items()),
        }
        before, logged = len(self._commands), Path(log.name).stat().st_size
        self._number = 0  # of the last command of this process
        self._ended_by = ''
        train = self._start('train_node', parameters, log)
        processes.append(train)
        while train.poll() is None:
            self._look(processes)
        ended = time.time()
        while time.time() < ended + 1.0:  # does anything follow?
            self._look(processes)
        processes.remove(train)
        if train.returncode:
            is_blocked = self._ended_by in BLOCKED and len(self._commands) > before
            # If it is suspended too often, an episode cannot be completed.
            is_held = self._options.holds and self._ended_by in ('', 'stale_state')
            if not (is_blocked or is_held):
                said = Path(log.name).read_text()[logged:]
                raise SystemExit(f'train_node failed: {said[-2000:]}')
            self._stops[self._ended_by or 'episode_lost'] += 1
            answer = self._reset.call_async(Trigger.Request())
            while not answer.done():
                self._look(processes)
        else:
            self._is_done = True

    def _steps_done(self):
        """Return how many steps the commands so far have taken."""
        if self._is_done:
            return self._options.steps
        return int(len(self._commands) / self._file['command_rate'] / CONTROL_PERIOD)

    def _start(self, executable, parameters, log):
        """Start a node of the robot."""
        shared = {'robot': self._options.robot, 'stepping': self._options.stepping}
        given = {**shared, **parameters}.items()
        words = [word for key, value in given for word in ('-p', f'{key}:={value}')]
        command = [sys.executable, '-m', 'mher_ros.ros', executable, '--ros-args', *words]
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def _look(self, processes):
        if processes[0].poll() is not None:
            raise SystemExit('sim_node ended')
        self._executor.spin_once(0.05)
        with self._told.handle:  # the executor takes one message at a time
            while (
                taken := self._told.handle.take_message(self._told.msg_type, False)
            ) is not None:
                self._on_command(*taken)
        if len(processes) < 2 or self._lockstep or (now := time.time()) < self._looked_at + 0.05:
            return
        if self._options.holds:
            self._hold(processes[1], now)
        # As the campaign does: a process that was kept from running cannot send.
        waited = {}
        try:
            for path in Path(f'/proc/{processes[1].pid}/task').iterdir():
                waited[path.name] = int((path / 'schedstat').read_text().split()[1])
        except OSError:
            pass  # it may end, or one of its threads
        longest = max((waited[name] - self._waited.get(name, 0) for name in waited), default=0)
        if 1e-9 * longest > 0.5 * (now - self._looked_at):
            self._frozen.append((self._looked_at, now))
        self._looked_at, self._waited = now, waited

    def _hold(self, process, now):
        """Suspend a process, or let it continue."""
        if now < self._changes_at:
            return
        if self._held_since is None:
            self._held_since, self._changes_at = now, now + self._random.choice(HOLDS)
            process.send_signal(signal.SIGSTOP)
            self._holds += 1
        else:
            process.send_signal(signal.SIGCONT)
            self._frozen.append((self._held_since, time.time()))
            self._held_since, self._changes_at = None, now + self._random.uniform(*APART)

    def _on_model(self, message):
        top = ElementTree.fromstring(message.data)
        offset = ' '.join(map(str, self._file.get('tool_offset', (0.0, 0.0, 0.0))))
        joint = ElementTree.SubElement(top, 'joint', name=TOOL, type='fixed')
        ElementTree.SubElement(joint, 'origin', xyz=offset)
        ElementTree.SubElement(joint, 'parent', link=self._file['tool_frame'])
        ElementTree.SubElement(joint, 'child', link=TOOL)
        text = ElementTree.tostring(top, encoding='unicode')
        self._model = OutsideArm(text, self._file['base_frame'], TOOL, self._file['joints'])

    def _on_status(self, message):
        values = {pair.key: json.loads(pair.value) for pair in message.values}
        self._ended_by = values['ended_by']

    def _on_state(self, message, info):
        if self._model is not None:
            order = [message.name.index(name) for name in self._model.joints]
            when = _stamp(message) if self._lockstep else 1e-9 * info['source_timestamp']
            self._measured.append((when, np.array(message.position)[order]))

    def _on_command(self, message, info):
        when, seconds = 1e-9 * info['source_timestamp'], 0.0
        if self._output == 'joint_trajectory':
            (point,) = message.points
            order = [message.joint_names.index(name) for name in self._model.joints]
            values = np.array(point.positions)[order]
            seconds = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
            when = _stamp(message) if self._lockstep else when
        else:
            values = np.array(message.data)
        last = self._commands[-1] if self._commands else None
        if self._lockstep and last is not None and when == last.time:
            assert np.array_equal(values, last.values), 'a command was sent again, and is another'
            return
        number = info['publication_sequence_number']
        if not self._lockstep and number > self._number + 1:
            # The publisher keeps ten messages for a reader that is kept from running, and none for
            # one that it has not found yet.
            self._lost.append((len(self._commands), number - self._number - 1))
        self._number = number
        self._commands.append(Command(when, values, seconds))

    def _limits(self, period):
        file, arm = self._file, self._model
        box = file.get('box')
        if box is None:
            edge = HALF * file['workspace'].get('scale', 1.0) + MARGIN
            origin = np.array(file['workspace']['origin'])
            box = {'low': origin - edge, 'high': origin + edge}
        given = file.get('joint_limits', {})
        return Limits(
            period,
            float(file.get('speed', 0.25)),
            float(file.get('acceleration', 1.0)),
            arm.velocity,
            np.array([given.get(name, {}).get('acceleration', 4.0) for name in arm.joints]),
            arm.lower,
            arm.upper,
            (np.array(box['low']), np.array(box['high'])),
        )

    def _report(self):
        period = 1.0 / self._file['command_rate']
        if self._lockstep:
            period = float(np.median(np.diff([command.time for command in self._commands])))
        judge = Judge(self._model, self._output, self._limits(period))
        self._measured.sort(key=lambda one: one[0])
        violations, moved = [], 0.0
        motions = self._episodes(period) if self._lockstep else self._unbroken()
        for before, commands in motions:
            tools = self._model.tool([command.values for command in commands])
            moved += float(np.linalg.norm(np.diff(tools, axis=0), axis=1).sum())
            # What ends an episode in lockstep is the simulation's reset, not a command.
            is_last = commands[-1] is self._commands[-1]
            end = time.time() if is_last and not self._lockstep else commands[-1].time
            record = Record(commands, self._measured, before=before, frozen=self._frozen, end=end)
            violations += judge.judge(record)
        return {
            'robot': self._options.robot,
            'stepping': self._options.stepping,
            'output': self._output,
            'steps': self._options.steps,
            'motions': len(motions),
            'commands': len(self._commands),
            'metres': round(moved, 3),
            'holds': self._holds,
            'held': judge.held,
            'stops': dict(self._stops),
            'lost': sum(count for _, count in self._lost),
            'violations': dict(Counter(one.kind for one in violations)),
            'worst': max((one.ratio for one in violations), default=0.0),
            'first': [self._context(one) for one in violations[:5]],
        }

    def _context(self, violation):
        """Return a violation with the gaps and values of the commands around it."""
        times = [command.time for command in self._commands]
        at = bisect.bisect_left(times, violation.time)
        around = self._commands[max(0, at - 4) : at + 4]
        return {
            'kind': violation.kind,
            'ratio': violation.ratio,
            'commands': [(one.time - violation.time, *one.values) for one in around],
        }

    def _episodes(self, period):
        """Split commands where the simulation was reset: its clock goes on by two periods."""
        times = np.array([command.time for command in self._commands])
        begins = np.flatnonzero(np.diff(times) > 1.5 * period) + 1
        bounds = [0, *begins.tolist(), len(times)]
        pairs = zip(bounds[:-1], bounds[1:], strict=True)
        return [((), self._commands[begin:end]) for begin, end in pairs]

    def _unbroken(self):
        """Split commands where some were not received; a part may begin in motion."""
        bounds = [0, *(index for index, _ in self._lost), len(self._commands)]
        parts = [self._commands[b:e] for b, e in zip(bounds[:-1], bounds[1:], strict=True)]
        first = [((), parts[0])] if parts[0] else []  # the first commands may be lost
        return first + [
            (tuple(part[:BEFORE]), part[BEFORE:]) for part in parts[1:] if len(part) > BEFORE
        ]


def _stamp(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--robot', default='ur5e')
    parser.add_argument('--stepping', default='lockstep', choices=('lockstep', 'realtime'))
    parser.add_argument('--steps', type=int, default=10_000, help='of the learner')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument(
        '--joint-speed', type=float, default=2.0, help='that an action of 1 asks for [rad/s]'
    )
    parser.add_argument('--holds', action='store_true', help='suspend train_node now and then')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Explorer(options).run(Path(folder))
    print(json.dumps(report))
    lost_too_many = report['lost'] > MOST_LOST * report['commands']
    sys.exit(bool(report['violations']) or not report['metres'] or lost_too_many)


if __name__ == '__main__':
    main()
