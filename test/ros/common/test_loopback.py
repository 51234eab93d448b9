"""Nodes of this machine alone are out of reach of others, tried from another network namespace."""

import contextlib
import os
from pathlib import Path
import shutil
import subprocess
import sys
import time

from mher_ros.ros.bringup.node_spec import loopback_profile, PROFILE
from mher_ros.ros.bringup.processes import node_environment
import pytest
from ros_process import PATIENCE, Process
from ros_world import locked_domain

pytestmark = pytest.mark.ros

LOCAL = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}


@pytest.mark.parametrize(
    ('environment', 'is_closed'),
    [
        (LOCAL, True),
        ({'ROS_LOCALHOST_ONLY': '1'}, True),
        ({}, False),
        ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}, False),
        ({**LOCAL, PROFILE: 'mine.xml'}, False),
        ({**LOCAL, 'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4'}, False),
        ({**LOCAL, 'ROS_STATIC_PEERS': '10.0.0.2'}, False),
        ({**LOCAL, 'ROS_STATIC_PEERS': ''}, True),
    ],
)
def test_nodes_of_this_machine_get_the_profile_unless_somebody_chose_another(
    environment, is_closed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    added = loopback_profile(environment)
    assert list(added) == ([PROFILE] if is_closed else [])
    assert all(Path(path).is_file() for path in added.values())
    (tmp_path / 'DEFAULT_FASTRTPS_PROFILES.xml').write_text('')
    assert not loopback_profile(environment)


@pytest.mark.parametrize(('chosen', 'is_closed'), [({}, True), ({PROFILE: '/nowhere'}, False)])
def test_mher_up_hands_the_profile_on(monkeypatch, chosen, is_closed):
    monkeypatch.delenv('ROS_AUTOMATIC_DISCOVERY_RANGE', raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    assert node_environment()[PROFILE].endswith('loopback.xml') == is_closed


LISTEN = """
import sys, rclpy, time
from sensor_msgs.msg import JointState
rclpy.init()
node, states = rclpy.create_node('stranger'), []
node.create_subscription(JointState, 'joint_states', states.append, 10)
print('listening', flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and not states:
    rclpy.spin_once(node, timeout_sec=0.1)
print('heard', len(states), flush=True)
"""
SHM = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'
"""Both sides are one machine, whose memory they must not share."""
ADDRESSES = '10.253.53.1', '10.253.53.2'


def ip(*words):
    return subprocess.run(['ip', *words], check=True, capture_output=True, text=True)


@pytest.fixture(scope='module')
def networks():
    """Return two network namespaces that are joined by a cable."""
    if os.geteuid() != 0 or shutil.which('ip') is None:
        pytest.skip('network namespaces need root and iproute2')
    names = [f'mher{os.getpid()}{side}' for side in 'ab']
    made = []
    try:
        for name in names:
            ip('netns', 'add', name)
            made.append(name)
        first, second = names
        ip(*f'link add {first} netns {first} type veth peer name {second} netns {second}'.split())
        for name, address in zip(names, ADDRESSES, strict=True):
            ip('-n', name, 'address', 'add', f'{address}/24', 'dev', name)
            for device in ('lo', name):
                ip('-n', name, 'link', 'set', device, 'up')
    except subprocess.CalledProcessError as error:
        for name in made:
            ip('netns', 'delete', name)
        pytest.skip(f'no network namespaces can be made here: {error.stderr.strip()}')
    for name in names:  # The kernel takes a second; until then Fast DDS passes a cable over.
        end = time.monotonic() + PATIENCE
        while ' UP ' not in ip('-n', name, '-brief', 'link', 'show', name).stdout:
            assert time.monotonic() < end, f'{name} is not up within {PATIENCE} s'
            time.sleep(0.05)
    yield names
    for name in made:
        ip('netns', 'delete', name)


@contextlib.contextmanager
def process_in(network, command, **environment):
    inside = ['ip', 'netns', 'exec', network, 'unshare', '-m', 'sh', '-c', SHM, 'sh']
    outer = {name: value for name, value in os.environ.items() if name != PROFILE}
    process = Process([*inside, *map(str, command)], {**outer, **environment}, ())
    try:
        yield process
    finally:
        process.close()


@pytest.fixture(scope='module')
def domain():
    with locked_domain() as (domain, _):
        yield {'ROS_DOMAIN_ID': str(domain)}


@pytest.mark.parametrize(('is_closed', 'listens'), [(False, 60.0), (True, 8.0)])
def test_who_asks_by_unicast_from_another_machine_hears_nothing(
    networks, domain, tmp_path, is_closed, listens
):
    own = tmp_path / 'own.xml'  # one that changes nothing: without ours a stranger is let in
    own.write_text('<dds><profiles></profiles></dds>')
    arm = [sys.executable, '-m', 'mher_ros.ros', 'sim_node', '--ros-args']
    choice = {} if is_closed else {PROFILE: str(own)}
    stranger = {
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET',
        'ROS_STATIC_PEERS': ADDRESSES[0],
        **domain,
    }
    with process_in(
        networks[0], [*arm, '-p', 'task:=point2d_large'], **LOCAL, **domain, **choice
    ) as sim:
        sim.wait_for('joints, commanded by')
        listen = [sys.executable, '-c', LISTEN, listens]
        with process_in(networks[1], listen, **stranger) as process:
            heard = process.wait_for('^heard')
    assert (heard == 'heard 0') == is_closed
