"""A ROS domain that no other test has, and the processes in it."""

import contextlib
import fcntl
import os
from pathlib import Path
import sys
import tempfile

from mher_ros.ros.bringup.node_spec import NodeSpec, Role
from mher_ros.ros.bringup.processes import command_line, node_environment
import pytest
from ros_peer import Peer, renaming
from ros_process import Process
from tiny_runs import TINY

RELAY = Path(__file__).parent / 'faulty_relay.py'


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
        node.wait_for(f'{parameters.get("robot") or task}: .* joints, commanded by')
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
        from mher_ros.ros.train.arm_env import ArmEnv

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
