"""What is told of a robot file: of the arms that come along, and of two that do not."""

import dataclasses

from foreign_arms import UR10_HOME, write_arm
from mher_ros.robots.model_file import find_file
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import arm_names, load_robot, RobotError, Span
from mher_ros.simulation.robot_check import draw_check, RobotCheck
from mher_ros.tasks import make
from mher_ros.tasks.fetch_reach import FetchReachOptions
import numpy as np
import pytest


@pytest.fixture(scope='module')
def cube():
    """Return the interface of the policies that are deployed on any arm."""
    return make('fetch_reach', FetchReachOptions(reachable_goals=True)).interface


@pytest.mark.parametrize('name', arm_names())
def test_an_arm_that_comes_along_reaches_all_of_its_workspace(name, cube):
    robot = load_robot(name)
    task = robot.simulation_task
    check = RobotCheck(robot, make(task).interface if task == 'sawyer_reach' else cube)
    assert check.problems == ()
    assert check.proposal is None
    assert [place.name for place in check.places] == [
        'centre',
        *(f'corner {number}' for number in range(1, 9)),
    ]
    assert np.median([place.condition for place in check.places]) < 20.0
    for place in check.places:
        assert place.ik.reached
        assert place.margin >= 0.0
        assert place.condition >= 1.0
    assert check.simulated_outputs == tuple(name for name in OUTPUTS if name != 'none')
    text = '\n'.join(check.lines())
    assert all(joint in text for joint in robot.joints)
    assert 'are not avoided' not in text


@pytest.mark.parametrize('name', ['ur10', 'kinova'])
def test_a_file_without_home_and_workspace_gets_both_proposed_and_they_are_good(
    tmp_path, cube, name
):
    check = RobotCheck(load_robot(write_arm(tmp_path, name)), cube)
    assert any('home' in problem for problem in check.problems)
    assert any('workspace.origin' in problem for problem in check.problems)
    home, origin = check.proposal
    again = f'home: {home}\nworkspace: {{origin: {list(origin)}}}\n'
    better = RobotCheck(load_robot(write_arm(tmp_path, name, again)), cube)
    assert better.problems == ()
    assert all(place.ik.reached for place in better.places)
    assert better.workspace.low[2] > -0.2
    assert min(place.margin for place in better.places) >= 0.1


def test_a_workspace_out_of_reach_is_a_problem_and_a_good_home_is_kept(tmp_path, cube):
    far = write_arm(tmp_path, 'ur10', UR10_HOME + 'workspace: {origin: [1.6, 0.0, 0.3]}\n')
    check = RobotCheck(load_robot(far), cube)
    assert not check.places[0].ik.reached
    assert check.places[0].ik.error == pytest.approx(0.3, abs=0.15)
    assert check.proposal.home == pytest.approx(dict(load_robot(far).home))
    assert np.linalg.norm(check.proposal.origin) < 1.2
    assert any('does not reach centre' in problem for problem in check.problems)


@pytest.mark.parametrize(('wrist', 'word'), [(9.0, 'from -6.28319 to 6.28319'), (0.0, 'singular')])
def test_a_bad_home_is_a_problem(tmp_path, cube, wrist, word):
    stretched = f'home: {{shoulder_pan_joint: 0.0, shoulder_lift_joint: 0.0, elbow_joint: 0.0, \
wrist_1_joint: 0.0, wrist_2_joint: 0.0, wrist_3_joint: {wrist}}}\n'
    path = write_arm(tmp_path, 'ur10', stretched + 'workspace: {origin: [0.7, 0.0, 0.4]}\n')
    assert any(word in problem for problem in RobotCheck(load_robot(path), cube).problems)


def test_it_is_said_where_each_limit_comes_from(cube):
    robot = load_robot('ur5e')
    given = {'elbow_joint': Span(lower=-2.5, velocity=1.0)}
    check = RobotCheck(dataclasses.replace(robot, joint_limits=given, speed=0.1), cube)
    elbow, wrist = check.limits['elbow_joint'], check.limits['wrist_1_joint']
    assert elbow['lower'] == (-2.5, 'robot file')
    assert elbow['velocity'] == (1.0, 'robot file')
    assert elbow['upper'][1] == wrist['lower'][1] == wrist['velocity'][1] == 'model'
    text = '\n'.join(check.lines())
    assert 'speed 0.1 m/s (robot file)' in text
    assert 'acceleration 1 m/s^2 (default)' in text


def test_a_model_that_comes_over_a_topic_needs_a_file(tmp_path, cube):
    text = write_arm(tmp_path, 'ur10', UR10_HOME).read_text()
    line = next(line for line in text.splitlines() if line.startswith('model:'))
    path = tmp_path / 'topic.yaml'
    path.write_text(text.replace(line, 'model: robot_description'))
    with pytest.raises(RobotError, match='--urdf'):
        RobotCheck(load_robot(path), cube)
    check = RobotCheck(load_robot(path), cube, find_file(line.split()[1], tmp_path))
    assert check.simulated_outputs == ()
    assert check.proposal is not None  # of a workspace, which is missing


def test_arm_and_workspace_are_drawn(tmp_path, cube):
    draw_check(RobotCheck(load_robot('panda'), cube), tmp_path / 'panda.png')
    assert (tmp_path / 'panda.png').read_bytes().startswith(b'\x89PNG')


def scene_of_ur10(folder, scene):
    origin = 'workspace: {origin: [0.7, 0.16, 0.5]}\n'
    return load_robot(write_arm(folder, 'ur10', UR10_HOME + origin + scene))


def test_contacts_at_home_and_at_goals_are_found(tmp_path, cube):
    ball = 'scene: {ball: {shape: sphere, position: [0.85, 0.01, 0.632], radius: 0.03}}'
    check = RobotCheck(scene_of_ur10(tmp_path, ball), cube)
    assert list(check.refused) == ['corner 6'] and 'ball' in check.refused['corner 6']
    assert not check.problems
    floor = 'scene: {floor: {shape: plane, position: [0.0, 0.0, 0.9]}}'
    problems = RobotCheck(scene_of_ur10(tmp_path, floor), cube).problems
    assert any('at home' in problem and 'floor' in problem for problem in problems)


def test_a_wall_for_links_that_there_are_not_is_an_error(tmp_path, cube):
    wall = 'scene: {wall: {shape: plane, position: [0.0, -1.0, 0.0], links: [forearm]}}'
    with pytest.raises(RobotError, match='forearm_link'):
        RobotCheck(scene_of_ur10(tmp_path, wall), cube)
