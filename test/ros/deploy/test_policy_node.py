"""A policy as a managed node: it starts, moves an arm in each way that arms take, and ends."""

import json
import signal
import subprocess
import sys

from deployed_policy import DeployedPolicy, stops
from fake_arm import MESSAGES, vector
from foreign_arms import write_arm
from mher_ros.files import share_folder
from mher_ros.policy.onnx_policy import BLANK, seal
from mher_ros.simulation.reach_options import ReachOptions
import numpy as np
from proportional_policy import write_proportional_policy
import pytest
from rclpy.time import Time
from visualization_msgs.msg import MarkerArray

pytestmark = pytest.mark.ros

SECOND = 1_000_000_000


def check_pose(message, deployed):
    assert message.header.frame_id == 'world'
    turn = message.pose.orientation
    assert np.linalg.norm((turn.w, turn.x, turn.y, turn.z)) == pytest.approx(1.0)
    assert np.linalg.norm(vector(message.pose.position) - deployed.arm.tool) < 0.1
    age = deployed.peer.node.get_clock().now() - Time.from_msg(message.header.stamp)
    assert 0 <= age.nanoseconds < 10 * SECOND


def check_trajectory(message, deployed):
    assert tuple(message.joint_names) == deployed.arm.robot.joints
    assert Time.from_msg(message.header.stamp).nanoseconds == 0  # at once
    (point,) = message.points
    # One tick, or as long as the last command has lasted.
    assert point.time_from_start.sec == 0
    assert 10_000_000 <= point.time_from_start.nanosec <= 100_000_000
    np.testing.assert_allclose(point.positions, deployed.arm.positions, atol=0.2)


def check_positions(message, deployed):
    np.testing.assert_allclose(message.data, deployed.arm.positions, atol=0.2)


def check_velocities(message, deployed):
    assert len(message.data) == 7
    assert 0.0 < np.abs(message.data).max() < 1.0


CHECKS = {
    'pose': check_pose,
    'joint_trajectory': check_trajectory,
    'joint_position': check_positions,
    'joint_velocity': check_velocities,
}


@pytest.mark.parametrize('output', CHECKS)
def test_an_arm_is_told_what_its_controller_takes(deploy, output):
    deployed = deploy(output)
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()
    message = deployed.commands.messages[-1]
    assert type(message) is MESSAGES[output]
    CHECKS[output](message, deployed)
    deployed.wait_until_reached()


@pytest.mark.parametrize(
    ('action', 'output'),
    [('joint', 'joint_trajectory'), ('joint', 'none'), ('tool', 'joint_trajectory')],
)
def test_a_policy_of_reach_moves_the_arm_that_it_was_trained_on(world, tmp_path, action, output):
    options = ReachOptions(50, 0.05, action=action)
    path = write_proportional_policy(tmp_path / 'reach.onnx', 'reach', options)
    deployed = DeployedPolicy(world, path, output)
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    start = deployed.arm.tool
    goal = deployed.go(start + (0.02, 0.08, 0.05))
    if output == 'none':
        deployed.wait_for_status(lambda status: status.moving)
        assert not deployed.commands.messages
    else:
        deployed.wait_until_reached()
        assert np.linalg.norm(deployed.arm.tool - goal) < 0.05
    deployed.close()


def test_a_namespace_moves_the_lot_and_joints_come_in_any_order(deploy):
    deployed = deploy('joint_trajectory', remap={'__ns': '/left'})
    names = deployed.arm.names
    order = [3, 0, 6, 2, 5, 1, 4]

    def shuffle(message):
        message.name = ['torso', *(names[i] for i in order), 'finger']
        message.position = [9.0, *(message.position[i] for i in order), float('nan')]
        message.velocity = [0.0, *(message.velocity[i] for i in order), 0.0]

    deployed.arm.spoil = shuffle
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()
    check_speed(deployed)
    deployed.wait_until_reached()
    topics = dict(deployed.peer.node.get_publisher_names_and_types_by_node('policy_node', '/left'))
    ours = [
        name for name in topics if name not in ('/rosout', '/parameter_events', '/diagnostics')
    ]
    assert '/left/joint_trajectory' in ours
    assert all(name.startswith('/left/') for name in ours)
    deployed.commands.messages.clear()
    deployed.move()
    deployed.node.signal(signal.SIGINT)
    assert deployed.node.end() == 0
    deployed.wait_for_stop()  # it may have come, and not have been read yet
    assert stops(deployed.commands.messages).count(True) == 1
    assert stops(deployed.commands.messages)[-1]


def check_speed(deployed):
    """Between two set-points some time apart the tool is to go no faster than the default cap."""
    deployed.wait_until_reached()
    arm = deployed.arm
    places = np.array(
        [
            arm.model.tool(np.array(told.points[0].positions), np.zeros(7))[0]
            for told in arm.commands.messages
        ]
    )
    times = arm.commands.sent[-len(places) :]
    for window in (20, 50):
        ways = np.linalg.norm(places[window:] - places[:-window], axis=1)
        # The sender may be held up between making a command and sending it.
        spans = np.array(times[window:]) - times[:-window]
        assert (ways <= 0.25 * (spans + 0.05)).all()


def test_a_managed_node_does_as_it_is_told(deploy):
    deployed = deploy(autostart=False)
    deployed.node.wait_for('waiting to be configured and activated')
    assert deployed.state() == 'unconfigured'
    assert not deployed.change('activate')
    assert deployed.change('configure')
    assert not deployed.change('configure')
    assert deployed.state() == 'inactive'
    deployed.meet()
    deployed.wait_for_status(lambda status: status.state == 'inactive')
    assert deployed.send(deployed.far_goal()).answer == 'not_active'
    assert deployed.change('activate')
    deployed.arm.wait_for_states(10)
    deployed.move()

    deployed.commands.messages.clear()
    assert deployed.change('deactivate')
    deployed.wait_for_stop()
    deployed.arm.wait_for_states(30)
    assert stops(deployed.commands.messages).count(True) == 1
    assert stops(deployed.commands.messages)[-1]

    deployed.commands.messages.clear()
    assert deployed.change('activate')
    deployed.wait_for_heartbeats()
    assert not deployed.commands.messages  # the goal was dropped
    assert deployed.change('deactivate')
    assert deployed.change('cleanup')
    assert deployed.state() == 'unconfigured'
    deployed.peer.wait_until(lambda: not deployed.is_commanded(), 'nobody commands')
    assert deployed.change('configure')
    assert deployed.change('activate')
    deployed.peer.wait_until(deployed.is_commanded, 'somebody commands')
    deployed.arm.wait_for_states(10)
    deployed.move()
    deployed.commands.messages.clear()
    assert deployed.change('active_shutdown')
    assert deployed.node.end() == 0
    deployed.wait_for_stop()  # it may have come, and not have been read yet
    assert stops(deployed.commands.messages).count(True) == 1
    assert stops(deployed.commands.messages)[-1]


def test_a_node_that_is_activated_at_once_again_goes_on(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.is_silent = True  # so that the node is waiting for a state
    for _ in range(20):
        assert deployed.change('deactivate')
        assert deployed.change('activate')
    deployed.wait_for_heartbeats()


def test_a_killed_node_that_is_started_again_waits_for_a_goal(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()
    deployed.node.kill()
    deployed.commands.messages.clear()
    deployed.start()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(20)
    deployed.wait_for_heartbeats()
    assert not deployed.commands.messages
    deployed.move()
    deployed.node.signal(signal.SIGTERM)
    assert deployed.node.end() == 0
    deployed.wait_for_stop()  # it may have come, and not have been read yet
    assert stops(deployed.commands.messages).count(True) == 1
    assert stops(deployed.commands.messages)[-1]


def test_a_stop_that_comes_before_the_model_of_the_arm_counts(deploy):
    deployed = deploy(tells_model=False)
    deployed.node.wait_for('waiting for the model of the arm')
    deployed.trigger('stop')
    deployed.arm.tell_model()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.expect_no_goal_is_taken()
    deployed.trigger('clear')
    deployed.move()


def test_a_dry_run_moves_nothing_and_shows_how_it_would(deploy):
    deployed = deploy('none', outside='project')
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    markers = deployed.peer.listen(MarkerArray, 'policy_node/markers')
    assert deployed.go((1.3, 0.75, 2.0)) == pytest.approx((1.3, 0.75, 0.685), abs=0.05)
    markers.wait_for(lambda told: any(one.ns == 'motion' for one in told.markers))
    deployed.arm.wait_for_states(50)
    assert not deployed.commands.messages
    assert not deployed.is_commanded()
    status = deployed.wait_for_status(lambda told: told.goal)
    assert (status.output, status.speed_cap) == ('none', 0.25)
    figures = deployed.peer.figures('policy_node')
    assert figures['speed_cap'] == '0.25'
    assert figures['listeners'] == ''
    with open(f'/proc/{deployed.node.pid}/maps') as maps:
        assert 'torch' not in maps.read()


def test_what_cannot_be_deployed_ends_the_node_in_a_sentence(world, policy, tmp_path):
    damaged = tmp_path / 'damaged.onnx'
    content = bytearray(policy.read_bytes())
    content[200] ^= 1
    damaged.write_bytes(content)
    other = write_proportional_policy(tmp_path / 'other.onnx', 'point2d_large')
    far = write_arm(tmp_path, 'ur10', 'workspace: {origin: [1.6, 0.0, 0.3]}\n')
    # Sealed again with an operator that could loop for ever.
    endless = tmp_path / 'endless.onnx'
    content = policy.read_bytes().replace(b'Gemm', b'Loop')[:-64]
    endless.write_bytes(seal(content + BLANK.encode()))
    circle = tmp_path / 'circle.yaml'
    circle.write_text(
        '{model: circle.urdf, tool_frame: b, joints: [j], output: none, '
        'workspace: {origin: [0, 0, 0]}}'
    )
    links = ''.join(f'<link name="{name}"/>' for name in 'abc')
    joints = ''.join(
        f'<joint name="j" type="fixed"><parent link="{up}"/><child link="{down}"/></joint>'
        for up, down in ('bc', 'cb')
    )
    (tmp_path / 'circle.urdf').write_text(f'<robot name="r">{links}{joints}</robot>')
    moves_joints = write_proportional_policy(tmp_path / 'joints.onnx', 'reach')
    poses = write_proportional_policy(
        tmp_path / 'poses.onnx', 'reach', ReachOptions(50, 0.05, goal='pose')
    )
    cases = [
        ({'policy': str(poses)}, 1, 'cannot move an arm: expected goals without an orientation'),
        ({'policy': str(endless)}, 1, "endless.onnx: graph: .* got 'Loop'"),
        ({'policy': str(policy), 'robot': str(circle)}, 1, 'is below itself'),
        ({'policy': str(other)}, 1, 'a policy for point2d_large cannot move an arm: expected'),
        ({'policy': str(damaged)}, 1, 'damaged.onnx: '),
        ({'policy': str(policy), 'robot': 'sawyer'}, 1, 'robot sawyer: workspace.origin'),
        (
            {'policy': str(policy), 'robot': str(far)},
            1,
            r'centre, \(1\.600, 0\.000, 0\.300\)',
        ),
        ({'policy': str(moves_joints), 'robot': str(far)}, 1, 'was trained on fetch, with'),
        (
            {'policy': str(moves_joints), 'robot': 'fetch', 'output': 'twist'},
            1,
            'an output of joint_trajectory',
        ),
        ({'policy': str(policy), 'robot': 'r2d2'}, 2, "robot takes one of .* got 'r2d2'"),
        ({'policy': str(policy), 'output': 'steam'}, 2, 'output takes one of .* got .steam'),
    ]
    nodes = [world.node('policy_node', **parameters) for parameters, _, _ in cases]
    for node, (_, code, text) in zip(nodes, cases, strict=True):
        node.wait_for(f'policy_node: .*{text}')
        assert node.end() == code


def test_a_goal_that_the_arm_cannot_reach_is_refused_with_what_is_missing(deploy, tmp_path):
    # An arm that moves in a plane: what lies beside it is in the workspace all the same.
    rolls = ('shoulder_pan', 'upperarm_roll', 'forearm_roll', 'wrist_roll')
    limits = {f'{name}_joint': {'lower': -0.03, 'upper': 0.03} for name in rolls}
    text = (share_folder() / 'config' / 'robots' / 'fetch.yaml').read_text()
    robot = tmp_path / 'planar.yaml'
    robot.write_text(f'{text}joint_limits: {json.dumps(limits)}\n')
    deployed = deploy('joint_trajectory', robot=str(robot))
    deployed.node.wait_for(r'corners of the workspace.*cannot reach: \(1\.1.* m by 0\.')
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    x, y, z = deployed.arm.tool
    assert deployed.send((x, y + 0.12, z)).answer == 'out_of_reach'
    deployed.node.wait_for('refused a goal.*can reach.*error is 0.[01][0-9]* m')
    deployed.expect_silence()
    deployed.go((x + 0.08, y, z + 0.05))
    deployed.wait_until_reached()


def test_a_policy_is_deployed_without_torch():
    code = (
        'import sys, mher_ros.ros.deploy.policy_node, mher_ros.ros.deploy.deployment\n'
        "print([name for name in ('torch', 'mher_ros.learning') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout == '[]\n', done.stderr
