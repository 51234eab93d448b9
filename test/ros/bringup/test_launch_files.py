"""The launch files under the real launch system, with small scripts in place of the nodes."""

import json
import os
from pathlib import Path
import signal
import subprocess
import sys

import mher_ros
from mher_ros.ros.bringup.system import argument_rows
from mher_ros.ros.bringup.systems import make_system, SYSTEMS
import pytest

REASON = 'needs launch and launch_ros, which come with a ROS installation'
# Not `launch` itself: the folder of that name beside this package can be imported, too.
pytest.importorskip('launch.actions', reason=REASON)
pytest.importorskip('launch_ros.actions', reason=REASON)

LAUNCH_FILES = Path(mher_ros.__file__).parent.parent / 'launch'

DRIVER = """
import json, sys
from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
path, arguments = json.loads(sys.argv[1])
service = LaunchService(noninteractive=True)
source = PythonLaunchDescriptionSource(path)
service.include_launch_description(
    IncludeLaunchDescription(source, launch_arguments=arguments.items())
)
sys.exit(service.run())
"""

# Prints its name and parameters, then ends as the environment says.
NODE = """
import json, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
import rclpy
from rclpy.signals import SignalHandlerOptions
program = os.path.basename(sys.argv[0])
rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
node = rclpy.create_node('unnamed', automatically_declare_parameters_from_overrides=True)
values = {key: value.value for key, value in node.get_parameters_by_prefix('').items()}
print('READY', json.dumps([node.get_name(), values]))
if f'{program}_ENDS_WITH' in os.environ:
    open(os.environ['GATE']).read()
    os._exit(int(os.environ[f'{program}_ENDS_WITH']))
signal.sigwait({signal.SIGINT})
print('saved')
sys.exit(int(os.environ.get(f'{program}_SAVES_WITH', 0)))
"""
OF_EVERY_NODE = {'use_sim_time', 'start_type_description_service'}


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """Return a function that launches a system with stand-ins for the nodes of mher_ros."""
    prefix = tmp_path / 'prefix'
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    for package, name, text in (
        ('mher_ros', 'sim_node', f'#!{sys.executable}\n{NODE}'),
        ('mher_ros', 'train_node', f'#!{sys.executable}\n{NODE}'),
        ('mher_ros', 'policy_node', f'#!{sys.executable}\n{NODE}'),
        ('rviz2', 'rviz2', '#!/bin/sh\necho "$@"\n'),
    ):
        (index / package).touch()
        program = prefix / 'lib' / package / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    gate = tmp_path / 'gate'
    os.mkfifo(gate)
    before = os.environ.get('AMENT_PREFIX_PATH', sys.prefix)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{prefix}{os.pathsep}{before}')
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path / 'log'))
    monkeypatch.delenv('PYTHONUNBUFFERED', raising=False)
    monkeypatch.setenv('GATE', str(gate))
    running = []

    def launch(arguments=None, system='train_sim', **environment):
        path = str(LAUNCH_FILES / f'{system}.launch.py')
        launched = Launched([path, arguments or {}], environment, gate)
        running.append(launched.process)
        return launched

    yield launch
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Launched:
    def __init__(self, what, environment, gate):
        self.gate = gate
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, '-c', DRIVER, json.dumps(what)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )

    def wait_until_up(self):
        """Return the parameters of both nodes by name."""
        nodes = {}
        for line in self.process.stdout:
            self.lines.append(line.rstrip('\n'))
            if ' READY ' in line:
                name, values = json.loads(line.partition(' READY ')[2])
                nodes[name] = {key: values[key] for key in values.keys() - OF_EVERY_NODE}
            if len(nodes) == 2:
                return nodes
        pytest.fail('\n'.join(self.lines))

    def read_until(self, wanted):
        while not any(wanted in line for line in self.lines):
            line = self.process.stdout.readline()
            assert line, self.lines
            self.lines.append(line.rstrip('\n'))

    def end(self):
        """Return the exit code and everything that was printed."""
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, '\n'.join([*self.lines, out])


@pytest.mark.parametrize('name', list(SYSTEMS))
def test_a_launch_file_declares_exactly_the_described_arguments(name):
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    source = PythonLaunchDescriptionSource(str(LAUNCH_FILES / f'{name}.launch.py'))
    declared = source.try_get_launch_description_without_context().get_launch_arguments()
    described = argument_rows(make_system(name, {}))
    assert [argument.name for argument in declared] == [row['name'] for row in described]
    for argument, row in zip(declared, described, strict=True):
        assert ''.join(part.text for part in argument.default_value) == row['default']
        assert argument.description.startswith(row['help'])
        assert tuple(argument.choices or ()) == tuple(row['choices'] or ())


@pytest.mark.ros
@pytest.mark.parametrize(
    ('system', 'given'),
    [
        (
            'train_sim',
            {'task': 'sawyer_reach', 'seed': '3', 'out': 'runs/7', 'headless': 'false'},
        ),
        ('deploy_sim', {'robot': 'panda', 'policy': '7', 'set': 'safety.leash=1 command_rate=50'}),
    ],
)
def test_nodes_carry_the_described_parameters(launched, system, given):
    run = launched(given, system)
    described = make_system(system, given).nodes()
    assert run.wait_until_up() == {node.name: node.parameters for node in described}


@pytest.mark.ros
@pytest.mark.parametrize('code', [0, 3])
def test_the_launch_ends_with_the_learner(launched, code):
    run = launched(train_node_ENDS_WITH=str(code))
    run.wait_until_up()
    run.gate.write_text('')
    ended_with, out = run.end()
    assert ended_with == (1 if code else 0)
    assert '[sim_node-1] saved' in out
    assert ('train_node ended with exit code 3' in out) == (code == 3)


@pytest.mark.ros
def test_the_launch_fails_when_the_arm_dies(launched):
    run = launched(sim_node_ENDS_WITH='0')
    run.wait_until_up()
    run.gate.write_text('')
    code, out = run.end()
    assert code == 1
    assert 'sim_node ended with exit code 0, but is needed' in out
    assert '[train_node-2] saved' in out


@pytest.mark.ros
def test_training_goes_on_without_rviz(launched):
    run = launched({'rviz': 'true'}, train_node_ENDS_WITH='0')
    run.wait_until_up()
    run.read_until('[rviz2-3]: process has finished cleanly')
    run.gate.write_text('')
    code, out = run.end()
    assert code == 0
    layout = LAUNCH_FILES.parent / 'config' / 'rviz' / 'train.rviz'
    assert f'[rviz2-3] -d {layout} -f world --ros-args -r __node:=rviz\n' in out


@pytest.mark.ros
@pytest.mark.parametrize('code', [0, 3])
def test_an_interrupted_launch_ends_as_the_learner_does(launched, code):
    run = launched(train_node_SAVES_WITH=str(code), sim_node_SAVES_WITH='5')
    run.wait_until_up()
    run.process.send_signal(signal.SIGINT)
    ended_with, out = run.end()
    assert ended_with == (1 if code else 0)
    assert '[train_node-2] saved' in out


@pytest.mark.ros
def test_values_that_make_no_sense_are_refused_before_anything_starts(launched):
    code, out = launched({'seed': 'one'}).end()
    assert code == 1
    assert "seed takes a whole number, got 'one'" in out
    assert 'process started' not in out


@pytest.mark.parametrize(('given', 'reach'), [(None, 'LOCALHOST'), ('SUBNET', None)])
def test_nodes_stay_on_this_machine_unless_told_otherwise(monkeypatch, given, reach):
    from mher_ros.ros.bringup.launch_files import launch_node

    key = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
    monkeypatch.delenv(key, raising=False)
    if given:
        monkeypatch.setenv(key, given)
    (node,) = make_system('deploy', {'robot': 'ur5e'}).nodes()
    added = {name[0].text: value[0].text for name, value in launch_node(node).additional_env or ()}
    assert added.get(key) == reach


def test_a_learner_has_time_to_save_its_work():
    from mher_ros.ros.bringup.launch_files import launch_node

    for node in make_system('train_sim', {}).nodes():
        action = launch_node(node)
        assert [part.text for part in action.sigterm_timeout] == ['20.0']
        assert [part.text for part in action.sigkill_timeout] == ['10.0']
