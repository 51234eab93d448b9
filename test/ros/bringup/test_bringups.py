"""Systems of nodes as they are described, and the commands that they become."""

import importlib.util
import json
from pathlib import Path
import shutil
import subprocess
import sys

import mher_ros
from mher_ros import files
from mher_ros.learning.presets import ALGORITHMS, PRESETS
from mher_ros.learning.run.arguments import REACH, ROBOT
from mher_ros.options import OptionError
from mher_ros.ros.bringup.bringups import BRINGUPS, make_bringup
from mher_ros.ros.bringup.node_spec import argument_rows, Role
from mher_ros.ros.bringup.processes import run_bringup
from mher_ros.tasks import make, PAPER_TASKS, task_class
import pytest

ROOT = Path(mher_ros.__file__).parent.parent
NEEDED = {'deploy': {'robot': 'ur5e'}}
"""Arguments that a system must be given."""


@pytest.fixture
def nodes():
    """Return a function that gives the nodes of train_sim by name."""

    def find(**values):
        return {node.name: node for node in make_bringup('train_sim', values).nodes()}

    return find


# The description


def test_a_description_needs_the_standard_library_only():
    # `ros2 launch` reads it with the system's Python, which has no torch, gymnasium or numpy.
    code = (
        f'import sys; sys.path.insert(0, {str(ROOT)!r})\n'
        'import mher_ros.ros.bringup.launch_files\n'
        'from mher_ros.ros.bringup.bringups import make_bringup, BRINGUPS\n'
        f'print(*[len(make_bringup(name, {NEEDED}.get(name, {{}})).nodes()) for name in BRINGUPS])'
    )
    done = subprocess.run([sys.executable, '-I', '-S', '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ['2', '2', '1']


def test_choices_are_those_of_the_learner():
    rows = {row['name']: row['choices'] for row in argument_rows(make_bringup('train_sim', {}))}
    assert rows['task'] == (*PAPER_TASKS, REACH)
    assert rows['algorithm'] == tuple(ALGORITHMS)
    assert rows['preset'] == tuple(PRESETS)


@pytest.mark.parametrize('name', list(BRINGUPS))
def test_every_system_has_a_launch_file_a_summary_and_one_main_node_at_most(name):
    assert (ROOT / 'launch' / f'{name}.launch.py').exists()
    system = make_bringup(name, NEEDED.get(name, {}))
    assert system.summary
    assert all(row['help'] for row in argument_rows(system))
    assert sum(node.role is Role.MAIN for node in system.nodes()) <= 1


@pytest.mark.parametrize(
    ('values', 'sentence'),
    [
        (
            {'tsk': 'reacher'},
            "unknown key 'tsk'; the keys are algorithm, max_minutes, namespace, out, preset, "
            'resume, robot, rviz, seed, set, steps, task, until, use_sim_time, view, view_port',
        ),
        ({'task': 'fetch'}, f"task takes one of {', '.join(PAPER_TASKS)}, reach; got 'fetch'"),
        ({'seed': 'one'}, "seed takes a whole number, got 'one'"),
        ({'seed': '-1'}, f'seed must be at least 0 and at most {2**63 - 1}, got -1'),
        ({'rviz': 'yes'}, "rviz takes true or false, got 'yes'"),
        ({'view': 'yes'}, "view takes true or false, got 'yes'"),
        ({'view_port': '65536'}, 'view_port must be at least 0 and at most 65535, got 65536'),
        ({'resume': 'true'}, 'to resume a run, name its folder (out:=...)'),
        ({'resume': True, 'out': '/'}, '/ holds no run: there is no config.json in it'),
    ],
)
def test_values_that_make_no_sense_are_refused_before_anything_starts(values, sentence):
    with pytest.raises(OptionError) as caught:
        run_bringup('train_sim', values)
    assert str(caught.value) == sentence


def test_unknown_system_is_refused_with_those_there_are():
    with pytest.raises(OptionError, match="unknown bringup 'fly'; there are train_sim, deploy"):
        run_bringup('fly', {})


# train_sim


def test_the_arm_waits_for_the_learner_whose_end_is_the_end(nodes):
    budgets = {'steps': '1000', 'until': '0.9', 'max_minutes': '5'}
    changes = 'agent.batch=32 task.threshold=0.02'
    found = nodes(task='sawyer_reach', seed='3', set=changes, out='runs/a', **budgets)
    assert {name: node.role for name, node in found.items()} == {
        'sim_node': Role.NEEDED,
        'train_node': Role.MAIN,
    }
    assert found['sim_node'].parameters == {
        'task': 'sawyer_reach',
        'stepping': 'lockstep',
    }
    assert found['train_node'].parameters == {
        'task': 'sawyer_reach',
        'robot': '',
        'algorithm': 'mher',
        'preset': 'fast',
        'seed': 3,
        'steps': 1000,
        'until': 0.9,
        'max_minutes': 5.0,
        'set': changes,
        'out': 'runs/a',
        'resume': False,
    }


@pytest.mark.parametrize('task', PAPER_TASKS)
def test_rviz_opens_with_the_layout_for_training_in_the_frame_of_the_task(nodes, task):
    rviz = nodes(rviz='true', task=task)['rviz']
    assert (rviz.package, rviz.executable, rviz.role) == ('rviz2', 'rviz2', Role.OPTIONAL)
    layout = ROOT / 'config' / 'rviz' / 'train.rviz'
    assert rviz.arguments == ('-d', str(layout), '-f', make(task).interface.frame)


def test_a_page_is_served_only_when_asked_for_and_training_goes_on_without_it(nodes):
    assert 'view_node' not in nodes()
    page = nodes(view='true', view_port='8090')['view_node']
    assert (page.package, page.executable) == ('mher_ros', 'view_node')
    assert page.role is Role.OPTIONAL
    assert page.parameters == {'port': 8090, 'robot': 'fetch'}


def test_a_run_that_goes_on_goes_on_with_its_own_arm(nodes, tmp_path):
    (tmp_path / 'config.json').write_text(json.dumps({'task_name': 'reacher'}))
    found = nodes(resume='true', out=str(tmp_path))
    assert found['sim_node'].parameters['task'] == 'reacher'
    assert found['train_node'].parameters['resume'] is True


def test_without_arguments_fetch_learns_to_reach(nodes):
    found = nodes()
    assert found['sim_node'].parameters == {'robot': 'fetch', 'stepping': 'lockstep'}
    learner = found['train_node'].parameters
    assert (learner['task'], learner['robot']) == ('reach', '')
    assert task_class(REACH).default_options.robot == ROBOT == 'fetch'
    moved = nodes(set='task.robot=panda')['sim_node'].parameters
    assert moved['robot'] == 'panda'


def test_a_robot_is_learnt_with_instead_of_a_task_and_again_when_the_run_goes_on(nodes, tmp_path):
    found = nodes(robot='ur5e', out=str(tmp_path))
    assert found['sim_node'].parameters['robot'] == 'ur5e'
    assert 'task' not in found['sim_node'].parameters
    assert found['train_node'].parameters['robot'] == 'ur5e'
    assert 'randomise' not in found['sim_node'].parameters
    found = nodes(robot='ur5e', set='agent.batch=32 task.randomise=0.5')
    assert found['sim_node'].parameters['randomise'] == 0.5
    with pytest.raises(OptionError, match="task.randomise takes a number, got 'much'"):
        nodes(robot='ur5e', set='task.randomise=much')
    config = {'task_name': 'reach', 'task': {'robot': 'panda', 'randomise': 1.5}}
    (tmp_path / 'config.json').write_text(json.dumps(config))
    found = nodes(resume='true', out=str(tmp_path))
    assert found['sim_node'].parameters['robot'] == 'panda'
    assert found['sim_node'].parameters['randomise'] == 1.5


def test_a_simulated_arm_has_the_errors_of_the_task(nodes, tmp_path):
    wrong = 'task.tracker.camera_turn=0,0,90 task.tracker.noise=0.01 task.tracker.arm_seed=3'
    expected = {
        'tracker.camera_turn': '0,0,90',
        'tracker.noise': 0.01,
        'tracker.arm_seed': 3,
    }
    found = nodes(robot='ur5e', set=f'agent.batch=32 {wrong}')['sim_node'].parameters
    assert {key: found[key] for key in expected} == expected
    tracker = {'camera_turn': [0.0, 0.0, 90.0], 'noise': 0.01, 'arm_seed': 3}
    config = {'task_name': 'reach', 'task': {'robot': 'ur5e', 'tracker': tracker}}
    (tmp_path / files.CONFIG).write_text(json.dumps(config))
    found = nodes(resume=True, out=str(tmp_path))['sim_node'].parameters
    assert {**found, **expected, 'tracker.camera_turn': '0.0,0.0,90.0'} == found
    simulated = make_bringup(
        'deploy_sim', {'robot': 'ur5e', 'tracker': 'camera_turn=0,0,90 link_error=0.03'}
    )
    parameters = simulated.nodes()[0].parameters
    assert parameters['tracker.camera_turn'] == '0,0,90'
    assert parameters['tracker.link_error'] == 0.03


@pytest.mark.parametrize('content', ['{"task_name": ', '[]', '{}'])
def test_a_run_whose_choices_cannot_be_read_is_refused(nodes, tmp_path, content):
    (tmp_path / 'config.json').write_text(content)
    with pytest.raises(OptionError, match=r'config\.json'):
        nodes(resume='true', out=str(tmp_path))


# Where files are


@pytest.mark.parametrize('installed', ['lib/python3/site-packages', 'local/lib/dist-packages'])
def test_share_folder_is_that_of_the_prefix_the_code_is_installed_in(tmp_path, installed):
    code = tmp_path / installed / 'mher_ros' / 'files.py'
    code.parent.mkdir(parents=True)
    shutil.copy(files.__file__, code)
    folder = tmp_path / 'share' / 'mher_ros'
    folder.mkdir(parents=True)
    (folder / 'package.xml').touch()
    spec = importlib.util.spec_from_file_location('installed_share', code)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.share_folder() == folder
