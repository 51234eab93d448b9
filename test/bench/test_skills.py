"""The benchmark of skills: its scenes, its motions and the command."""

import dataclasses
import json

from mher_ros.bench.skill_scenes import draw_goals, is_blocked, scene_file, SCENES, TASK
from mher_ros.bench.skill_trials import Motion, move_all, summary
from mher_ros.cli import main
from mher_ros.control.reachability import Reachability
from mher_ros.learning.config import make_config
from mher_ros.robots.robot import load_robot
from mher_ros.tasks import make
import numpy as np
import pytest


def task_of(robot_file):
    return make(TASK, make_config(TASK, changes={'task.robot': str(robot_file)}).task)


@pytest.fixture(scope='module')
def panda_wall(tmp_path_factory):
    return scene_file('panda', 'wall', tmp_path_factory.mktemp('robots'))


@pytest.mark.parametrize('robot', ['fetch', 'ur5e', 'panda'])
@pytest.mark.parametrize('scene', SCENES)
def test_every_scene_has_goals_behind_its_obstacles_and_an_arm_that_starts_free(
    tmp_path, robot, scene
):
    task = task_of(scene_file(robot, scene, tmp_path))
    home, _ = task.joint_state()
    assert Reachability(task.arm).touching(home) is None
    behind, others = draw_goals(task, 1, 3, 1)
    assert (behind.shape, others.shape) == ((3, 3), (1, 3))
    tool = task.tool_pose()[0]
    assert all(is_blocked(task.arm, tool, goal) for goal in behind)
    assert not is_blocked(task.arm, tool, np.array([*tool[:2], tool[2] + 0.05]))


def test_a_scene_changes_only_workspace_and_obstacles_and_can_be_moved(panda_wall, tmp_path):
    plain, walled = load_robot('panda'), load_robot(panda_wall)
    moved = load_robot(scene_file('panda', 'wall', tmp_path, shift=0.03))
    assert (walled.name, moved.name) == ('panda-wall', 'panda-wall+30mm')
    changed = {
        field.name
        for field in dataclasses.fields(plain)
        if getattr(plain, field.name) != getattr(walled, field.name)
    }
    assert changed == {'name', 'folder', 'workspace', 'box', 'scene'}
    away = np.subtract(moved.scene[0].position, walled.scene[0].position)
    np.testing.assert_allclose(away, [0.03, 0.0, 0.0], atol=1e-9)
    assert walled.scene[0].size == moved.scene[0].size == (0.03, 0.4, 0.26)


def test_the_robot_file_with_a_wall_is_that_of_the_scene(tmp_path):
    scene = load_robot(scene_file('fetch', 'wall', tmp_path))
    shipped = load_robot('fetch_wall')
    of_the_file = {'name': '', 'folder': tmp_path, 'description': ''}
    assert dataclasses.replace(scene, **of_the_file) == dataclasses.replace(shipped, **of_the_file)


def test_goals_are_the_same_for_the_same_seed(panda_wall):
    task = task_of(panda_wall)
    once, again, other = (draw_goals(task, seed, 2, 2) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


def test_a_straight_line_gets_to_goals_in_front_of_a_wall_and_touches_nothing(panda_wall):
    task = task_of(panda_wall)
    tool = task.tool_pose()[0]
    in_front, behind = tool + [0.0, 0.08, 0.0], tool + [0.22, 0.0, -0.06]
    reached, missed = move_all(panda_wall, task.interface, [in_front, behind])
    assert reached.reached and reached.error < 0.001 and reached.at_goal < 0.001
    assert reached.reason == '' and 0.0 < reached.seconds < 5.0
    assert not missed.reached and missed.reason == 'blocked'
    assert (reached.contacts, missed.contacts) == (0, 0)


def test_randomised_plants_follow_from_their_seeds():
    task = task_of('ur5e')
    goal = task.tool_pose()[0] + [0.0, 0.05, 0.0]
    found = move_all('ur5e', task.interface, [goal] * 3, None, 1.0, [1, 2, 1])
    assert found[0]._replace(seconds=0.0) == found[2]._replace(seconds=0.0)
    assert found[0].error != found[1].error
    assert all(one.reached for one in found)


def test_figures_count_what_was_reached_and_the_motions_at_these_goals():
    good = Motion(True, '', 0.001, 0.002, 1.5, 0, 0.0)
    bad = Motion(False, 'blocked', 0.1, 0.9, 4.0, 2, 0.003)
    found = summary([good, good._replace(error=0.003), bad])
    assert (found['goals'], found['reached'], found['contacts']) == (3, 2, 2)
    assert found['share'] == pytest.approx(2 / 3)
    assert found['median_error_mm'] == pytest.approx(3.0)
    assert found['worst_motion_at_goal_mm'] == pytest.approx(2.0)
    assert (found['deepest_mm'], found['dropped']) == (pytest.approx(3.0), {'blocked': 1})
    json.dumps([summary([]), summary([bad])], allow_nan=False)


def test_unknown_parts_and_one_policy_for_several_are_refused(tmp_path, capsys):
    command = ['bench', 'skills', '--out', str(tmp_path)]
    assert main([*command, '--parts', 'wall,flying']) == 2
    assert "'flying'" in capsys.readouterr().err
    assert main([*command, '--parts', 'wall,box', '--policy', 'policy.onnx']) == 2
    assert 'one part' in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_trains_a_policy_once_and_keeps_it_and_its_motions(tmp_path, capsys):
    command = ['bench', 'skills', '--robot', 'ur5e', '--parts', 'rest', '--goals', '2']
    command += ['--steps', '80', '--set', 'schedule.evaluation_goals=1', '--out', str(tmp_path)]
    assert main([*command, '--json']) == 0
    first = capsys.readouterr()
    values = json.loads(first.out)
    assert values['rest']['straight_line']['reached'] == 2
    assert values['rest']['straight_line']['median_error_mm'] < 1.0
    assert values['rest']['policy without the straight finish']['goals'] == 2
    assert 'training' in first.err
    assert main([*command, '--json']) == 0
    again = capsys.readouterr()
    assert json.loads(again.out)['rest'] == values['rest']
    assert 'training' not in again.err and 'earlier call' in again.err
