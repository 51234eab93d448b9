"""The benchmark of collisions, with few motions."""

import dataclasses
import json
import os
import signal
import subprocess
import sys

from mher_ros.bench import collision_trials, collisions
from mher_ros.bench.collision_scenes import CROWD, OBSTACLES, random_scene
from mher_ros.bench.collision_trials import GOAL_KINDS, MOTION_KINDS, run_scene, SceneTrial
from mher_ros.cli.arguments import INTERRUPTED
from mher_ros.control.filter.collision_limit import CollisionLimit
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.safety_monitor import SafetyMonitor
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import place_workspace
from mher_ros.simulation.contacts import TOUCH
from mher_ros.simulation.dynamic_arm import DynamicArm
from mher_ros.tasks import make
import numpy as np
from proportional_policy import write_proportional_policy
import pytest

pytestmark = pytest.mark.slow

TRIAL = SceneTrial('ur5e', 'joint_position', 'straight line', 'on', '', 1, 0, 4)
DEEP = TOUCH
HARD = {**dict.fromkeys(GOAL_KINDS, 5), **dict.fromkeys(MOTION_KINDS, 0)}
"""Scenes by kind of motion in which panda meets obstacles."""


@pytest.fixture(scope='module')
def policy(tmp_path_factory):
    return str(write_proportional_policy(tmp_path_factory.mktemp('policy') / 'policy.onnx'))


@pytest.fixture(scope='module')
def measured(policy):
    """Return the result of 4 goals, by two processes."""
    return collisions.measure(
        robot='ur5e', goals=4, output='robot', seed=1, policy=policy, workers=2
    )


def trial(policy, **changes):
    return dataclasses.replace(TRIAL, policy=policy, **changes)


def test_every_motion_is_counted_once_and_nothing_is_touched(measured):
    figures = measured.figures
    assert figures['penetrations'] == 0
    assert figures['worst_penetration_mm'] <= 1.0
    assert figures['unnamed'] == 0
    assert 0.0 < figures['ms_median'] <= figures['ms_p99']
    for values in (figures, *measured.samples.values()):
        assert sum(values[key] for key in collision_trials.RESULTS) == values['motions']
    assert {name for name in measured.samples if name.endswith(', on')} == {
        f'{kind}, on' for kind in (*GOAL_KINDS, *MOTION_KINDS)
    }
    assert figures['motions'] == 4 * 5
    assert {row[1] for row in measured.tables[0].rows} == {'on', 'off', 'mink'}


def test_without_the_filter_the_same_motions_touch_something(measured):
    for kind in ('random joints', 'adversarial'):
        assert measured.samples[f'{kind}, off']['penetrations'] > 0


def test_the_number_of_processes_changes_no_result(measured, policy):
    for kind in ('policy', 'adversarial', 'crowded'):
        one = run_scene(trial(policy, kind=kind, output=load_robot('ur5e').output))
        told = collisions._summary([one])
        same = {key: value for key, value in told.items() if not key.startswith('ms_')}
        assert same == {key: measured.samples[f'{kind}, on'][key] for key in same}


@pytest.mark.parametrize('kind', [*GOAL_KINDS, *MOTION_KINDS])
@pytest.mark.parametrize('robot', ['panda', 'fetch'])
def test_no_kind_of_motion_touches_anything(robot, kind, policy):
    one = run_scene(trial(policy, robot=robot, kind=kind, scene=HARD[kind], motions=3))
    assert len(one.outcomes) == 3
    assert max(outcome.depth for outcome in one.outcomes) <= DEEP
    assert not [outcome for outcome in one.outcomes if outcome.result == 'unnamed']


@pytest.mark.parametrize('kind', [*GOAL_KINDS, *MOTION_KINDS])
def test_each_kind_of_motion_finds_a_filter_that_ignores_collisions(kind, policy, monkeypatch):
    ignore_collisions(monkeypatch)
    one = run_scene(trial(policy, robot='panda', kind=kind, scene=HARD[kind], motions=3))
    assert max(outcome.depth for outcome in one.outcomes) > DEEP


def ignore_collisions(patch):
    patch.setattr(CollisionLimit, 'is_clear', lambda self, displacements, time: True)
    patch.setattr(CollisionLimit, 'rows', lambda self, v: (np.empty((0, len(v))), np.empty(0)))


def ignore_clearance(patch):
    """Let parts overlap by 2 cm."""
    find = CollisionLimit.prepare

    def prepare(self, *arguments):
        self._clearances = np.full_like(self._clearances, -0.02)
        find(self, *arguments)

    patch.setattr(CollisionLimit, 'prepare', prepare)


def ignore_a_pair(patch):
    """Let the hand touch the forearm."""
    find = collision_trials.load_robot

    def load(name):
        robot = find(name)
        ignored = (('forearm_link', 'wrist_2_link'), ('forearm_link', 'wrist_3_link'))
        collision = dataclasses.replace(robot.collision, ignore=ignored)
        return dataclasses.replace(robot, collision=collision)

    patch.setattr(collision_trials, 'load_robot', load)


@pytest.mark.parametrize('defect', [ignore_clearance, ignore_a_pair])
def test_adversarial_motions_find_what_the_filter_ignores(defect, policy, monkeypatch):
    defect(monkeypatch)
    one = run_scene(trial(policy, kind='adversarial', motions=6))
    assert max(outcome.depth for outcome in one.outcomes) > DEEP


def test_an_arm_that_waits_without_a_status_is_unnamed(policy, monkeypatch):
    monkeypatch.setattr(GoalController, 'ask', lambda self, now: None)
    [stuck] = run_scene(trial(policy, motions=1)).outcomes
    assert (stuck.result, stuck.reason) == ('stuck', 'no_progress')
    monkeypatch.setattr(SafetyMonitor, 'approach', lambda self, *arguments: None)
    [unnamed] = run_scene(trial(policy, motions=1)).outcomes
    assert unnamed.result == 'unnamed'


def test_a_goal_where_the_arm_is_is_reached(policy):
    robot = load_robot('ur5e')
    world = collision_trials.World(robot, 'joint_position', True)
    interface = make('fetch_reach').interface
    space = place_workspace(interface, robot)
    goals = np.clip(world.tool_position(), space.low, space.high)[None]
    [one] = collision_trials._go(world, robot, interface, None, goals, 'joint_position')
    assert one.result == 'reached'


@pytest.mark.parametrize('name', ['fetch', 'ur5e'])
@pytest.mark.parametrize('is_crowded', [False, True])
def test_random_scenes_leave_the_arm_free_at_home(name, is_crowded):
    robot, random = load_robot(name), np.random.default_rng(0)
    space = place_workspace(make('fetch_reach').interface, robot)
    for _ in range(1 if is_crowded else 4):
        scene = random_scene(robot, space, random, is_crowded)
        assert len(scene.scene) >= (CROWD if is_crowded else OBSTACLES)
        assert DynamicArm(scene, 'joint_position').data.ncon == 0


def test_mink_reaches_goals_that_nothing_blocks():
    robot = load_robot('ur5e')
    world = collision_trials.World(robot, 'joint_position', False)
    interface = make('fetch_reach').interface
    space = place_workspace(interface, robot)
    goals = np.random.default_rng(0).uniform(space.low, space.high, (3, 3))
    found = list(collision_trials._go_with_mink(world, robot, interface, goals))
    assert [one.result for one in found] == ['reached'] * 3


def test_an_interrupt_gives_what_was_measured_so_far(policy, tmp_path):
    command = [sys.executable, '-m', 'mher_ros', 'bench', 'collisions', '--json', '--alone']
    command += ['--goals', '1000', '--robot', 'ur5e', '--policy', policy, '--out', str(tmp_path)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A process in the background may ignore it, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            for line in process.stderr:
                if ' motions, ' in line and not line.startswith('0 '):
                    break
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            told, errors = process.communicate()
        finally:
            process.kill()
    assert process.returncode == INTERRUPTED, errors
    assert 'Traceback' not in errors
    values = json.loads(told)
    assert values['interrupted']
    assert 0 < values['motions'] < 5000
    assert (tmp_path / 'collisions.partial.json').exists()
