"""Goals as RViz's tools send them, over DDS from another process."""

import json
from pathlib import Path
import re
import signal
import sys
import time

from geometry_msgs.msg import PointStamped, PoseStamped
from mher_ros.ros.common.polled_topic import earliest_time
import pytest
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from visualization_msgs.msg import InteractiveMarkerUpdate

pytestmark = pytest.mark.ros

TAKER = Path(__file__).parent / 'goal_taker.py'
RVIZ = QoSProfile(
    depth=5,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)
NAN = float('nan')
UNKNOWN = -(2**63)  # as some middlewares say that a time is not known


class Person:
    """Somebody in front of RViz, and the node that takes the goals."""

    def __init__(self, world, *arguments):
        self.taker = world.start(sys.executable, TAKER, *arguments)
        self.taker.wait_for('^ready')
        self.peer = world.peer()
        self._poses = self.peer.talk(PoseStamped, 'goal_pose', RVIZ)
        self._points = self.peer.talk(PointStamped, 'clicked_point', RVIZ)
        self._updates = self.peer.listen(InteractiveMarkerUpdate, 'goal_marker/update')

    def tell(self, line):
        self.taker.tell(line)
        self.taker.wait_for(f'^did {line.split()[0]}')

    def set_2d_goal(self, x, y, frame='base', stamp=100, z=0.0, tilt=0.0):
        """Draw an arrow on the ground, as the tool 2D Goal Pose lets people do."""
        goal = PoseStamped()
        goal.header.frame_id, goal.header.stamp.sec = frame, stamp
        place, orientation = goal.pose.position, goal.pose.orientation
        place.x, place.y, place.z = x, y, z
        orientation.w, orientation.x, orientation.z = 0.8, tilt, 0.6
        self._poses.publish(goal)

    def click(self, x, y, z, frame='base', stamp=100):
        """Click on something, as the tool Publish Point lets people do."""
        point = PointStamped()
        point.header.frame_id, point.header.stamp.sec = frame, stamp
        point.point.x, point.point.y, point.point.z = x, y, z
        self._points.publish(point)

    def is_received(self):
        """Return whether what was clicked has come to the node, after a while."""
        return self._points.wait_for_all_acked(Duration(seconds=60))

    def goal(self):
        """Return the next goal (3,) and where it came from."""
        line = self.taker.wait_for('^took ')
        numbers, source = re.fullmatch(r'took \[(.*)\] from (.*)', line).groups()
        return [float(number) for number in numbers.split(',')], source

    def refusal(self):
        """Return the next sentence with which a goal is refused."""
        return self.taker.wait_for('refused a goal from')

    def answer(self):
        """Return the code of the next answer, and the goal's position and frame as received."""
        line = self.taker.wait_for('^answered: ')
        code, position, frame = json.loads(line.partition(': ')[2])
        return code, position, frame

    def marker(self, after, accept=lambda position: True):
        """Return where the marker moves to next, of those moves that are accepted."""
        found = []

        def take(update):
            found[:] = [[p.pose.position.x, p.pose.position.y, p.pose.position.z]
                        for p in update.poses]  # fmt: skip
            return bool(found) and accept(found[0])

        self._updates.wait_for(take, after=after)
        return found[0]

    def updates(self):
        return len(self._updates.messages)


@pytest.fixture(scope='module')
def person(shared_world):
    return Person(shared_world)


@pytest.fixture(scope='module')
def tf_person(shared_worlds):
    return Person(shared_worlds(), 'tf')


@pytest.mark.parametrize('frame', ['base', ''])
def test_a_clicked_point_is_a_goal_and_the_marker_goes_there(person, frame):
    heard = person.updates()
    person.click(0.25, 0.125, 0.5, frame)
    assert person.goal() == ([0.25, 0.125, 0.5], 'clicked_point')
    assert person.answer() == ('accepted', [0.25, 0.125, 0.5], frame)
    person.marker(heard, lambda position: position == [0.25, 0.125, 0.5])


def test_a_pose_is_a_goal_at_its_own_height(person):
    person.set_2d_goal(0.25, 0.125, z=0.75)
    assert person.goal() == ([0.25, 0.125, 0.75], 'goal_pose')


def test_a_2d_goal_keeps_the_height_of_the_tool_and_says_so(person):
    person.tell('tool 0.1 0.2 0.3125')
    person.set_2d_goal(0.75, -0.25)
    person.taker.wait_for('height 0 m.*the tool keeps its height of 0.31. m')
    assert person.goal() == ([0.75, -0.25, 0.3125], 'goal_pose')


def test_a_2d_goal_is_refused_while_the_height_of_the_tool_is_not_known(world):
    person = Person(world)
    person.set_2d_goal(0.75, -0.25)
    assert 'height is expected' in person.refusal()
    assert person.answer() == ('no_state', [0.75, -0.25, 0.0], 'base')
    person.click(0.75, -0.25, 0.5)
    assert person.goal() == ([0.75, -0.25, 0.5], 'clicked_point')


def test_a_tilted_pose_at_height_0_is_not_taken_for_a_2d_goal(person):
    person.set_2d_goal(0.75, -0.25, tilt=0.1)
    assert re.search(r'box is expected, got \[0.75, -0.25, 0.0\]', person.refusal())


@pytest.mark.parametrize('bad', [NAN, float('inf'), -float('inf')])
def test_a_goal_of_numbers_that_are_none_is_refused_wherever_they_are(person, bad):
    for place in range(3):
        numbers = [0.5, 0.0, 0.5]
        numbers[place] = bad
        person.click(*numbers)
        assert re.search('from clicked_point: finite numbers are expected', person.refusal())
        assert person.answer() == ('bad_message', None, 'base')
    person.set_2d_goal(0.5, bad)
    assert re.search('from goal_pose: finite numbers are expected', person.refusal())
    person.set_2d_goal(0.5, 0.0, z=0.5, tilt=bad)
    assert re.search('from goal_pose: finite numbers are expected', person.refusal())
    person.click(0.5, 0.0, 0.5)
    assert person.goal() == ([0.5, 0.0, 0.5], 'clicked_point')


def test_a_frame_of_any_length_makes_no_long_answer(person):
    person.click(0.5, 0.0, 0.5, 'f' * 100_000)
    assert len(person.refusal()) < 1000
    code, _, frame = person.answer()
    assert code == 'frame_unknown'
    assert len(frame) < 1000


def test_a_goal_in_another_frame_is_refused_where_tf2_is_not_installed(person):
    person.click(0.5, 0.0, 0.5, 'map')
    assert re.search("'base' is expected where tf2_ros is not.*got 'map'", person.refusal())
    assert person.answer() == ('frame_unknown', [0.5, 0.0, 0.5], 'map')
    person.set_2d_goal(0.5, 0.0, 'map')
    assert re.search("from goal_pose: frame 'base' is expected.*'map'", person.refusal())


def test_the_marker_stays_at_the_last_goal_when_another_one_is_refused(person):
    heard = person.updates()
    person.click(0.25, 0.25, 0.25)
    person.marker(heard, lambda position: position == [0.25, 0.25, 0.25])
    heard = person.updates()
    person.click(3.0, 0.0, 0.5)
    assert 'box is expected' in person.refusal()
    assert person.answer() == ('outside_workspace', [3.0, 0.0, 0.5], 'base')
    assert person.marker(heard) == [0.25, 0.25, 0.25]


def test_the_marker_goes_to_a_goal_that_was_set_another_way(person):
    heard = person.updates()
    person.tell('show 0.375 0.25 0.125')
    person.marker(heard, lambda position: position == [0.375, 0.25, 0.125])
    heard = person.updates()
    person.click(3.0, 0.0, 0.5)
    assert person.marker(heard) == [0.375, 0.25, 0.125]


def test_the_marker_goes_where_a_goal_was_projected_to(world):
    person = Person(world, 'project')
    heard = person.updates()
    person.click(3.0, 0.0, 0.5)
    assert person.goal() == ([1.0, 0.0, 0.5], 'clicked_point')
    person.taker.wait_for(r'\(3.000, 0.000, 0.500\) m.* projected by 2.000 m')
    assert person.marker(heard) == [1.0, 0.0, 0.5]


def test_every_refusal_is_counted_but_told_once_while_it_stays_the_same(world):
    person = Person(world)
    for _ in range(4):
        person.click(NAN, 0.0, 0.5)
    person.click(0.5, 0.0, 0.5)
    person.goal()
    person.tell('refused')
    assert 'refused: 4' in person.taker.lines
    told = [line for line in person.taker.lines if 'refused a goal' in line]
    assert 1 <= len(told) < 4


def test_a_closed_input_takes_nothing_and_an_opened_one_takes_goals_again(world):
    person = Person(world)
    person.tell('close')
    node, topics = person.peer.node, ('goal_pose', 'clicked_point', 'goal_marker/feedback')
    person.peer.wait_until(
        lambda: (
            not any(node.count_subscribers(topic) for topic in topics)
            and not node.count_publishers('goal_marker/update')
        ),
        'nobody listens',
    )
    person.tell('open')
    person.peer.wait_until(lambda: person._points.get_subscription_count(), 'somebody listens')
    person.click(0.5, 0.0, 0.5)
    assert person.goal() == ([0.5, 0.0, 0.5], 'clicked_point')


def test_tf2_places_a_goal_where_it_is_installed(tf_person):
    person = tf_person
    person.tell('frame table 0.5 0.25 0.125 0')
    person.click(0.25, 0.125, 0.375, 'table')
    assert person.goal() == (pytest.approx([0.375, 0.5, 0.5]), 'clicked_point')


def test_a_2d_goal_in_another_frame_keeps_the_height_in_the_base_frame(tf_person):
    person = tf_person
    person.tell('frame table 0.5 0.25 0.125 0')
    person.tell('tool 0.1 0.2 0.3125')
    person.set_2d_goal(0.25, 0.125, 'table')
    assert person.goal() == (pytest.approx([0.375, 0.5, 0.3125]), 'goal_pose')


def test_a_frame_that_tf2_does_not_know_is_refused_with_its_words(tf_person):
    tf_person.click(0.25, 0.125, 0.375, 'moon')
    assert re.search("tf2 can place in 'base'.*'moon'.*not exist", tf_person.refusal())


@pytest.fixture(scope='module')
def moving(tf_person):
    """Let a frame move along x, 0.25 m in a second, from 0 at 195 s to 1 m at 199 s."""
    for seconds in (195, 199):
        tf_person.tell(f'frame belt {0.25 * (seconds - 195)} 0.0 0.25 {seconds}')
    return tf_person


@pytest.mark.parametrize(('stamp', 'x'), [(195, 0.0), (196, 0.25), (199, 1.0), (0, 1.0)])
def test_a_goal_belongs_to_the_time_of_its_stamp_or_if_that_is_0_to_the_newest(moving, stamp, x):
    moving.click(0.125, 0.0, 0.25, 'belt', stamp)
    assert moving.goal() == (pytest.approx([x, 0.125, 0.5]), 'clicked_point')


def test_a_goal_older_than_all_transforms_is_refused(moving):
    moving.click(0.125, 0.0, 0.25, 'belt', 194)
    assert re.search("tf2 can place in 'base'.*'belt' at 194.*within 195", moving.refusal())


def test_a_goal_from_before_all_time_is_refused(moving):
    moving.click(0.125, 0.0, 0.25, 'belt', -5)
    assert re.search('stamp of 0 or more is expected, got -5.000 s', moving.refusal())


def test_a_goal_whose_time_never_comes_is_refused_after_a_while(moving):
    moving.click(0.125, 0.0, 0.25, 'belt', 202)
    assert re.search("3.000 s after the newest transform from 'belt'", moving.refusal())


def wait_for_transform(person, frame):
    """Send a goal in a frame of which only older transforms are known."""
    person.tell(f'frame {frame} 0.0 0.0 0.25 199')
    person.click(0.125, 0.0, 0.25, frame, 200)
    person.taker.wait_for('^looked .* in vain')
    person.tell('tool 0.1 0.2 0.3125')  # Whoever takes goals does other things meanwhile.


def test_a_goal_ahead_of_the_transforms_waits_for_them(world):
    person = Person(world, 'tf', 'patient')
    wait_for_transform(person, 'late')
    person.tell('frame late 0.5 0.0 0.25 201')
    assert person.goal() == (pytest.approx([0.25, 0.125, 0.5]), 'clicked_point')


@pytest.mark.parametrize('after', ['another goal', 'stop'])
def test_a_goal_that_waits_is_dropped_for(world, after):
    person = Person(world, 'tf', 'patient')
    wait_for_transform(person, 'late')
    waited = [0.125, 0.0, 0.25], 'late'
    if after == 'stop':
        person.tell('stop')
        assert person.answer() == ('stopped', *waited)
    else:
        person.click(0.75, 0.0, 0.5)
        assert person.answer() == ('superseded', *waited)
        assert person.goal() == ([0.75, 0.0, 0.5], 'clicked_point')
    person.tell('frame late 0.5 0.0 0.25 201')
    person.click(0.5, 0.0, 0.5)
    assert person.goal() == ([0.5, 0.0, 0.5], 'clicked_point')


def test_a_goal_that_came_before_a_stop_is_refused_however_late_it_is_looked_at(world):
    person = Person(world)
    person.tell('hold')
    person.click(0.75, 0.0, 0.5)
    assert person.is_received()
    person.tell('stop')
    assert person.answer() == ('stopped', [0.75, 0.0, 0.5], 'base')
    person.click(0.5, 0.0, 0.5)
    assert person.goal() == ([0.5, 0.0, 0.5], 'clicked_point')


def test_a_goal_sent_before_a_stop_to_a_suspended_node_is_refused(world):
    person = Person(world)
    person.click(0.25, 0.0, 0.5)
    assert person.goal() == ([0.25, 0.0, 0.5], 'clicked_point')
    person.tell('hold')
    person.taker.signal(signal.SIGSTOP)
    person.click(0.75, 0.0, 0.5)
    person.taker.tell(f'stop {time.monotonic_ns()}')
    person.taker.signal(signal.SIGCONT)  # only now it receives the goal
    assert person.is_received()
    assert person.answer() == ('stopped', [0.75, 0.0, 0.5], 'base')
    person.click(0.5, 0.0, 0.5)
    assert person.goal() == ([0.5, 0.0, 0.5], 'clicked_point')


@pytest.mark.parametrize(
    'sent, received, counts',
    [(5, 9, 5), (9, 5, 5), (5, 0, 5), (0, 5, 5), (UNKNOWN, 5, 5), (5, UNKNOWN, 5)],
)
def test_a_message_counts_from_the_earlier_of_its_times_that_are_known(sent, received, counts):
    # Cyclone DDS gives no time of receipt.
    info = {'source_timestamp': sent, 'received_timestamp': received}
    assert earliest_time(info) == counts


def test_a_message_of_a_middleware_without_times_counts_from_now():
    before = time.time_ns()
    assert earliest_time({'source_timestamp': 0, 'received_timestamp': 0}) >= before


def test_tf2_is_listened_to_no_longer_after_closing(world):
    person = Person(world, 'tf')
    person.tell('close')
    assert 'tf2 unregistered' in person.taker.lines
