"""A second source of an arm's joint states is told from a restart, a late message, a gripper."""

from geometry_msgs.msg import PoseStamped
from mher_ros.ros.common.graph_watch import KEPT, PoseSources, StateSources
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

NAMES = ('shoulder', 'elbow')
RATE = 100.0
SECOND = 1_000_000_000


class Source:
    """A publisher, its clock, and where its arm is."""

    def __init__(self, names=NAMES, first=1, shift=0.0, place=0.0, is_numbered=True):
        self.names, self.number, self.shift, self.place = names, first, shift, place
        self.is_numbered = is_numbered

    def message(self, now):
        state = JointState(name=list(self.names), position=[self.place + 0.1 * now] * 2)
        about = {
            'publication_sequence_number': self.number if self.is_numbered else None,
            'source_timestamp': int((now + self.shift) * SECOND),
        }
        self.number += 1
        return serialize_message(self.content(now, state)), about

    def content(self, now, state):
        return state


class Tracker(Source):
    """A publisher of poses."""

    def content(self, now, state):
        pose = PoseStamped()
        pose.header.frame_id = 'camera'
        pose.pose.position.x = state.position[0]
        return pose


class Watched:
    def __init__(self, sources=None):
        self.sources, self.now = sources or StateSources(NAMES), 0.0

    def take(self, message):
        self.sources.take(self.now, *message)

    def run(self, seconds, *publishers):
        """Let publishers, with periods in ticks, publish; return when they were noticed [s]."""
        end, tick = self.now + seconds, 0
        while self.now < end:
            for publisher, period in publishers:
                if tick % period == 0:
                    self.take(publisher.message(self.now))
                    if self.sources.are_several(self.now):
                        return self.now
            tick += 1
            self.now += 1.0 / RATE
        return None


@pytest.fixture
def watched():
    return Watched()


@pytest.mark.parametrize('is_numbered', [True, False])
@pytest.mark.parametrize('first', [1, 2, 3, 17, 40, 5000])
@pytest.mark.parametrize('shift', [0.0, 0.5, -0.5])
@pytest.mark.parametrize('period', [1, 3, 10])
def test_a_second_source_is_noticed(watched, is_numbered, first, shift, period):
    arm = Source(first=20, is_numbered=is_numbered)
    assert watched.run(1.0, (arm, 1)) is None
    other = Source(first=first, shift=shift, place=1.0, is_numbered=is_numbered)
    began = watched.now
    assert watched.run(1.0, (arm, 1), (other, period)) <= began + 0.3


@pytest.mark.parametrize('is_numbered', [True, False])
@pytest.mark.parametrize('period', [1, 3])
def test_a_second_source_of_poses_is_noticed(is_numbered, period):
    watched, tracker = Watched(PoseSources('camera')), Tracker(is_numbered=is_numbered)
    assert watched.run(2.0, (tracker, 1)) is None
    other = Tracker(place=0.08, is_numbered=is_numbered)
    began = watched.now
    assert watched.run(1.0, (tracker, 1), (other, period)) <= began + 0.3


def test_it_is_forgotten_when_it_has_gone(watched):
    arm, other = Source(first=100), Source()
    assert watched.run(1.0, (arm, 1), (other, 1)) is not None
    for _ in range(int((KEPT + 0.1) * RATE)):
        watched.now += 1.0 / RATE
        watched.take(arm.message(watched.now))
    assert not watched.sources.are_several(watched.now)


@pytest.mark.parametrize('first', [1, 5000])
@pytest.mark.parametrize('seconds', [2.1, 10])
def test_a_second_source_that_seldom_publishes_is_noticed(watched, seconds, first):
    arm, other = Source(first=200), Source(first=first)
    watched.run(1.0, (arm, 1))
    watched.take(other.message(watched.now))
    for _ in range(3):
        watched.run(seconds, (arm, 1))
        watched.take(other.message(watched.now))
        assert watched.run(0.1, (arm, 1)) is not None


@pytest.mark.parametrize('is_numbered', [True, False])
def test_a_gripper_is_no_second_source(watched, is_numbered):
    arm = Source(first=1000, is_numbered=is_numbered)
    gripper = Source(('finger', 'left_elbow'), place=3.0, is_numbered=is_numbered)
    assert watched.run(5.0, (arm, 1), (gripper, 1)) is None


@pytest.mark.parametrize('told', [3, 40, 1000])
def test_a_driver_that_is_started_again_is_the_same_source(watched, told):
    for _ in range(3):
        assert watched.run(told / RATE, (Source(), 1)) is None
        watched.now += 2.0
    assert watched.run(5.0, (Source(place=0.5), 1)) is None


def test_messages_that_are_overtaken_are_no_second_source(watched):
    arm = Source()
    for _ in range(100):
        messages = []
        for _ in range(4):
            watched.now += 1.0 / RATE
            messages.append(arm.message(watched.now))
        for index in (2, 0, 3, 1):
            watched.take(messages[index])
        assert not watched.sources.are_several(watched.now)


def test_lost_messages_and_a_fast_arm_are_no_second_source(watched):
    arm = Source(is_numbered=False)
    for _ in range(100):
        watched.now += 1.0
        arm.number += 500
        watched.take(arm.message(watched.now))  # 0.1 rad on
        assert not watched.sources.are_several(watched.now)
