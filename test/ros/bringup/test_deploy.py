"""Policies deployed: the descriptions, and the real nodes, which take goals as RViz sends them."""

from pathlib import Path
import signal
import subprocess
import sys

import mher_ros
from mher_ros.options import OptionError, override
from mher_ros.robots.robot import robot_names
from mher_ros.ros.bringup.bringups import make_bringup
from mher_ros.ros.bringup.node_spec import Role
from mher_ros.ros.bringup.processes import run_bringup
import numpy as np
from proportional_policy import write_proportional_policy
import pytest
import yaml

ROOT = Path(mher_ros.__file__).parent.parent
ROBOTS = ROOT / 'config' / 'robots'
NAMES = ', '.join(robot_names())
LAYOUT = ROOT / 'config' / 'rviz' / 'deploy.rviz'
NEAR = 0.02
"""Distance from the goal at which the tool has come to it [m]."""
PATIENT = 'set:=safety.state_timeout=2 safety.resume_within=20'
"""For a machine that may be busy with other tests."""


@pytest.fixture
def nodes():
    """Return a function that gives the nodes of a system by name."""

    def find(system, **values):
        return {node.name: node for node in make_bringup(system, values).nodes()}

    return find


# The descriptions


def test_a_simulated_arm_is_one_that_cannot_wait_and_ends_with_the_policy(nodes):
    found = nodes(
        'deploy_sim',
        robot='panda',
        policy='runs/a',
        speed='0.1',
        planning_scene='scene',
        randomise='1.0',
        plant_seed='7',
    )
    assert {name: node.role for name, node in found.items()} == {
        'sim_node': Role.NEEDED,
        'policy_node': Role.MAIN,
    }
    assert found['sim_node'].parameters == {
        'robot': 'panda',
        'output': 'robot',
        'stepping': 'realtime',
        'planning_scene': 'scene',
        'randomise': 1.0,
        'seed': 7,
    }
    assert found['policy_node'].parameters == {
        'robot': 'panda',
        'policy': 'runs/a',
        'controller': 'policy',
        'output': 'robot',
        'outside': 'reject',
        'speed': 0.1,
        'planning_scene': 'scene',
    }


def test_for_a_real_arm_nothing_but_the_policy_is_started(nodes):
    found = nodes('deploy', robot='ur5e', output='twist', outside='project', autostart='false')
    assert {name: node.role for name, node in found.items()} == {'policy_node': Role.MAIN}
    assert found['policy_node'].parameters == {
        'robot': 'ur5e',
        'policy': '',
        'controller': 'policy',
        'output': 'twist',
        'outside': 'project',
        'speed': 0.0,
        'planning_scene': '',
        'autostart': False,
    }


def test_other_parameters_are_handed_on(nodes):
    found = nodes('deploy_sim', set='safety.max_following_error=0.1  command_rate=50')
    parameters = found['policy_node'].parameters
    assert (parameters['safety.max_following_error'], parameters['command_rate']) == (0.1, 50.0)
    found = nodes('deploy_sim', set='use_sim_time=true')
    assert found['policy_node'].parameters['use_sim_time'] is True


@pytest.mark.parametrize('system', ['deploy', 'deploy_sim', 'train_sim'])
def test_every_node_is_in_the_namespace_and_on_the_clock_that_is_asked_for(nodes, system):
    robot = {'robot': 'ur5e'} if system == 'deploy' else {}
    windows = {'view': True}
    assert all(
        (node.namespace, node.parameters.get('use_sim_time')) == ('', None)
        for node in nodes(system, **robot, **windows).values()
    )
    found = nodes(system, namespace='left/arm', use_sim_time='true', **robot, **windows)
    assert len(found) >= 2
    for node in found.values():
        assert (node.namespace, node.parameters['use_sim_time']) == ('left/arm', True)


def test_goals_can_come_on_another_topic_than_that_of_nav2(nodes):
    found = nodes('deploy_sim', goal_topic='arm_goal', view=True, rviz=True)
    changed = {name: ('goal_pose', 'arm_goal') in node.remappings for name, node in found.items()}
    assert changed == {'sim_node': False, 'policy_node': True, 'rviz': True, 'view_node': True}
    assert 'goal_pose' not in dict(nodes('deploy_sim')['policy_node'].remappings)


def test_a_simulation_has_a_clock_and_frames_of_its_own_and_a_real_arm_those_of_ros(nodes):
    own = {'/clock': 'clock', '/tf': 'tf', '/tf_static': 'tf_static'}
    for system in ('deploy_sim', 'train_sim'):
        for node in nodes(system, namespace='left', view=True, rviz=True).values():
            assert dict(node.remappings) == own
    for node in nodes('deploy', robot='ur5e', namespace='left', view=True, rviz=True).values():
        assert node.remappings == ()


@pytest.mark.parametrize('path', sorted(ROBOTS.glob('*.yaml')), ids=lambda path: path.stem)
@pytest.mark.parametrize('system', ['deploy', 'deploy_sim'])
def test_rviz_opens_in_the_base_frame_of_the_arm(nodes, system, path):
    rviz = nodes(system, robot=path.stem, rviz='true')['rviz']
    assert (rviz.package, rviz.executable, rviz.role) == ('rviz2', 'rviz2', Role.OPTIONAL)
    frame = yaml.safe_load(path.read_text())['base_frame']
    assert rviz.arguments == ('-d', str(LAYOUT), '-f', frame)


@pytest.mark.parametrize('system', ['deploy', 'deploy_sim'])
def test_a_page_listens_to_the_arm_that_is_led(nodes, system):
    assert 'view_node' not in nodes(system, robot='panda')
    found = nodes(system, robot='panda', view='true', view_port='0', rviz='true')
    assert list(found)[-2:] == ['rviz', 'view_node']
    assert found['view_node'].role is Role.OPTIONAL
    assert found['view_node'].parameters == {'port': 0, 'robot': 'panda'}


def test_the_base_frame_is_found_where_there_is_ros_but_not_what_nodes_need():
    code = (
        'import sys\n'
        "for name in ('numpy', 'mujoco', 'onnxruntime', 'torch'): sys.modules[name] = None\n"
        'from mher_ros.ros.bringup.bringups import make_bringup\n'
        "nodes = make_bringup('deploy', {'robot': 'panda', 'rviz': True}).nodes()\n"
        'print(nodes[-1].arguments[-1])\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout == 'panda_link0\n', done.stderr


def test_rviz_keeps_the_frame_of_its_layout_where_only_the_model_knows_the_base(nodes, tmp_path):
    content = yaml.safe_load((ROBOTS / 'panda.yaml').read_text())
    del content['base_frame']
    path = tmp_path / 'arm.yaml'
    path.write_text(yaml.safe_dump(content))
    rviz = nodes('deploy', robot=str(path), rviz='true')['rviz']
    assert rviz.arguments == ('-d', str(LAYOUT))


@pytest.mark.parametrize(
    ('system', 'values', 'sentence'),
    [
        (
            'deploy',
            {},
            f'name the real arm (robot:=...): one of {NAMES}, or the path of a YAML file',
        ),
        (
            'deploy_sim',
            {'output': 'torque'},
            'output takes one of robot, twist, pose, joint_trajectory, joint_position, '
            "joint_velocity, none; got 'torque'",
        ),
        ('deploy_sim', {'namespace': 'a b'}, "namespace takes a name such as left/arm, got 'a b'"),
        ('deploy_sim', {'goal_topic': ''}, "goal_topic takes a name such as left/arm, got ''"),
        ('deploy_sim', {'speed': '3'}, 'speed must be at least 0.0 and at most 2.0, got 3.0'),
        (
            'deploy_sim',
            {'set': 'max_following_error'},
            "set takes key=value, got 'max_following_error'",
        ),
        (
            'deploy_sim',
            {'set': 'max_following_error=far'},
            "max_following_error takes a number, true or false, got 'far'",
        ),
        ('deploy_sim', {'set': 'speed=0.1'}, 'speed is a separate argument: speed:=0.1'),
        (
            'deploy_sim',
            {'robot': 'r2d2', 'rviz': True},
            f"robot takes one of {NAMES}, or a path that ends in .yaml; got 'r2d2'",
        ),
    ],
)
def test_values_that_make_no_sense_are_refused_before_anything_starts(system, values, sentence):
    with pytest.raises(OptionError) as caught:
        run_bringup(system, values)
    assert str(caught.value) == sentence


@pytest.mark.ros
def test_what_a_system_gives_to_its_nodes_are_their_parameters():
    from mher_ros.ros.deploy.deployment import PolicyOptions
    from mher_ros.ros.sim.sim_node import SimOptions
    from mher_ros.ros.train.train_node import TrainOptions
    from mher_ros.ros.web.view_node import ViewOptions

    known = {'policy_node': PolicyOptions, 'train_node': TrainOptions, 'view_node': ViewOptions}
    for name in ('train_sim', 'deploy_sim'):
        for node in make_bringup(name, {'view': True}).nodes():
            override(known.get(node.name, SimOptions)(), node.parameters)


# The real nodes


class Rviz:
    """What RViz does when a person sets goals, and where the simulator says that the tool is."""

    def __init__(self, peer, frame='world'):
        from geometry_msgs.msg import PointStamped, PoseStamped
        from rclpy.qos import QoSProfile
        from visualization_msgs.msg import InteractiveMarkerFeedback

        self._frame = frame
        self._points = peer.talk(PointStamped, 'clicked_point', QoSProfile(depth=5))
        self._poses = peer.talk(PoseStamped, 'goal_pose', QoSProfile(depth=5))
        self._mouse = peer.talk(
            InteractiveMarkerFeedback, 'goal_marker/feedback', QoSProfile(depth=100)
        )
        self._tool = peer.listen(PoseStamped, 'tool_pose')
        self._now = lambda: peer.node.get_clock().now().to_msg()

    def publish_point(self, *point):
        message = self._points.msg_type()
        message.header.frame_id, message.header.stamp = self._frame, self._now()
        message.point.x, message.point.y, message.point.z = point
        self._points.publish(message)

    def goal_pose_2d(self, x, y):
        message = self._poses.msg_type()
        message.header.frame_id, message.header.stamp = self._frame, self._now()
        message.pose.position.x, message.pose.position.y = x, y
        message.pose.orientation.z, message.pose.orientation.w = 0.6, 0.8
        self._poses.publish(message)

    def drag_marker(self, *point):
        for event in ('MOUSE_DOWN', 'POSE_UPDATE', 'MOUSE_UP'):
            message = self._mouse.msg_type()
            message.header.frame_id = self._frame
            message.client_id, message.marker_name = 'rviz', 'goal'
            message.control_name = 'move'
            message.event_type = getattr(self._mouse.msg_type, event)
            place = message.pose.position
            place.x, place.y, place.z = point
            if event == 'MOUSE_DOWN':
                place.x += 0.1  # where it was
            self._mouse.publish(message)

    def wait_until_near(self, *point):
        def is_near(message):
            place = message.pose.position
            return np.linalg.norm(np.array([place.x, place.y, place.z]) - point) < NEAR

        self._tool.wait_for(is_near)


@pytest.mark.ros
@pytest.mark.slow
def test_a_simulated_arm_goes_where_rviz_sends_it(up, world, policy, mark):
    run = up('deploy_sim', f'policy:={policy}', PATIENT)
    run.wait_for(r'\[policy_node\] active: waiting for goals')
    rviz = Rviz(world.peer())
    rviz.publish_point(1.25, 0.65, 0.6)
    rviz.wait_until_near(1.25, 0.65, 0.6)
    rviz.goal_pose_2d(1.42, 0.85)
    rviz.wait_until_near(1.42, 0.85, 0.6)
    rviz.drag_marker(1.3, 0.75, 0.5)
    rviz.wait_until_near(1.3, 0.75, 0.5)
    rviz.publish_point(1.45, 0.65, 0.65)
    run.wait_for(r'goal from clicked_point: \(1.450, 0.650, 0.650\) m')
    run.signal(signal.SIGINT)  # on its way
    assert run.end() == 0
    mark.wait_until_none_is_left()


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize(
    ('robot', 'output', 'goal'),
    [
        ('ur5e', 'twist', '0.5 0.2 0.4'),
        ('panda', 'pose', '0.5 0.1 0.45'),
        ('ur5e', 'joint_velocity', '0.5 0.2 0.4'),
    ],
)
def test_an_arm_with_a_urdf_goes_to_a_goal_with_any_output(
    up, world, policy, mark, robot, output, goal
):
    patient = f'{PATIENT} safety.follow_timeout=5'
    run = up('deploy_sim', f'robot:={robot}', f'output:={output}', f'policy:={policy}', patient)
    run.wait_for('active: waiting for goals')
    sent = world.start(sys.executable, '-m', 'mher_ros', 'goal', *goal.split(), '--wait', '50')
    sent.wait_for('^reached, ')
    assert sent.end() == 0
    run.signal(signal.SIGINT)
    assert run.end() == 0
    mark.wait_until_none_is_left()


@pytest.mark.ros
@pytest.mark.slow
def test_a_dry_run_shows_the_motion_and_commands_nothing(up, world, policy, mark):
    from visualization_msgs.msg import Marker, MarkerArray

    world.node('sim_node', robot='fetch').wait_for('fetch: .* joints, commanded by')
    run = up('deploy', 'robot:=fetch', f'policy:={policy}', 'output:=none', PATIENT)
    run.wait_for('joint_states -> markers only')
    run.wait_for('active: waiting for goals')
    peer = world.peer()
    rviz = Rviz(peer)
    shown = peer.listen(MarkerArray, 'policy_node/markers')
    rviz.publish_point(1.25, 0.65, 0.6)
    run.wait_for('no commands are sent')
    shown.wait_for(
        lambda message: (
            ('motion', Marker.ADD) in [(part.ns, part.action) for part in message.markers]
        )
    )
    topic = '/joint_trajectory'
    peer.wait_until(lambda: peer.node.count_subscribers(topic) == 1, 'sim_node is discovered')
    assert peer.node.count_publishers(topic) == 0
    run.signal(signal.SIGINT)
    assert run.end() == 0
    mark.wait_until_none_is_left()


@pytest.mark.ros
def test_a_policy_that_does_not_fit_ends_all_in_a_sentence(up, tmp_path, mark):
    policy = write_proportional_policy(tmp_path / 'policy.onnx', 'point2d_large')
    run = up('deploy_sim', f'policy:={policy}')
    run.wait_for('a policy for point2d_large cannot move an arm: expected actions that mean')
    assert run.end() == 1
    assert sum('cannot move an arm' in line for line in run.lines) == 1
    mark.wait_until_none_is_left()


@pytest.mark.ros
def test_a_policy_that_is_not_to_start_by_itself_waits_to_be_told(up, mark):
    run = up('deploy', 'robot:=fetch', 'policy:=/nowhere', 'autostart:=false')
    run.wait_for(r'\[policy_node\] waiting to be configured and activated')
    run.signal(signal.SIGINT)
    assert run.end() == 0
    mark.wait_until_none_is_left()


@pytest.mark.ros
def test_where_there_is_no_policy_all_ends_in_a_sentence(up, tmp_path, mark):
    run = up('deploy_sim', folder=tmp_path)
    run.wait_for(f'no policy was given, and there is none below {tmp_path / "runs"}')
    assert run.end() == 1
    mark.wait_until_none_is_left()
