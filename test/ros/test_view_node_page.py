"""The page of view_node over real DDS, as a browser that draws nothing knows it."""

import contextlib

from fake_arm import FakeArm, vector
from geometry_msgs.msg import PoseStamped
from mher_ros.ros.drawn_markers import extent_of
from mher_ros.ros.inbox import SPEAKING
from mher_ros.ros.markers import deployment_markers
import numpy as np
import pytest
from std_msgs.msg import Bool
from viewed import Viewed
from visualization_msgs.msg import MarkerArray

pytestmark = pytest.mark.ros


def drag(reader, place):
    reader.start()
    reader.move(place)
    reader.end()


def offers_goals(reader):
    return reader.handle['visible'] and 'Random goal' in reader.buttons


def test_goals_are_offered_and_sent_only_while_policy_node_is_active(world, deploy):
    deployed = deploy('joint_trajectory')
    deployed.wait_until_active()
    array = deployed.peer.listen(MarkerArray, 'policy_node/markers').wait_for()
    low, high = extent_of(array, 'workspace')
    place = (low + 3.0 * high) / 4.0
    with Viewed(world).reader() as reader:
        goals = deployed.peer.listen(PoseStamped, 'goal_pose')
        reader.wait_for(lambda: offers_goals(reader), what='goals')
        assert deployed.change('deactivate')
        reader.wait_for(
            lambda: not reader.handle['visible'] and 'Random goal' not in reader.buttons,
            what='the handle to go',
        )
        drag(reader, place.tolist())
        reader.press('Random goal')
        reader.press('Resume')  # whose answer shows that the others were dealt with
        reader.wait_for_note('Resume')
        assert not goals.messages
        assert deployed.change('activate')
        reader.wait_for(lambda: offers_goals(reader), what='goals again')
        drag(reader, place.tolist())
        np.testing.assert_allclose(vector(goals.wait_for(after=0).pose.position), place)
        assert len(goals.messages) == 1
        reader.wait_for_line('Distance', 'mm')
        deployed.node.kill()
        reader.wait_for_line('Policy', 'no policy_node and no train_node is running')
        reader.wait_for(lambda: not reader.handle['visible'], what='the handle to go')
        assert 'Distance' not in reader.lines


def test_resume_is_there_to_be_pressed_once_the_arm_is_stopped(world, deploy):
    deploy('joint_trajectory').wait_until_active()
    with Viewed(world).reader() as reader:
        reader.wait_for(lambda: reader.buttons.get('Resume') is False, what='nothing to resume')
        reader.press('Stop the arm')
        reader.wait_for_note('Stop the arm', 'stopped until Resume is pressed')
        reader.wait_for_line('Policy', 'stopped; press Resume')
        assert reader.buttons['Resume']
        reader.press('Resume')
        reader.wait_for_note('Resume', 'the stop is cleared')
        reader.wait_for(lambda: not reader.buttons['Resume'], what='nothing to resume')


class Leader:
    """What policy_node tells while it is active, in a frame of the test's choice."""

    def __init__(self, peer, frame, workspace):
        node = peer.node
        self._array = deployment_markers(
            frame, 0.02, workspace, workspace, goal=None, reached=False, tool=None, velocity=None
        )
        self._markers = node.create_publisher(MarkerArray, 'policy_node/markers', SPEAKING)
        self._reached = node.create_publisher(Bool, 'policy_node/reached', SPEAKING)
        node.create_timer(0.1, self._tell)

    def _tell(self):
        self._markers.publish(self._array)
        self._reached.publish(Bool(data=False))


def test_goals_are_in_the_frame_of_the_policy_wherever_the_arm_has_its_root(world):
    peer, frame = world.peer(), 'base_link'
    with contextlib.closing(FakeArm(peer, 'joint_position')), Viewed(world).reader() as reader:
        reader.wait_for_line('Arm', 'as joint_states tells')
        Leader(peer, frame, ((0.3, -0.2, -0.1), (0.5, 0.2, 0.3)))
        reader.wait_for(lambda: reader.handle['visible'], what='the handle')
        np.testing.assert_allclose(reader.handle['position'], (0.4, 0.0, 0.1))
        goals = peer.listen(PoseStamped, 'goal_pose')
        drag(reader, (0.45, 0.1, 0.2))
        goal = goals.wait_for(after=0)
        assert goal.header.frame_id == frame
        np.testing.assert_allclose(vector(goal.pose.position), (0.45, 0.1, 0.2))


def test_a_simulation_is_put_back_at_its_start_and_that_is_said(world):
    with Viewed(world).reader() as reader:
        world.node('sim_node', robot='fetch')
        reader.wait_for(lambda: 'Reset simulation' in reader.buttons, what='the button')
        reader.press('Reset simulation')
        reader.wait_for_note('Reset simulation', '^the arm is back at its start$')


def test_a_run_that_learns_shows_its_curves_its_figures_and_its_virtual_goals(world, tmp_path):
    with Viewed(world).reader() as reader:
        world.sim_node()
        world.train_node(tmp_path / 'run', changes={'schedule.steps': '2000'})
        reader.wait_for_line('Epoch', '[1-9]')
        reader.wait_for_line('Left', '^at most .* s$')
        reader.wait_for_line('Success', '% of the test goals')
        reader.wait_for(lambda: len(reader.curves) == 2, what='both curves')
        assert {title.partition(' [')[0] for title in reader.curves} == {
            'goals reached',
            'final error',
        }
        reader.wait_for(lambda: min(reader.curves.values()) >= 4, what='longer curves')
        cloud = reader.wait_for(lambda: reader.drawings.get('train_virtual_goals_0'), what='it')
        assert cloud['type'] == 'PointCloudMessage' and cloud['points']['size'] > 10 * 3 * 4
        assert not reader.buttons.keys() & {'Stop the arm', 'Reset simulation'}
        reader.press('Save checkpoint')
        reader.wait_for_note('Save checkpoint', 'a checkpoint will be in')
        reader.press('Save and stop training')
        reader.wait_for(lambda: 'Save checkpoint' not in reader.buttons, what='the run to end')
        assert len(reader.curves) == 2  # those of the last run stay


def test_a_page_for_the_network_takes_a_token_and_warns(world):
    refused = world.node('view_node', host='0.0.0.0', port=0)
    refused.wait_for('view_node: host 0.0.0.0 shows the page to the network')
    assert refused.end() == 2
    opened = world.node('view_node', host='0.0.0.0', port=0, token='a-long-secret')
    opened.wait_for('the page is open to the network on 0.0.0.0: anyone .* can move the arm')
    assert opened.stop() == 0
