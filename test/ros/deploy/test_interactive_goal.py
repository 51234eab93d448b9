"""
The goal that people drag, with a client that does what RViz does.

``Rviz`` follows ``InteractiveMarkerClient`` of ros-visualization/interactive_markers (as read on
its branch rolling) and ``InteractiveMarker`` of ros2/rviz, state by state: what it asks for and
when, which updates it applies, queues, prunes and trips over, what it sends while somebody drags.
"""

from collections import deque
import json
from pathlib import Path
import re
import sys
import threading
import time

from geometry_msgs.msg import PointStamped
import numpy as np
import pytest
from rclpy.duration import Duration
from visualization_msgs.msg import (
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    InteractiveMarkerUpdate,
    Marker,
)
from visualization_msgs.srv import GetInteractiveMarkers

pytestmark = pytest.mark.ros

TAKER = Path(__file__).parent / 'goal_taker.py'
PATIENCE = 60.0
FRAME = 0.005
"""Time between frames [s]; RViz's is longer."""
START = [0.5, 0.0, 0.5]
IDLE, INITIALIZE, RUNNING = 'idle', 'initialize', 'running'


class Rviz:
    """RViz with an Interactive Markers display; ``frame`` is its render loop."""

    def __init__(self, peer, namespace='goal_marker'):
        self.peer, node = peer, peer.node
        self._lock = threading.RLock()
        self._client_id = node.get_fully_qualified_name()
        self.state, self.requests, self.gaps, self.lose = IDLE, 0, 0, 0
        self.received = 0
        self._reset()
        self._client = node.create_client(
            GetInteractiveMarkers, f'{namespace}/get_interactive_markers'
        )
        self._feedback = node.create_publisher(
            InteractiveMarkerFeedback, f'{namespace}/feedback', 100
        )
        node.create_subscription(
            InteractiveMarkerUpdate, f'{namespace}/update', self._process_update, 100
        )

    # The client, as in interactive_marker_client.cpp.

    def frame(self):
        with self._lock:
            self._update_client()
            for marker in self.markers.values():
                marker.frame()

    def _update_client(self):
        ready = self._client.service_is_ready()
        if self.state != IDLE and not ready:
            self._reset()
        elif self.state == IDLE and ready:
            self._request()
            self.state = INITIALIZE
        elif self.state == INITIALIZE:
            if self.reply is None:
                if time.monotonic() - self._asked_at > 1.0:
                    self._request()
                return
            while self.queue and self.queue[0].seq_num <= self.reply.sequence_number:
                self.queue.popleft()
            self.markers = {marker.name: Dragged(self, marker) for marker in self.reply.markers}
            self.state = RUNNING
        elif self.state == RUNNING:
            while self.queue:
                self._apply(self.queue.popleft())

    def _request(self):
        self.requests += 1
        self._asked_at = time.monotonic()
        self._client.call_async(GetInteractiveMarkers.Request()).add_done_callback(self._answered)

    def _answered(self, future):
        with self._lock:
            self.reply = future.result()

    def _process_update(self, update):
        with self._lock:
            self.received += 1
            if self.lose:
                self.lose -= 1
                return
            if update.type == InteractiveMarkerUpdate.KEEP_ALIVE:
                return
            if self._last is not None and update.seq_num != self._last + 1:
                self.gaps += 1
                self._reset()
                return
            self._last = update.seq_num
            self.queue.append(update)

    def _reset(self):
        self.state, self._last, self.reply = IDLE, None, None
        self.queue, self.markers = deque(), {}

    def _apply(self, update):
        for marker in update.markers:
            self.markers[marker.name] = Dragged(self, marker)
        for pose in update.poses:
            # RViz disconnects at a pose of a marker that it does not know.
            self.markers[pose.name].request(pose)
        for name in update.erases:
            self.markers.pop(name, None)

    def send(self, feedback):
        feedback.client_id = self._client_id
        self._feedback.publish(feedback)

    # What a test asks for.

    def until(self, condition, what):
        """Draw frames until something is so."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f'{what}: not within {PATIENCE} s'
            self.frame()
            time.sleep(FRAME)

    def connect(self):
        self.until(lambda: 'goal' in self.markers, 'the marker is there')
        self.peer.wait_until(self._feedback.get_subscription_count, 'somebody takes feedback')
        return self.markers['goal']

    def until_at(self, *position):
        self.until(lambda: self.at() == list(position), f'the marker is at {position}')

    def is_received(self):
        """Return whether what was sent has come to the node, after a while."""
        return self._feedback.wait_for_all_acked(Duration(seconds=PATIENCE))

    def at(self):
        return self.markers['goal'].position if 'goal' in self.markers else None


class Dragged:
    """One marker in the scene, as in interactive_marker.cpp."""

    def __init__(self, rviz, message):
        self._rviz, self.message, self.header = rviz, message, message.header
        self.position, self._control = point(message.pose.position), ''
        self._dragging, self._changed, self.requested = False, False, None

    def frame(self):
        if self._dragging and self._changed:
            self._send(InteractiveMarkerFeedback.POSE_UPDATE)
            self._changed = False

    def request(self, message):
        self.header = message.header
        if self._dragging:
            self.requested = point(message.pose.position)
        else:
            self._set(point(message.pose.position))

    def press(self, control='move'):
        self._dragging, self._changed, self._control = True, False, control
        self._send(InteractiveMarkerFeedback.POSE_UPDATE)
        self._send(InteractiveMarkerFeedback.MOUSE_DOWN)

    def move(self, *position):
        self._set(list(position))

    def release(self):
        self._send(InteractiveMarkerFeedback.POSE_UPDATE)
        self._send(InteractiveMarkerFeedback.MOUSE_UP)
        self._dragging = False
        if self.requested is not None:
            self._set(self.requested)
            self.requested = None

    def lose_focus(self):
        """Stop dragging as RViz does when another window comes up: without a word."""
        self._dragging = False

    def feedback(self, event, **changes):
        """Return what RViz would send, with some of it changed."""
        message = InteractiveMarkerFeedback(
            marker_name=self.message.name, control_name=self._control, event_type=event
        )
        # Frame-locked, since stamped 0: in the marker's own frame.
        message.header.frame_id = self.header.frame_id
        place = message.pose.position
        place.x, place.y, place.z = self.position
        for name, value in changes.items():
            *path, last = name.split('__')
            part = message
            for step in path:
                part = getattr(part, step)
            setattr(part, last, value)
        return message

    def _send(self, event):
        self._rviz.send(self.feedback(event))

    def _set(self, position):
        self.position, self._changed = position, True


class Node:
    """The process that takes the goals."""

    def __init__(self, world, *arguments):
        self.process = world.start(sys.executable, TAKER, *arguments)
        self.process.wait_for('^ready')

    def tell(self, line):
        self.process.tell(line)
        self.process.wait_for(f'^did {line.split()[0]}')

    def goals(self):
        """Return all goals that have been taken."""
        self.tell('refused')
        lines = [re.match(r'took (\[.*\]) from the goal marker', x) for x in self.process.lines]
        return [json.loads(line[1]) for line in lines if line]

    def wait_for(self, pattern):
        return self.process.wait_for(pattern)


def point(message):
    return [message.x, message.y, message.z]


def drag(rviz, *positions):
    """Drag the marker along some positions, one each frame, and let it go."""
    marker = rviz.markers['goal']
    marker.press()
    for position in positions:
        marker.move(*position)
        rviz.frame()
    marker.release()


@pytest.fixture
def node(world):
    return Node(world)


@pytest.fixture
def rviz(node, world):
    rviz = Rviz(world.peer())
    rviz.connect()
    return rviz


def test_rviz_is_given_one_marker_that_moves_along_each_axis_and_freely(rviz):
    (marker,) = rviz.reply.markers
    # An answer is lost now and then while the two still find out about each other's ends; RViz
    # then asks once more.
    assert rviz.requests <= 2
    assert marker.header.frame_id == 'base'
    assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (0, 0)  # frame-locked
    assert point(marker.pose.position) == START
    names = [control.name for control in marker.controls]
    assert len(set(names)) == len(names) == 4
    ball, *arrows = marker.controls
    assert ball.interaction_mode == InteractiveMarkerControl.MOVE_3D
    assert ball.always_visible
    (sphere,) = ball.markers
    assert sphere.type == Marker.SPHERE
    assert point(sphere.scale) == [0.1, 0.1, 0.1]
    assert 0.0 < sphere.color.a <= 1.0
    axes = []
    for arrow in arrows:
        assert arrow.interaction_mode == InteractiveMarkerControl.MOVE_AXIS
        assert not arrow.markers  # RViz draws its own, from half of the scale on
        turn = arrow.orientation
        w, x, y, z = turn.w, turn.x, turn.y, turn.z
        assert w * w + x * x + y * y + z * z == pytest.approx(1.0)
        axes.append([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    np.testing.assert_allclose(np.abs(axes), np.eye(3), atol=1e-12)
    assert 0.5 * marker.scale > sphere.scale.x / 2


def test_a_drag_moves_the_marker_but_only_letting_go_sets_the_goal(rviz, node, world):
    other = Rviz(world.peer())
    other.connect()
    marker = rviz.markers['goal']
    marker.press()
    for step in range(1, 5):
        marker.move(0.5, 0.0625 * step, 0.5)
        rviz.frame()
        other.until_at(0.5, 0.0625 * step, 0.5)
    assert node.goals() == []
    marker.release()
    node.wait_for('took .* from the goal marker')
    assert node.goals() == [[0.5, 0.25, 0.5]]
    rviz.until_at(0.5, 0.25, 0.5)
    assert (rviz.gaps, other.gaps, rviz.requests) == (0, 0, 1)


def test_a_mere_click_sets_no_goal(rviz, node):
    marker = rviz.markers['goal']
    marker.press()
    rviz.frame()
    marker.release()
    assert node.goals() == []
    drag(rviz, (0.25, 0.25, 0.5))
    node.wait_for('took .* from the goal marker')
    rviz.until_at(0.25, 0.25, 0.5)
    marker.press()
    # RViz counts in single precision, and turns what it tells from its own frame to ours.
    marker.move(0.25000001, 0.24999999, 0.5)
    rviz.frame()
    marker.release()
    drag(rviz, (0.25, 0.125, 0.5))
    node.wait_for('took .* from the goal marker')
    assert node.goals() == [[0.25, 0.25, 0.5], [0.25, 0.125, 0.5]]


def test_a_drag_there_and_back_sets_the_goal_again(rviz, node):
    drag(rviz, (0.5, 0.25, 0.5), START)
    node.wait_for('took .* from the goal marker')
    assert node.goals() == [START]


def test_a_drag_through_where_no_goal_may_be_does_not_send_the_arm_there(rviz, node):
    drag(rviz, (0.5, 0.2, 0.5), (0.5, 0.2, -1.0), (0.5, 9.0, -1.0), (0.25, 0.25, 0.25))
    node.wait_for('took .* from the goal marker')
    assert node.goals() == [[0.25, 0.25, 0.25]]
    node.tell('refused')
    assert 'refused: 0' in node.process.lines


def test_every_pose_that_is_taken_is_echoed_with_the_next_number(rviz, node):
    numbers = []
    rviz.peer.node.create_subscription(
        InteractiveMarkerUpdate,
        'goal_marker/update',
        lambda update: numbers.append((update.seq_num, update.type, len(update.poses))),
        100,
    )
    before = rviz.received
    drag(rviz, *((0.5, 0.01 * step, 0.5) for step in range(1, 21)))
    # Of pressing, of 20 frames, of letting go, and of the goal.
    rviz.until(lambda: rviz.received - before >= 23, 'all echoes')
    rviz.until_at(0.5, 0.2, 0.5)
    assert rviz.gaps == 0
    first = numbers[0][0]
    kind = InteractiveMarkerUpdate.UPDATE
    assert numbers == [(first + k, kind, 1) for k in range(len(numbers))]
    assert len(numbers) > 15


def test_a_refused_goal_sends_the_marker_back_to_the_last_one(rviz, node):
    drag(rviz, (0.75, 0.25, 0.5), (5.0, 0.0, 0.5))
    assert re.search(r'box is expected, got \[5.0', node.wait_for('refused a goal from the goal'))
    rviz.until_at(*START)
    drag(rviz, (0.75, 0.25, 0.5))
    node.wait_for('took .* from the goal marker')
    drag(rviz, (5.0, 0.0, 0.5))
    node.wait_for('refused a goal from the goal marker')
    rviz.until_at(0.75, 0.25, 0.5)
    assert node.goals() == [[0.75, 0.25, 0.5]]


def test_a_projected_goal_takes_the_marker_along(world):
    node, rviz = Node(world, 'project'), Rviz(world.peer())
    rviz.connect()
    drag(rviz, (5.0, 0.0, 0.5))
    rviz.until_at(1.0, 0.0, 0.5)
    assert node.goals() == [[1.0, 0.0, 0.5]]


def test_a_goal_from_elsewhere_moves_the_marker_also_while_somebody_holds_it(rviz, node):
    node.tell('show 0.25 0.25 0.25')
    rviz.until_at(0.25, 0.25, 0.25)
    marker = rviz.markers['goal']
    marker.press()
    node.tell('show 0.125 0.25 0.25')
    rviz.until(lambda: marker.requested == [0.125, 0.25, 0.25], 'the goal is heard of')
    assert rviz.at() == [0.25, 0.25, 0.25]
    # Whoever moves it has the last word.
    marker.move(0.25, 0.25, 0.375)
    rviz.frame()
    marker.release()
    node.wait_for('took .* from the goal marker')
    rviz.until_at(0.25, 0.25, 0.375)
    assert node.goals() == [[0.25, 0.25, 0.375]]
    # Whoever only holds it has none.
    marker.press()
    node.tell('show 0.125 0.25 0.25')
    rviz.until(lambda: marker.requested == [0.125, 0.25, 0.25], 'the goal is heard of')
    marker.release()
    rviz.until_at(0.125, 0.25, 0.25)
    assert node.goals() == [[0.25, 0.25, 0.375]]


def test_a_drag_that_ended_before_a_stop_is_refused_however_late_it_is_looked_at(rviz, node):
    node.tell('hold')
    drag(rviz, (0.25, 0.25, 0.5))
    assert rviz.is_received()
    node.tell('stop')
    assert json.loads(node.wait_for('^answered: ').partition(': ')[2])[0] == 'stopped'
    rviz.until_at(*START)
    drag(rviz, (0.25, 0.125, 0.5))
    node.wait_for('took .* from the goal marker')
    assert node.goals() == [[0.25, 0.125, 0.5]]


def test_a_drag_takes_the_place_of_a_goal_that_waits_for_its_transform(world):
    node, rviz = Node(world, 'tf', 'patient'), Rviz(world.peer())
    rviz.connect()
    clicks = rviz.peer.talk(PointStamped, 'clicked_point')
    node.tell('frame late 0.0 0.0 0.25 199')
    click = PointStamped()
    click.header.frame_id, click.header.stamp.sec = 'late', 200
    clicks.publish(click)
    node.wait_for('^looked .* in vain')
    drag(rviz, (0.25, 0.25, 0.5))
    node.wait_for('took .* from the goal marker')
    node.tell('frame late 0.5 0.25 0.25 201')
    drag_until_taken(rviz, node, (0.25, 0.125, 0.5))
    (first, position, frame), *_ = (
        json.loads(line.partition(': ')[2])
        for line in node.process.lines
        if line.startswith('answered: ')
    )
    assert (first, position, frame) == ('superseded', [0.0, 0.0, 0.0], 'late')
    assert not any('from clicked_point' in line for line in node.process.lines if 'took' in line)


def test_a_marker_that_loses_focus_while_dragged_sets_no_goal(rviz, node):
    marker = rviz.markers['goal']
    marker.press()
    marker.move(0.25, 0.25, 0.25)
    rviz.frame()
    marker.lose_focus()
    rviz.until_at(0.25, 0.25, 0.25)
    assert node.goals() == []
    node.tell('show 0.5 0.125 0.5')
    rviz.until_at(0.5, 0.125, 0.5)


def test_updates_that_come_before_the_answer_are_pruned_and_later_ones_applied(node, world):
    rviz = Rviz(world.peer())
    rviz.peer.wait_until(
        lambda: rviz.peer.node.count_publishers('goal_marker/update'), 'updates are sent'
    )

    def show(*position):
        before = rviz.received
        node.tell('show ' + ' '.join(map(str, position)))
        rviz.peer.wait_until(lambda: rviz.received > before, 'an update')

    # The first may go by before the two have found each other for good.
    while not rviz.received:
        node.tell('show 0.5 0.125 0.25')
    show(0.5, 0.125, 0.375)
    rviz.until(lambda: rviz.state == INITIALIZE, 'asked')
    rviz.peer.wait_until(lambda: rviz.reply is not None, 'answered')
    assert rviz.reply.sequence_number == rviz.queue[-1].seq_num
    show(0.5, 0.125, 0.5)
    show(0.5, 0.125, 0.625)
    rviz.frame()
    assert rviz.state == RUNNING
    assert rviz.at() == [0.5, 0.125, 0.375]  # of the answer
    assert [update.seq_num - rviz.reply.sequence_number for update in rviz.queue] == [1, 2]
    rviz.frame()
    assert rviz.at() == [0.5, 0.125, 0.625]
    assert (rviz.requests, rviz.gaps) == (1, 0)


def test_after_a_lost_update_rviz_asks_again_and_is_told_where_the_marker_is(rviz, node):
    node.tell('show 0.5 0.125 0.25')
    rviz.until_at(0.5, 0.125, 0.25)
    asked = rviz.requests
    rviz.lose = 1
    node.tell('show 0.5 0.125 0.375')
    rviz.until(lambda: not rviz.lose, 'one is lost')
    node.tell('show 0.5 0.125 0.5')
    rviz.until(lambda: rviz.gaps == 1 and rviz.state == RUNNING, 'it recovers')
    assert rviz.requests == asked + 1
    rviz.until_at(0.5, 0.125, 0.5)
    drag(rviz, (0.25, 0.125, 0.5))
    node.wait_for('took .* from the goal marker')
    rviz.until_at(0.25, 0.125, 0.5)
    assert rviz.gaps == 1


def test_rviz_that_comes_amid_a_drag_sees_what_the_one_who_drags_sees(rviz, node, world):
    marker = rviz.markers['goal']
    marker.press()
    late = Rviz(world.peer())
    step = 0
    while late.state != RUNNING:
        step += 1
        assert step < 10_000
        marker.move(0.5, 0.0, 0.5 + 1e-4 * (step % 1000))
        rviz.frame()
        late.frame()
        time.sleep(FRAME)
    late.until_at(*marker.position)
    marker.release()
    node.wait_for('took .* from the goal marker')
    late.until_at(*node.goals()[0])
    assert late.gaps == 0


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'pose__position__y': float('nan')}, 'finite numbers is expected, got .*nan'),
        ({'pose__position__x': float('inf')}, 'finite numbers is expected, got .*inf'),
        ({'pose__orientation__w': float('nan')}, 'finite numbers is expected'),
        ({'header__frame_id': 'moon'}, "frame 'base' is expected, got 'moon'"),
        ({'marker_name': 'moon'}, "marker 'goal' is expected, got 'moon'"),
    ],
)
@pytest.mark.parametrize(
    'event', [InteractiveMarkerFeedback.POSE_UPDATE, InteractiveMarkerFeedback.MOUSE_UP]
)
def test_bad_feedback_is_refused_with_a_sentence_and_the_marker_lives_on(
    shared_rviz, event, changes, sentence
):
    rviz, node = shared_rviz
    before, place = node.goals(), rviz.at()
    marker = rviz.markers['goal']
    marker.move(0.25, 0.25, 0.75)
    rviz.send(marker.feedback(event, **changes))
    assert re.search(sentence, node.wait_for('refused a goal from the goal marker'))
    rviz.until_at(*place)
    assert node.goals() == before
    drag(rviz, (0.25, 0.25, 0.5), (0.25, 0.25 + 0.01 * len(before), 0.5))
    rviz.until(lambda: len(node.goals()) == len(before) + 1, 'a goal')
    rviz.until_at(*node.goals()[-1])


def test_events_that_are_neither_a_move_nor_a_release_do_nothing(shared_rviz):
    rviz, node = shared_rviz
    before, place = node.goals(), rviz.at()
    marker = rviz.markers['goal']
    marker.move(0.25, 0.25, 0.75)
    event = InteractiveMarkerFeedback
    for kind in (event.KEEP_ALIVE, event.MENU_SELECT, event.BUTTON_CLICK, event.MOUSE_DOWN, 77):
        rviz.send(marker.feedback(kind))
    marker.move(*place)
    drag(rviz, (0.125, 0.25, 0.5))
    rviz.until(lambda: len(node.goals()) == len(before) + 1, 'a goal')
    assert node.goals()[-1] == [0.125, 0.25, 0.5]


def test_two_hands_do_not_pull_at_one_marker(rviz, node, world):
    other = Rviz(world.peer())
    other.connect()
    marker = rviz.markers['goal']
    marker.press()
    marker.move(0.25, 0.0, 0.5)
    rviz.frame()
    other.until_at(0.25, 0.0, 0.5)
    drag(other, (0.75, 0.0, 0.5))
    assert 'one client at a time' in node.wait_for('refused a goal from the goal marker')
    marker.move(0.25, 0.125, 0.5)
    marker.release()
    node.wait_for('took .* from the goal marker')
    other.until_at(0.25, 0.125, 0.5)
    assert node.goals() == [[0.25, 0.125, 0.5]]
    # Nobody holds it any more: the other's turn comes.
    drag_until_taken(other, node, (0.75, 0.0, 0.5))
    rviz.until_at(0.75, 0.0, 0.5)


def test_a_closed_marker_leaves_rviz_and_comes_back_with_a_new_one(rviz, node):
    drag(rviz, (0.25, 0.125, 0.5))
    node.wait_for('took .* from the goal marker')
    node.tell('close')
    rviz.until(lambda: 'goal' not in rviz.markers, 'the marker is gone')
    node.tell('open')
    rviz.connect()
    rviz.until_at(*START)
    drag_until_taken(rviz, node, (0.25, 0.25, 0.5))


def test_a_node_that_is_killed_and_started_again_has_its_marker_back(world):
    node, rviz = Node(world), Rviz(world.peer())
    rviz.connect()
    drag(rviz, (0.25, 0.125, 0.5))
    node.wait_for('took .* from the goal marker')
    node.process.kill()
    node = Node(world)
    # RViz does not notice by itself: the service of the killed one seems to be there for long.
    rviz.until_at(*START)
    drag_until_taken(rviz, node, (0.25, 0.25, 0.5))


def drag_until_taken(rviz, node, position):
    """Drag as people do whose drag was not taken: again."""
    before, end = len(node.goals()), time.monotonic() + PATIENCE
    while len(node.goals()) == before:
        assert time.monotonic() < end
        rviz.connect()
        drag(rviz, START, position)  # it may be shown there already
        time.sleep(0.05)
    assert node.goals()[-1] == list(position)


@pytest.fixture(scope='module')
def shared_rviz(shared_world):
    node, rviz = Node(shared_world), Rviz(shared_world.peer())
    rviz.connect()
    return rviz, node
