"""
One arm of the campaign, in a process of its own: it plays the arm and judges what it is told.

It starts a policy_node in another process and knows of it what comes over DDS. Nothing of mher_ros
is imported here.
"""

import argparse
from collections import Counter, deque
import contextlib
import json
from pathlib import Path
import signal
import subprocess
import sys
import time

from campaign_options import add_options, numbers_of
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped, TwistStamped
from judge import Command, Hold, Judge, Limits, Record, Violation
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from live_arm import LiveArm
import numpy as np
from outside_arm import read_robot
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from sequences import BOX, draw, HALF
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

MESSAGES = {
    'joint_position': Float64MultiArray,
    'joint_velocity': Float64MultiArray,
    'joint_trajectory': JointTrajectory,
    'twist': TwistStamped,
    'pose': PoseStamped,
}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENCE = 90.0
"""Time in which a node must be there [s]."""
ATTEMPTS = 3
"""To start it, before the campaign breaks off."""
READY = 15.0
"""Time in which it must accept a goal, or answer [s]."""
LENGTH = 1.0
"""Of a sequence [s]."""
STILL = 0.3
"""Time without commands after which a motion is over [s]."""
GONE = 1.2
"""Time between two nodes, so that the second does not go on where the first left off [s]."""
LOOK, WAITED = 0.05, 0.5
"""How often the node is looked at [s], and the part of it that counts as having been held."""
CONTEXT = 15
"""Commands that are judged once more, with those of the next sequence."""
KEPT = 50
"""So many sequences with violations are written down."""
REMEMBERED = 2.0
"""Time for which measured states are kept before a sequence [s]."""
FAULTS = (
    'silent',
    'late',
    'frozen',
    'drift',
    'velocity',
    'shift',
    'malformed',
    'blocked',
    'load',
    'intruder',
)
BUSY = 'import os; parent = os.getppid()\nwhile os.getppid() == parent: pass'


class NotReady(Exception):
    """The node did not do what it must within a generous time."""


class NotStarted(Exception):
    """There is no node to judge."""


class CampaignArm:
    """The arm, the person who sends goals, and the judge."""

    def __init__(self, options):
        self._options = options
        self.robot = robot = read_robot(options.robot)
        rate = options.command_rate or robot.rate
        default = options.joint_acceleration
        self.limits = Limits(
            1.0 / rate,
            robot.speed,
            robot.acceleration,
            robot.arm.velocity,
            np.array([robot.joint_acceleration.get(name, default) for name in robot.arm.joints]),
            robot.arm.lower,
            robot.arm.upper,
            (robot.origin - BOX, robot.origin + BOX),
        )
        self._judge = Judge(robot.arm, options.output, self.limits)
        self._arm = LiveArm(robot.arm, options.output, robot.home, time.time())
        self._rate = options.state_rate or 125.0
        self._due = 0.0
        self._fault = dict.fromkeys(FAULTS)
        self._singles, self._late = deque(), deque()
        self._measured = deque()
        self._commands, self._before, self._verdict_at = [], [], -np.inf
        self._holds, self._hold_begin, self._hold_cause = [], None, ''
        self._released, self._stops_asked = True, 0
        self._frozen, self._stopped_at = [], None
        self._accepted = self._counted = self._kept = 0
        self._looked_at, self._waited = 0.0, {}
        self._process, self._policy, self._log = None, '', None
        self._burners = []
        self._make_node()

    def _make_node(self):
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._node = node = rclpy.create_node(f'campaign_arm_{self._options.output}')
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._model = node.create_publisher(String, 'robot_description', LATCHED)
        self._model.publish(String(data=self.robot.model))
        self._states = node.create_publisher(JointState, 'joint_states', 10)
        self._intruder = None
        self._goals = node.create_publisher(PointStamped, 'clicked_point', 10)
        output = self._options.output
        self._told = node.create_subscription(
            MESSAGES[output], self.robot.topics[output], self._on_command, 1000
        )
        node.create_subscription(DiagnosticStatus, 'policy_node/status', self._on_status, LATCHED)
        self._clients = {
            name: node.create_client(kind, f'policy_node/{name}')
            for name, kind in (
                ('stop', Trigger),
                ('clear', Trigger),
                ('change_state', ChangeState),
            )
        }

    # What comes.

    def _on_command(self, message, info):
        sent = 1e-9 * info['source_timestamp']
        output, seconds = self._options.output, 0.0
        if output == 'joint_trajectory':
            point = message.points[-1]
            order = [message.joint_names.index(joint) for joint in self.robot.arm.joints]
            values = np.array(point.positions)[order]
            seconds = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        elif output == 'twist':
            linear = message.twist.linear
            values = np.array((linear.x, linear.y, linear.z))
        elif output == 'pose':
            place = message.pose.position
            values = np.array((place.x, place.y, place.z))
        else:
            values = np.array(message.data)
        command = Command(sent, values, seconds)
        self._commands.append(command)
        if np.isfinite(values).all():
            self._arm.take(command)

    def _on_status(self, message):
        (accepted,) = (json.loads(one.value) for one in message.values if one.key == 'accepted')
        # It counts from 0 again when it is started, or configured.
        self._accepted += max(0, accepted - self._counted)
        self._counted = accepted

    # Time.

    def _pass_time(self, until, done=lambda: False):
        """Publish states and take messages until a time, or until something is done."""
        while not done():
            now = time.time()
            if now >= until:
                return False
            if now >= self._due:
                self._due = max(self._due + 1.0 / self._rate, now)
                self._tell_state(now)
            self._executor.spin_once(timeout_sec=max(0.0, min(until, self._due) - time.time()))
            self._take_all()
        return True

    def _take_all(self):
        """Take every command that has come: the executor takes one message at a time."""
        handle = self._told.handle
        with handle:
            while (taken := handle.take_message(self._told.msg_type, False)) is not None:
                self._on_command(*taken)

    def _tell_state(self, now):
        self._arm.advance(now)
        fault = self._fault
        self._measured.append((now, self._arm.positions))
        self._note_waiting(now)
        if fault['frozen'] is not None and fault['frozen'] is True:
            fault['frozen'] = self._arm.positions
        positions, velocities = self._arm.positions, self._arm.velocities
        if fault['frozen'] is not None:
            positions, velocities = fault['frozen'], 0.0 * velocities
        if fault['drift'] is not None:
            joint, speed = fault['drift']
            positions, velocities = positions.copy(), velocities.copy()
            positions[joint] += speed * (now - self._drifts_since)
            velocities[joint] += speed
        if fault['velocity'] is not None:
            joint, speed = fault['velocity']
            velocities = velocities.copy()
            velocities[joint] = speed
        single = bool(self._singles)
        if single:
            joint, angle = self._singles.popleft()
            positions = positions.copy()
            positions[joint] += angle
        stamp = now + (fault['shift'] or 0.0)
        message = self._state(stamp, positions, velocities)
        if fault['malformed'] is not None:
            message = _malformed(message, fault['malformed'])
        if fault['late'] is not None:
            self._late.append((now + fault['late'], message))
        elif fault['silent'] is None or single:
            self._states.publish(message)
        while self._late and self._late[0][0] <= now:
            _, message = self._late.popleft()
            if fault['silent'] is None:
                self._states.publish(message)
        if self._intruder is not None and fault['intruder'] is not None:
            offset, ahead = fault['intruder']
            self._intruder.publish(
                self._state(now + ahead, self.robot.home + offset, 0.0 * velocities)
            )

    def _state(self, stamp, positions, velocities):
        message = JointState()
        message.header.stamp.sec = int(stamp)
        message.header.stamp.nanosec = int(1e9 * (stamp - int(stamp)))
        message.name = list(self.robot.arm.joints)
        message.position = positions.tolist()
        message.velocity = velocities.tolist()
        return message

    # What is done to the node.

    def _do(self, name, *arguments):
        getattr(self, f'_do_{name}')(*arguments)

    def _do_goal(self):
        place = self._next_goal()
        message = PointStamped()
        message.header.frame_id = self.robot.frame
        message.point.x, message.point.y, message.point.z = place.tolist()
        if self._released and self._hold_begin is not None:
            self._end_hold()
        self._goals.publish(message)

    def _next_goal(self):
        """Return one after the other; one that is near is often put to the other side."""
        drawn = self._drawn[self._goal_number % len(self._drawn)]
        self._goal_number += 1
        tool = self.robot.arm.tool(self._arm.positions[None])[0]
        place = self.robot.origin + HALF * drawn
        if np.linalg.norm(place - tool) < 0.1 and drawn[0] < 0.5:
            place = self.robot.origin - HALF * drawn
        return place

    def _do_stop(self):
        self._hold_from('stop', self._clients['stop'].call_async(Trigger.Request()))

    def _do_clear(self):
        self._released = True
        return self._clients['clear'].call_async(Trigger.Request())

    def _do_deactivate(self):
        self._hold_from('deactivation', self._change(Transition.TRANSITION_DEACTIVATE))

    def _do_activate(self):
        self._released = True
        return self._change(Transition.TRANSITION_ACTIVATE)

    def _change(self, number):
        request = ChangeState.Request(transition=Transition(id=number))
        return self._clients['change_state'].call_async(request)

    def _hold_from(self, cause, future):
        """Let nothing but a ramp follow the answer, unless that was over before it came."""
        self._released = False
        self._stops_asked += 1
        number = self._stops_asked

        def begin(answered):
            good = answered.result() is not None and answered.result().success
            if good and not self._released and number == self._stops_asked:
                if self._hold_begin is None:
                    self._hold_begin, self._hold_cause = time.time(), cause

        future.add_done_callback(begin)
        return future

    def _end_hold(self):
        self._holds.append(Hold(self._hold_begin, time.time(), self._hold_cause))
        self._hold_begin = None

    def _do_sigstop(self):
        self._process.send_signal(signal.SIGSTOP)
        self._stopped_at = time.time()

    def _do_sigcont(self):
        self._process.send_signal(signal.SIGCONT)
        if self._stopped_at is not None:
            self._frozen.append((self._stopped_at, time.time()))
            self._stopped_at = None

    def _do_single(self, joint, angle):
        self._singles.append((joint, angle))

    def _do_fault(self, name, value):
        self._fault[name] = value
        if name == 'drift':
            self._drifts_since = time.time()
        elif name == 'blocked':
            self._arm.is_blocked = bool(value)
        elif name == 'load':
            for burner in self._burners:
                burner.send_signal(signal.SIGCONT if value else signal.SIGSTOP)
        elif name == 'intruder' and value is not None and self._intruder is None:
            self._intruder = self._node.create_publisher(JointState, 'joint_states', 10)

    def _be_honest(self):
        for name in FAULTS:
            if self._fault[name] is not None:
                self._do_fault(name, None)
        self._singles.clear()
        self._late.clear()
        if self._intruder is not None:
            self._node.destroy_publisher(self._intruder)
            self._intruder = None

    # Sequences.

    def run(self, numbers):
        """Return the report over these sequences."""
        report = {'output': self._options.output, 'sequences': 0, 'commands': 0, 'violations': []}
        began = time.time()
        self._burners = [subprocess.Popen([sys.executable, '-S', '-c', BUSY]) for _ in range(2)]
        for burner in self._burners:
            burner.send_signal(signal.SIGSTOP)
        for number in numbers:
            sequence = draw(self._options.seed, number, self._options.state_rate)
            try:
                found = self._run_one(sequence)
            except NotReady as error:
                found = [*self._verdict(), Violation(str(error), 1.0, 1.0, time.time())]
                self._end_process()
            report['sequences'] += 1
            report['commands'] += self._judged
            report['violations'] += [
                {
                    'sequence': number,
                    'kinds': sequence.kinds,
                    'kind': violation.kind,
                    'value': float(violation.value),
                    'limit': float(violation.limit),
                    'at': round(violation.time - self._began, 4),
                }
                for violation in found
            ]
            if self._options.only is not None or report['sequences'] % 50 == 0:
                counts = dict(Counter(one['kind'] for one in report['violations']))
                print(
                    f'{self._options.output}: {report["sequences"]} sequences in '
                    f'{time.time() - began:.0f} s, {report["commands"]} commands, {counts}',
                    flush=True,
                )
        report['seconds'] = round(time.time() - began, 1)
        report['held'], report['continued'] = self._judge.held, self._judge.continued
        return report

    def _run_one(self, sequence):
        self._began, self._judged, self._number = time.time(), 0, sequence.number
        if self._process is None or self._policy != sequence.policy:
            self._restart_process(sequence.policy)
        self._rate = sequence.rate
        self._arm.controller, self._arm.delay = sequence.controller, sequence.delay
        self._drawn, self._goal_number = sequence.goals, 0
        self._set_out()
        self._began = time.time()
        for at, name, arguments in sequence.actions:
            self._pass_time(self._began + at)
            self._do(name, *arguments)
        self._pass_time(max(self._began + LENGTH, time.time() + 0.05))
        self._do_sigcont()
        self._be_honest()
        self._settle('lifecycle' in sequence.kinds)
        self._pass_time(time.time() + sequence.pause)
        return self._verdict()

    def _set_out(self):
        """Send goals until one is accepted."""
        before, end = self._accepted, time.time() + READY
        while not self._pass_time(time.time() + 0.2, lambda: self._accepted > before):
            self._check_alive()
            if time.time() > end:
                raise NotReady('no goal accepted')
            self._do_goal()

    def _settle(self, with_lifecycle):
        """Stop the arm, wait until nothing is commanded, and take the stop back."""
        if with_lifecycle:
            self._answered(self._do_activate())
        future = self._hold_from('stop', self._clients['stop'].call_async(Trigger.Request()))
        self._answered(future)
        end = time.time() + 3.0
        self._pass_time(time.time() + STILL)
        while self._commands and time.time() - self._commands[-1].time < STILL:
            self._pass_time(self._commands[-1].time + STILL + 0.01)
            if time.time() > end:
                break  # The judge has seen it.
        self._answered(self._do_clear())
        # On a busy machine it may have paused on its way to rest.
        while self._commands and time.time() - self._commands[-1].time < STILL < end - time.time():
            self._pass_time(self._commands[-1].time + STILL + 0.01)

    def _answered(self, future):
        end = time.time() + READY
        while not self._pass_time(time.time() + 0.2, future.done):
            self._check_alive()
            if time.time() > end:
                raise NotReady('no answer')

    def _verdict(self):
        """Judge what has come since the last verdict."""
        if self._hold_begin is not None:
            self._holds.append(Hold(self._hold_begin, np.inf, self._hold_cause))
        commands, self._commands = self._commands, []
        now = time.time()
        record = Record(
            commands,
            list(self._measured),
            self._holds,
            self._frozen,
            self._before,
            self._verdict_at,
            now,
        )
        found = self._judge.judge(record)
        if found and self._kept < KEPT:
            self._keep(record, found)
        self._before = [*self._before, *commands][-CONTEXT:]
        self._verdict_at = now
        self._judged, self._holds, self._frozen = len(commands), [], []
        while self._measured and self._measured[0][0] < time.time() - REMEMBERED:
            self._measured.popleft()
        return found

    def _keep(self, record, found):
        """Write down what happened, for whoever looks for the cause."""
        self._kept += 1
        began = self._began
        content = {
            'violations': [(one.kind, one.value, one.limit, one.time - began) for one in found],
            'commands': [
                (one.time - began, one.seconds, *one.values)
                for one in (*record.before, *record.commands)
            ],
            'measured': [(when - began, *joints) for when, joints in record.measured],
            'holds': [(one.begin - began, one.end - began, one.cause) for one in record.holds],
            'frozen': [(begin - began, end - began) for begin, end in record.frozen],
        }
        name = f'{self._options.output}_{self._number}.json'
        (Path(self._options.out) / name).write_text(json.dumps(content))

    # The process.

    def _restart_process(self, policy):
        """Start a node; what keeps it from being found, once in a while, is none of its deeds."""
        for attempt in range(1, ATTEMPTS + 1):
            self._end_process()
            self._pass_time(time.time() + GONE)
            self._commands, self._before, self._verdict_at = [], [], -np.inf
            try:
                return self._start_process(policy)
            except NotStarted as error:
                print(f'attempt {attempt}: {error}', flush=True)
                if attempt == ATTEMPTS:
                    raise

    def _start_process(self, policy):
        options = self._options
        parameters = {
            'robot': options.robot,
            'policy': Path(options.policies) / f'{policy}.onnx',
            'output': options.output,
            'command_rate': 1.0 / self.limits.period,
        }
        words = [word for pair in parameters.items() for word in ('-p', '{}:={}'.format(*pair))]
        path = Path(options.out) / f'policy_node_{options.output}.log'
        self._log = path.open('ab')
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'mher_ros.ros', 'policy_node', '--ros-args', *words],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._policy = policy
        end = time.time() + PATIENCE
        while not self._pass_time(time.time() + 0.2, self._is_there):
            if self._process.poll() is not None or time.time() > end:
                self._end_process()
                raise NotStarted(f'policy_node did not start within {PATIENCE:g} s: see {path}')

    def _is_there(self):
        """Return whether the node takes goals and calls."""
        ready = all(client.service_is_ready() for client in self._clients.values())
        return ready and self._goals.get_subscription_count() > 0

    def _note_waiting(self, now):
        """Note when the node had something to do but got no processor."""
        if self._process is None or now < self._looked_at + LOOK:
            return
        waited = {}
        with contextlib.suppress(OSError):  # it may end, or one of its threads
            for path in Path(f'/proc/{self._process.pid}/task').iterdir():
                waited[path.name] = int((path / 'schedstat').read_text().split()[1])
        longest = max((waited[name] - self._waited.get(name, 0) for name in waited), default=0)
        if 1e-9 * longest > WAITED * (now - self._looked_at):
            self._frozen.append((self._looked_at, now))
        self._looked_at, self._waited = now, waited

    def _check_alive(self):
        if self._process is not None and self._process.poll() is not None:
            raise NotReady('node ended')

    def _end_process(self):
        self._be_honest()
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
        self._log.close()
        self._commands, self._holds, self._hold_begin = [], [], None
        self._released = True

    def close(self):
        """End all that was started."""
        self._end_process()
        for burner in self._burners:
            burner.kill()
            burner.wait()
        self._node.destroy_node()
        rclpy.shutdown()


def _malformed(message, kind):
    if kind == 'truncated':
        return serialize_message(message)[:100]
    if kind == 'nan':
        message.position[2] = float('nan')
    elif kind == 'infinite':
        message.velocity[1] = float('inf')
    elif kind == 'short':
        del message.position[-1]
    else:
        message.name = ['nobody', *list(message.name)[1:]]
    return message


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument('--output', required=True, choices=MESSAGES)
    parser.add_argument('--policies', required=True, help='folder of the policy files')
    parser.add_argument('--out', required=True, help='folder for the report')
    options = parser.parse_args()
    # Whatever ends this ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('ended'))
    arm = CampaignArm(options)
    try:
        report = arm.run(numbers_of(options))
    finally:
        arm.close()
    (Path(options.out) / f'{options.output}.json').write_text(json.dumps(report))


if __name__ == '__main__':
    main()
