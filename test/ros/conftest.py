"""Real nodes over real DDS: a ROS domain of the test's own, and processes that end with it."""

import contextlib
import csv
import fcntl
import importlib.util
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from mher_ros.ros.bringup.processes import command_line, node_environment
from mher_ros.ros.bringup.system import NodeSpec, Role
import pytest

PATIENCE = 30.0
"""Time within which anything awaited must happen [s]."""
STOPPING = 10.0
"""Time that a node has to end after SIGINT [s]."""
RELAY = Path(__file__).parent / 'faulty_relay.py'

TINY = {
    'agent.hidden': '16,16',
    'model.hidden': '16,16',
    'model.warmup_fits': '5',
    'schedule.episode_steps': '20',
    'schedule.evaluation_goals': '4',
    'schedule.steps': '160',
    'schedule.updates_per_episode': '5',
    'schedule.until': '0',
    'schedule.warmup_episodes': '2',
    'task.episode_steps': '20',
}
"""A run of seconds: 8 episodes of 20 steps, and after 4, 6 and 8 of them 4 goals of 20 steps."""


WITHOUT_ROS = importlib.util.find_spec('rclpy') is None
NEEDS_ROS = 'needs ROS 2: an installation, or the wheels of PyPI'


class NeedsRos(pytest.Module):
    """A file of tests where there is no ROS."""

    def collect(self):
        pytest.skip(NEEDS_ROS, allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    text = module_path.read_text()
    if WITHOUT_ROS and ('rclpy' in text or 'pytestmark = pytest.mark.ros' in text):
        return NeedsRos.from_parent(parent, path=module_path)
    return None


def pytest_runtest_setup(item):
    if WITHOUT_ROS and item.get_closest_marker('ros'):
        pytest.skip(NEEDS_ROS)


class Process:
    """A child whose lines are read as they come."""

    def __init__(self, command, environment, descriptors):
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            pass_fds=descriptors,
        )
        self.command, self.pid = command, self._child.pid
        self.lines, self.errors = [], []
        self._read = 0
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._listen, args=(stream, lists), daemon=True)
            for stream, lists in (
                (self._child.stdout, (self.lines,)),
                (self._child.stderr, (self.lines, self.errors)),
            )
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, pattern, patience=PATIENCE):
        """Return the next line that the pattern is found in."""
        end = time.monotonic() + patience
        with self._news:
            while True:
                while self._read < len(self.lines):
                    self._read += 1
                    if re.search(pattern, self.lines[self._read - 1]):
                        return self.lines[self._read - 1]
                assert time.monotonic() < end, f'no {pattern!r} after {patience} s in {self}'
                assert any(reader.is_alive() for reader in self._readers), f'{pattern!r}? {self}'
                self._news.wait(0.1)

    def tell(self, line):
        self._child.stdin.write(line + '\n')
        self._child.stdin.flush()

    def signal(self, number):
        self._child.send_signal(number)

    def kill(self):
        """End it as a crash would."""
        self._child.kill()
        self.end()

    def is_running(self):
        return self._child.poll() is None

    def end(self, patience=PATIENCE):
        """Return its exit code once it has ended by itself."""
        try:
            code = self._child.wait(patience)
        except subprocess.TimeoutExpired:
            pytest.fail(f'it goes on after {patience} s: {self}')
        for reader in self._readers:
            reader.join()
        return code

    def stop(self):
        """Return its exit code after SIGINT."""
        self.signal(signal.SIGINT)
        return self.end(STOPPING)

    def close(self):
        """Leave nothing behind; return what is wrong with how it ended, if anything."""
        wrong = ''
        if self.is_running():
            self.signal(signal.SIGINT)
            try:
                code = self._child.wait(STOPPING)
                wrong = f'ended with {code} after SIGINT' if code else ''
            except subprocess.TimeoutExpired:
                self._child.kill()
                wrong = f'did not end within {STOPPING} s after SIGINT'
        self.end()
        if any('Traceback' in line for line in self.lines):
            wrong = wrong or 'ended in a traceback'
        return f'{wrong}: {self}' if wrong else ''

    def __str__(self):
        return '\n'.join((' '.join(map(str, self.command)), *self.lines))

    def _listen(self, stream, lists):
        for line in stream:
            with self._news:
                for lines in lists:
                    lines.append(line.rstrip('\n'))
                self._news.notify_all()


class Listener:
    """Messages of a topic as they come, with the time of receipt."""

    def __init__(self):
        self.messages, self.times = [], []
        self._news = threading.Condition()

    def __call__(self, message):
        with self._news:
            self.messages.append(message)
            self.times.append(time.monotonic())
            self._news.notify_all()

    def wait_for(self, accept=lambda message: True, patience=PATIENCE, after=None):
        """Return the first accepted message of those that come from now on (``after``)."""
        end = time.monotonic() + patience
        with self._news:
            index = len(self.messages) if after is None else after % (len(self.messages) + 1)
            while True:
                while index < len(self.messages):
                    index += 1
                    if accept(self.messages[index - 1]):
                        return self.messages[index - 1]
                assert time.monotonic() < end, f'not among {self.messages[-3:]}'
                self._news.wait(0.1)


class Peer:
    """This process as one more node in the domain."""

    def __init__(self, name, domain, remap=()):
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        self.context = Context()
        rclpy.init(args=[], context=self.context, domain_id=domain)
        self.node = rclpy.create_node(name, context=self.context, cli_args=renaming(remap))
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._closing = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def wait_until(self, condition, what, patience=PATIENCE):
        """Wait until a question to the graph is answered with yes."""
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, f'{what}: not within {patience} s'
            time.sleep(0.005)

    def listen(self, kind, topic, qos=100):
        """Return a listener once there is somebody to listen to."""
        listener = Listener()
        subscription = self.node.create_subscription(kind, topic, listener, qos)
        self.wait_until(subscription.get_publisher_count, f'somebody on {topic}')
        return listener

    def talk(self, kind, topic, qos=10):
        """Return a publisher once somebody listens."""
        publisher = self.node.create_publisher(kind, topic, qos)
        self.wait_until(publisher.get_subscription_count, f'somebody on {topic}')
        return publisher

    def client(self, kind, service):
        client = self.node.create_client(kind, service)
        self.wait_until(client.service_is_ready, f'somebody offers {service}')
        return client

    def call(self, client, request, patience=PATIENCE):
        """Return the answer and how long it took [s]."""
        answered = threading.Event()
        began = time.monotonic()
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        assert answered.wait(patience), f'no answer from {client.srv_name}'
        return future.result(), time.monotonic() - began

    def ask(self, kind, service, **request):
        """Return the answer of a service."""
        client = self.client(kind, service)
        try:
            return self.call(client, kind.Request(**request))[0]
        finally:
            self.node.destroy_client(client)

    def figures(self, name, accept=lambda figures: True):
        """Return the figures that the node of that name tells next on /diagnostics."""
        from diagnostic_msgs.msg import DiagnosticArray

        if not hasattr(self, '_diagnostics'):
            self._diagnostics = self.listen(DiagnosticArray, '/diagnostics')
        found = {}

        def take(array):
            for status in array.status:
                if status.name == name:
                    found.clear()
                    found.update({value.key: value.value for value in status.values})
                    found.update(level=status.level, message=status.message)
                    return accept(found)
            return False

        self._diagnostics.wait_for(take)
        return found

    def close(self):
        self._closing = True
        self._thread.join()
        self._executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _spin(self):
        while not self._closing:
            self._executor.spin_once(timeout_sec=0.1)


class World:
    """A ROS domain and the processes in it."""

    def __init__(self, domain, descriptor):
        self.domain = domain
        self._environment = {
            **node_environment(),
            'ROS_DOMAIN_ID': str(domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        }
        # Whatever outlives even a killed test keeps the domain to itself.
        self._descriptors = (descriptor,)
        self._processes, self._peers, self._arms = [], [], []

    def start(self, *command):
        process = Process([*map(str, command)], self._environment, self._descriptors)
        self._processes.append(process)
        return process

    def node(self, executable, remap=(), **parameters):
        """Start a node of the package."""
        spec = NodeSpec('mher_ros', executable, executable, Role.MAIN, parameters)
        return self.start(*command_line(spec), *renaming(remap))

    def sim_node(self, task='point2d_large', stepping='lockstep', **parameters):
        """Start an arm; it is there once it says so."""
        node = self.node('sim_node', task=task, stepping=stepping, **parameters)
        node.wait_for(f'{task}: .* joints, commanded by')
        return node

    def train_node(self, folder, task='point2d_large', changes=None, remap=(), **parameters):
        """Start a tiny run, or with ``resume`` go on with one."""
        if not parameters.get('resume'):
            choices = {**TINY, **(changes or {})}
            parameters['set'] = ' '.join(f'{key}={value}' for key, value in choices.items())
        return self.node('train_node', remap, task=task, out=str(folder), **parameters)

    def relay(self, **faults):
        """Start what stands between ``relayed/...`` and the arm, and spoils what it passes on."""
        options = [f'{key}={value}' for key, value in faults.items()]
        relay = self.start(sys.executable, RELAY, *options)
        relay.wait_for('ready')
        return relay

    def peer(self, remap=()):
        peer = Peer(f'peer{len(self._peers)}_{self.domain}', self.domain, remap)
        self._peers.append(peer)
        return peer

    def arm(self, link, task, remap=(), peer=None, **options):
        """Return the arm behind the topics as an env in this process, maybe of a peer's node."""
        from mher_ros.ros.arm_env import ArmEnv

        peer = peer or self.peer(remap)
        env = ArmEnv(task, link(peer.node, task, **options))
        self._arms.append(env)
        return env

    def close(self):
        for env in reversed(self._arms):
            env.close()
        for peer in self._peers:
            peer.close()
        wrongs = [process.close() for process in reversed(self._processes)]
        assert not any(wrongs), '\n'.join(filter(None, wrongs))


def renaming(remap):
    """Return the arguments that have a node use other names."""
    words = [word for old, new in dict(remap).items() for word in ('-r', f'{old}:={new}')]
    return ['--ros-args', *words]


class Run:
    """What a run has left in its folder."""

    def __init__(self, folder):
        self.folder = folder

    def rows(self):
        """Return progress.csv without the one column that no two runs share."""
        with (self.folder / 'progress.csv').open() as file:
            return [
                {key: value for key, value in row.items() if key != 'wall_seconds'}
                for row in csv.DictReader(file)
            ]

    def checkpoint(self):
        from mher_ros.learning.checkpoint import load_checkpoint

        return load_checkpoint(self.folder / 'checkpoint')

    def networks(self):
        """Return every number of every network, to the bit."""
        return {
            (name, key): tensor.numpy().tobytes()
            for name, module in self.checkpoint()['agent']['modules'].items()
            for key, tensor in module.items()
        }

    def policy(self):
        return (self.folder / 'policy.onnx').read_bytes()


@contextlib.contextmanager
def open_world():
    with locked_domain() as (domain, descriptor), pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        world = World(domain, descriptor)
        try:
            yield world
        finally:
            world.close()


@contextlib.contextmanager
def locked_domain():
    """Give a ROS domain (from ROS_DOMAIN_ID on) that no other test on this machine has."""
    first = int(os.environ.get('ROS_DOMAIN_ID') or 1)
    for domain in ((first - 1 + step) % 100 + 1 for step in range(100)):
        path = Path(tempfile.gettempdir()) / f'mher_ros_test_domain_{domain}'
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        except PermissionError:
            continue
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield domain, descriptor
                return
        finally:
            os.close(descriptor)
    pytest.fail('all ROS domains from 1 to 100 are in use')


@pytest.fixture(scope='session')
def meshes(tmp_path_factory):
    """Keep meshes out of the user's cache, and make them once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('XDG_CACHE_HOME', str(tmp_path_factory.mktemp('cache')))
        yield


@pytest.fixture
def world(meshes):
    """Return a ROS domain of this test's own."""
    with open_world() as world:
        yield world


@pytest.fixture(scope='module')
def shared_world(meshes):
    """Return a ROS domain that the tests of a file share."""
    with open_world() as world:
        yield world


@pytest.fixture(scope='module')
def shared_worlds(meshes):
    """Return a function that opens one more of those."""
    with contextlib.ExitStack() as worlds:
        yield lambda: worlds.enter_context(open_world())


@pytest.fixture(scope='session')
def in_process(tmp_path_factory):
    """Return a function that does the same tiny run in this process, without ROS."""
    done = {}

    def run(task='point2d_large', export=True, **changes):
        from mher_ros.learning.run import start_training

        key = (task, export, *sorted(changes.items()))
        if key not in done:
            folder = tmp_path_factory.mktemp('in_process') / 'run'
            start_training(folder, tiny_config(task, **changes), export=export)
            done[key] = Run(folder)
        return done[key]

    return run


@pytest.fixture(scope='session')
def tiny():
    """Return a function that makes the configuration of a tiny run."""
    return tiny_config


def tiny_config(task='point2d_large', **changes):
    from mher_ros.learning.config import make_config

    return make_config(task, changes={**TINY, **changes})


@pytest.fixture
def run_in():
    """Return a function that reads a run's folder."""
    return Run
