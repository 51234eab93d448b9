"""``import mher_ros``: train, evaluate, register; the same objects as the command line's."""

import ast
import json
from pathlib import Path
import subprocess
import sys

from goal_envs import Hidden, NearGoals, Point
import mher_ros
from mher_ros.learning.config import load_config
from mher_ros.learning.presets import ALGORITHMS
from mher_ros.learning.relabel import RELABELLING
from mher_ros.options import OptionError
from mher_ros.policy.contract import PolicyFileError
import pytest

QUICK = {
    'schedule.evaluation_goals': 5,
    'schedule.updates_per_episode': 10,
    'schedule.warmup_updates': 10,
}


@pytest.fixture(autouse=True)
def registries(monkeypatch):
    """Forget after each test what it registered."""
    for registry in (ALGORITHMS, RELABELLING):
        monkeypatch.setattr(registry, '_entries', dict(registry._entries))


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """Return a short run on an env of the user's own."""
    out = tmp_path_factory.mktemp('api') / 'run'
    return mher_ros.train(Point, steps=100, out=out, options=QUICK)


def test_the_root_offers_what_it_lists():
    for name in mher_ros.__all__:
        assert getattr(mher_ros, name) is not None
    assert set(mher_ros.__all__) <= set(dir(mher_ros))
    with pytest.raises(AttributeError, match='nothing'):
        _ = mher_ros.nothing


def test_importing_it_imports_nothing_heavy():
    code = (
        'import sys, mher_ros; print(sorted({"torch", "mujoco", "gymnasium"} & set(sys.modules)))'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout == '[]\n'


def test_an_env_of_your_own_is_trained_exported_and_evaluated(run):
    assert (run.stop_reason, run.env_steps) == ('steps', 100)
    assert run.success_rate == run.progress[-1]['success_rate']
    result = mher_ros.evaluate(mher_ros.load(run.policy), episodes=5)
    assert (result['task'], result['goals']) == ('Point', 5)


def test_a_run_is_resumed(run):
    config = load_config(run.folder)
    assert config.task_name == 'Point'
    longer = mher_ros.train(Point, steps=125, out=run.folder, resume=True)
    assert longer.env_steps == 125


def test_the_same_seed_gives_the_same_run(run, tmp_path):
    other = mher_ros.train(Point, steps=100, out=tmp_path / 'run', options=QUICK)
    for one, two in zip(run.progress, other.progress, strict=True):
        assert {**one, 'wall_seconds': 0} == {**two, 'wall_seconds': 0}


def test_algorithms_with_a_model_need_the_state_to_goal_map(tmp_path):
    with pytest.raises(OptionError, match='goal_map'):
        mher_ros.train(Hidden, steps=100, out=tmp_path / 'mher', options=QUICK)
    her = mher_ros.train(Hidden, 'her', steps=100, out=tmp_path / 'her', options=QUICK)
    assert her.policy is not None


def test_a_declared_map_trains_mher(tmp_path):
    mher_ros.register_task('mapped', Hidden, goal_map=lambda seen: seen[..., :2] / 2.0)
    found = mher_ros.train('mapped', steps=100, out=tmp_path / 'run', options=QUICK)
    assert found.policy is not None


def test_strategies_and_algorithms_are_registered_by_name(tmp_path):
    mher_ros.register_relabelling('near', NearGoals)
    mher_ros.register_algorithm('her_near', 'HER with near goals', {'relabel.goals': 'near'})
    NearGoals.proposed = 0
    mher_ros.train('point2d_large', 'her_near', steps=100, out=tmp_path / 'run', options=QUICK)
    assert NearGoals.proposed > 0
    with pytest.raises(OptionError, match='near'):
        mher_ros.register_relabelling('near', NearGoals)


def test_a_strategy_is_named_by_its_module_too(tmp_path):
    NearGoals.proposed = 0
    changes = {**QUICK, 'relabel.goals': 'goal_envs:NearGoals'}
    mher_ros.train('point2d_large', 'her', steps=100, out=tmp_path / 'run', options=changes)
    assert NearGoals.proposed > 0


@pytest.mark.parametrize(
    'changes', [{'relabel.goals': 'nonsense'}, {'relabel.goals': 'goal_envs:Nothing'}]
)
def test_unknown_strategies_are_refused(tmp_path, changes):
    with pytest.raises(OptionError):
        mher_ros.train('point2d_large', steps=100, out=tmp_path / 'run', options=changes)


def test_files_do_not_import_what_they_name(run, tmp_path):
    """A run's folder and a policy file may come from anybody."""
    values = json.loads((run.folder / 'config.json').read_text())
    for section, key in ((values, 'task_name'), (values['relabel'], 'goals')):
        before, section[key] = section[key], 'this:Zen'
        (tmp_path / 'config.json').write_text(json.dumps(values))
        with pytest.raises(OptionError, match='this:Zen'):
            load_config(tmp_path)
        section[key] = before
    assert 'this' not in sys.modules


def test_the_command_line_takes_an_env_of_the_working_folder(tmp_path):
    source = Path(__file__).parent / 'shared' / 'runs' / 'goal_envs.py'
    (tmp_path / 'own_envs.py').write_text(source.read_text())

    def mher(*words):
        return subprocess.run(
            [sys.executable, '-m', 'mher_ros', *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    changes = [word for key, value in QUICK.items() for word in ('--set', f'{key}={value}')]
    trained = mher('train', 'own_envs:Point', '--steps', '100', '--out', 'run', *changes)
    assert trained.returncode == 0, trained.stderr
    refused = mher('evaluate', 'run/policy.onnx', '--episodes', '5')
    assert refused.returncode == 2
    assert 'own_envs:Point' in refused.stderr
    named = mher('evaluate', 'run/policy.onnx', '--episodes', '5', '--env', 'own_envs:Point')
    assert named.returncode == 0, named.stderr


def test_the_example_of_an_own_env_learns(tmp_path):
    example = Path(mher_ros.__file__).parent.parent / 'examples' / 'own_env.py'
    command = [sys.executable, example]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout.splitlines()[-1])['success_rate'] >= 0.9


def test_a_policy_of_another_env_is_refused(run):
    with pytest.raises((OptionError, PolicyFileError), match='Point'):
        mher_ros.evaluate(run.policy, env='point2d_large', episodes=2)


@pytest.mark.parametrize(
    ('module', 'arguments', 'extra'),
    [
        ('torch', ['train', 'point2d_large'], 'train'),
        ('gymnasium_robotics', ['train', 'fetch_reach'], 'train'),
        ('viser', ['view', 'runs/none'], 'view'),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, module, arguments, extra):
    code = (
        f'import sys; sys.modules[{module!r}] = None\n'
        f'from mher_ros.cli import main; sys.exit(main({arguments!r}))'
    )
    command = [sys.executable, '-c', code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert module in done.stderr and f'mher_ros[{extra}]' in done.stderr


def test_running_a_policy_needs_nothing_of_training():
    code = (
        'import sys\n'
        "for name in ('torch', 'metaworld', 'gymnasium_robotics', 'viser', 'onnx', 'rclpy'):\n"
        '    sys.modules[name] = None\n'
        'import mher_ros\n'
        'mher_ros.load, mher_ros.evaluate, mher_ros.Robot, mher_ros.make\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
