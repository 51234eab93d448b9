"""One obstacle on the topic, in the safety filter of policy_node and in the plant of sim_node."""

from geometry_msgs.msg import PointStamped
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import Obstacle
from mher_ros.ros.common.status import DeploymentStatus, SimulationStatus
from obstacle_judge import ObstacleJudge
import pytest
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

CLEARANCE, RADIUS = 0.02, 0.05
START, GOAL = (0.45, -0.03, 0.35), (0.45, 0.22, 0.35)


def test_an_arm_stops_before_an_obstacle_that_the_simulation_has_too(world, policy, tmp_path):
    path = tmp_path / 'ur5e.yaml'
    robot = load_robot('ur5e')
    text = (robot.folder / 'ur5e.yaml').read_text()
    path.write_text(f'{text}\ncollision: {{clearance: {CLEARANCE}}}\n')
    world.sim_node(robot='ur5e', stepping='realtime')
    patient = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}
    patient |= {'safety.follow_timeout': 5.0, 'safety.progress_timeout': 5.0}
    node = world.node(
        'policy_node', robot=str(path), policy=str(policy), controller='straight_line', **patient
    )
    node.wait_for('active: waiting for goals')
    peer = world.peer()
    states = peer.listen(JointState, 'joint_states')
    statuses = peer.follow(DeploymentStatus, 'policy_node')
    simulated = peer.follow(SimulationStatus, 'sim_node')
    goals = peer.talk(PointStamped, 'clicked_point')
    obstacles = peer.node.create_publisher(MarkerArray, 'obstacles', 10)
    both = 2
    peer.wait_until(lambda: obstacles.get_subscription_count() == both, 'both nodes subscribe')
    statuses.wait_for(lambda status: status.state == 'no_goal', after=-2)

    def send(goal):
        message = PointStamped()
        message.header.frame_id = 'base_link'
        message.point.x, message.point.y, message.point.z = goal
        goals.publish(message)
        statuses.wait_for(lambda status: status.accepted_goal == goal)

    send(START)
    statuses.wait_for(lambda status: status.reached)
    send(GOAL)
    seen = len(states.messages)
    ball = Marker(ns='block', type=Marker.SPHERE)
    ball.header.frame_id = 'base_link'
    ball.pose.position.x, ball.pose.position.y, ball.pose.position.z = GOAL
    ball.scale.x = ball.scale.y = ball.scale.z = 2.0 * RADIUS
    obstacles.publish(MarkerArray(markers=[ball]))
    simulated.wait_for(lambda status: status.obstacles == 1, after=-2)
    dropped = statuses.wait_for(lambda status: status.last_drop)
    assert dropped.obstacles == 1
    assert dropped.last_drop in ('blocked', 'no_progress')
    assert 'block/0' in dropped.reason
    judge = ObstacleJudge(robot, Obstacle('ball', 'sphere', GOAL, size=(RADIUS, 0.0, 0.0)))
    distances = [judge.distance(state) for state in states.messages[seen::5]]
    assert CLEARANCE - 2e-3 < min(distances) < 3.0 * CLEARANCE
    assert simulated.wait_for().contacts == 0
    ball.action = Marker.DELETE
    obstacles.publish(MarkerArray(markers=[ball]))
    statuses.wait_for(lambda status: status.obstacles == 0, after=-2)
    send(GOAL)
    statuses.wait_for(lambda status: status.reached)
    assert judge.distance(states.wait_for()) < 0.0  # there was something to avoid
