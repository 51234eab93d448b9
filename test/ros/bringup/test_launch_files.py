"""The launch files under the real launch system, with small scripts in place of the nodes."""

import json
import os
from pathlib import Path
import signal
import subprocess
import sys

import mher_ros
from mher_ros.ros.bringup.bringups import BRINGUPS, make_bringup
from mher_ros.ros.bringup.node_spec import argument_rows
import pytest

REASON = 'needs launch and launch_ros, which come with a ROS installation'
# Not `launch` itself: the folder of that name beside this package can be imported, too.
pytest.importorskip('launch.actions', reason=REASON)
pytest.importorskip('launch_ros.actions', reason=REASON)

LAUNCH_FILES = Path(mher_ros.__file__).parent.parent / 'launch'

# What `ros2 launch PATH NAME:=VALUE ...` does.
DRIVER = """
import sys
from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
_, _, path, *arguments = sys.argv
service = LaunchService(argv=arguments, noninteractive=True)
source = PythonLaunchDescriptionSource(path)
pairs = [argument.split(':=', 1) for argument in arguments]
service.include_launch_description(IncludeLaunchDescription(source, launch_arguments=pairs))
sys.exit(service.run())
"""

# Somebody's launch file, with a driver and an argument of its own.
BRINGUP = """
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

def generate_launch_description():
    driver = ExecuteProcess(cmd=['sh', '-c', 'echo driving; exec sleep 1000'], name='driver')
    ours = IncludeLaunchDescription(
        PythonLaunchDescriptionSource({path!r}), launch_arguments={arguments!r}
    )
    return LaunchDescription([DeclareLaunchArgument('robot_ip', default_value='x'), driver, ours])
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
print('READY', json.dumps([node.get_name(), node.get_namespace(), values]))
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

    def launch(arguments=None, system='train_sim', included=False, **environment):
        path = LAUNCH_FILES / f'{system}.launch.py'
        words = [f'{key}:={value}' for key, value in (arguments or {}).items()]
        if included:
            text = BRINGUP.format(path=str(path), arguments=[*(arguments or {}).items()])
            path, words = tmp_path / 'bringup.launch.py', ['robot_ip:=10.0.0.1', 'other:=3']
            path.write_text(text)
        launched = Launched([str(path), *words], environment, gate)
        running.append(launched.process)
        return launched

    yield launch
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Launched:
    def __init__(self, words, environment, gate):
        self.gate = gate
        self.lines = []
        self.namespaces, self.sim_time = {}, {}
        self.process = subprocess.Popen(
            [sys.executable, '-c', DRIVER, 'launch', *words],
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
                name, namespace, values = json.loads(line.partition(' READY ')[2])
                self.namespaces[name] = namespace
                self.sim_time[name] = values['use_sim_time']
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


@pytest.mark.parametrize('name', list(BRINGUPS))
def test_a_launch_file_declares_exactly_the_described_arguments(name):
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    source = PythonLaunchDescriptionSource(str(LAUNCH_FILES / f'{name}.launch.py'))
    declared = source.try_get_launch_description_without_context().get_launch_arguments()
    described = argument_rows(make_bringup(name, {}))
    names = [argument.name for argument in declared]
    assert names == [*(row['name'] for row in described), 'end_all']
    for argument, row in zip(declared, described, strict=False):
        assert ''.join(part.text for part in argument.default_value) == row['default']
        assert argument.description.startswith(row['help'])
        assert tuple(argument.choices or ()) == tuple(row['choices'] or ())


@pytest.mark.ros
@pytest.mark.parametrize(
    ('system', 'given'),
    [
        (
            'train_sim',
            {'task': 'sawyer_reach', 'seed': '3', 'out': 'runs/7'},
        ),
        (
            'deploy_sim',
            {
                'robot': 'panda',
                'policy': '7',
                'set': 'safety.recovery_time=1 command_rate=50',
            },
        ),
    ],
)
def test_nodes_carry_the_described_parameters(launched, system, given):
    run = launched(given, system)
    described = make_bringup(system, given).nodes()
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
    assert f'[rviz2-3] -d {layout} -f world --ros-args -r __node:=rviz ' in out


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
def test_a_misspelt_argument_is_refused_before_anything_starts(launched):
    code, out = launched({'robot': 'ur5e', 'sped': '0.05'}, 'deploy').end()
    assert code == 1
    assert "deploy has no argument 'sped'; it has " in out
    assert 'process started' not in out


@pytest.mark.ros
@pytest.mark.parametrize('end_all', [False, True])
@pytest.mark.parametrize('ends', ['train_node_ENDS_WITH', 'sim_node_ENDS_WITH'])
def test_included_in_another_launch_file_only_its_own_nodes_end(launched, ends, end_all):
    arguments = {'end_all': 'true'} if end_all else {}
    run = launched({**arguments, 'sed': '3'}, included=True, **{ends: '3'})
    run.wait_until_up()
    run.gate.write_text('')
    other = 'sim_node-2' if ends.startswith('train') else 'train_node-3'
    run.read_until(f'[{other}] saved')
    if end_all:
        code, out = run.end()
        assert code == 1
    else:
        run.read_until(f'[{other}]: process has finished')
        with pytest.raises(subprocess.TimeoutExpired):
            run.process.wait(2.0)
        run.process.send_signal(signal.SIGINT)
        code, out = run.end()
        assert code == 0
        assert 'Caught exception' not in out
    assert ' ended with exit code 3' in out
    assert 'train_sim has no argument sed; is seed meant?' in out


@pytest.mark.ros
def test_all_nodes_are_in_a_namespace_and_goals_come_on_another_topic(launched):
    arguments = {'namespace': 'left', 'use_sim_time': 'true', 'goal_topic': 'arm_goal'}
    run = launched({**arguments, 'rviz': 'true'}, 'deploy_sim')
    nodes = run.wait_until_up()
    assert run.namespaces == {'sim_node': '/left', 'policy_node': '/left'}
    assert run.sim_time == {'sim_node': True, 'policy_node': True}
    assert 'use_sim_time' not in nodes['sim_node']
    run.read_until('__ns:=/left')
    out = '\n'.join(run.lines)
    assert '-r goal_pose:=arm_goal' in out


@pytest.mark.ros
def test_all_goes_on_where_rviz_is_not_installed(launched, tmp_path):
    (tmp_path / 'prefix' / 'lib' / 'rviz2' / 'rviz2').unlink()
    run = launched({'rviz': 'true'}, train_node_ENDS_WITH='0')
    run.wait_until_up()
    run.gate.write_text('')
    code, out = run.end()
    assert code == 0
    assert 'continuing without rviz: rviz2 was not found' in out


@pytest.mark.ros
def test_values_that_make_no_sense_are_refused_before_anything_starts(launched):
    code, out = launched({'seed': 'one'}).end()
    assert code == 1
    assert "seed takes a whole number, got 'one'" in out
    assert 'process started' not in out


@pytest.mark.parametrize(('given', 'reach'), [(None, 'LOCALHOST'), ('SUBNET', None)])
def test_nodes_stay_on_this_machine_unless_told_otherwise(monkeypatch, given, reach):
    from mher_ros.ros.bringup.launch_files import launch_nodes

    key = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
    monkeypatch.delenv(key, raising=False)
    if given:
        monkeypatch.setenv(key, given)
    (action,) = launch_nodes(make_bringup('deploy', {'robot': 'ur5e'}).nodes(), True)
    added = {name[0].text: value[0].text for name, value in action.additional_env or ()}
    assert added.get(key) == reach


def test_a_learner_has_time_to_save_its_work():
    from mher_ros.ros.bringup.launch_files import launch_nodes

    for action in launch_nodes(make_bringup('train_sim', {}).nodes(), True):
        assert [part.text for part in action.sigterm_timeout] == ['60.0']
        assert [part.text for part in action.sigkill_timeout] == ['30.0']
