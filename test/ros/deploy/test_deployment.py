"""Goals that arrive while stops, clears and activations happen; the test runs the callbacks."""

import threading
import time

from fake_arm import FakeArm
from geometry_msgs.msg import PointStamped
from mher_ros.control.safety_monitor import SafetyOptions
from mher_ros.control.stop_latch import StopLatch
from mher_ros.ros.common.diagnostics import Latency
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.status import ACCEPTED, point_of
from mher_ros.ros.deploy.deployment import Deployment, PolicyOptions
import pytest
import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor

pytestmark = pytest.mark.ros

GOAL, OTHER = (1.3, 0.7, 0.5), (1.35, 0.8, 0.55)
PATIENCE = 120.0
PATIENT = {'state_timeout': 2.0, 'resume_within': 20.0}


class Taker:
    """A deployment whose goals are handled only in ``answer``, by the thread of the test."""

    def __init__(self, world, policy):
        self.peer, self.latch = world.peer(), StopLatch()
        self.arm = FakeArm(self.peer, 'twist')
        self._context = Context()
        rclpy.init(args=[], context=self._context, domain_id=world.domain)
        self._node = rclpy.create_node('policy_node', context=self._context)
        options = PolicyOptions(
            robot='fetch', policy=str(policy), output='twist', safety=SafetyOptions(**PATIENT)
        )
        self.deployment = Deployment(
            self._node, options, StopRequest(), self.latch, Latency, lambda: None
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._goals = self.peer.talk(PointStamped, 'clicked_point')
        self._closing, self._stepping = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._drive)
        self._thread.start()

    def activate(self):
        """Return when goals are taken."""
        with self._stepping:  # as in policy_node
            self.deployment.activate()
        status = self.deployment.status
        self.peer.wait_until(lambda: status().state == 'no_goal', 'a state', status)

    def stop_and_clear(self):
        self.latch.set('a test')
        self.latch.clear()

    def publish(self, goal):
        """Return when a goal has arrived, though nobody has looked at it."""
        message = PointStamped()
        message.header.frame_id = 'world'
        message.point.x, message.point.y, message.point.z = goal
        self._goals.publish(message)
        assert self._goals.wait_for_all_acked(Duration(seconds=PATIENCE))

    def answer(self, goal):
        """Return the answer to a goal that was published."""
        end = time.monotonic() + PATIENCE
        while (status := self.deployment.status()).answered_position != point_of(goal):
            assert time.monotonic() < end, status
            self._executor.spin_once(timeout_sec=0.1)
        return status.answer

    def close(self):
        self._closing.set()
        self._thread.join()
        self.deployment.close()
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()
        self.arm.close()

    def _drive(self):
        while not self._closing.is_set():
            with self._stepping:
                self.deployment.driver.step()
            time.sleep(0.001)


class Busy:
    """A lock; at one attempt of one thread to take it, something else happens before."""

    def __init__(self, lock, attempt, happen):
        self._lock, self._left, self._happen = lock, attempt, happen
        self._thread = threading.current_thread()

    def __enter__(self):
        if threading.current_thread() is self._thread:
            self._left -= 1
            if self._left == 0:
                self._happen()
        return self._lock.__enter__()

    def __exit__(self, *error):
        return self._lock.__exit__(*error)


@pytest.fixture
def taker(world, policy):
    taker = Taker(world, policy)
    yield taker
    taker.close()


@pytest.mark.parametrize('attempt', [1, 2])
def test_a_goal_that_waits_for_the_command_path_while_the_arm_is_stopped_is_refused(
    taker, attempt, monkeypatch
):
    taker.activate()
    taker.publish(GOAL)
    driver, refuse = taker.deployment.driver, taker.deployment._goals
    take = refuse._on_goal

    def take_late(*goal):
        monkeypatch.setattr(driver, 'lock', Busy(driver.lock, attempt, taker.stop_and_clear))
        return take(*goal)

    monkeypatch.setattr(refuse, '_on_goal', take_late)
    assert taker.answer(GOAL) == 'stopped'
    monkeypatch.undo()
    taker.publish(OTHER)
    assert taker.answer(OTHER) == ACCEPTED


@pytest.mark.parametrize('happen', [Taker.stop_and_clear, Taker.activate])
def test_a_goal_from_before_is_refused_however_late_it_is_handled(taker, happen):
    taker.activate()
    taker.publish(GOAL)
    happen(taker)
    assert taker.answer(GOAL) == 'stopped'
    taker.publish(OTHER)
    assert taker.answer(OTHER) == ACCEPTED


def test_a_goal_that_was_sent_while_the_arm_was_stopped_is_refused_after_the_clear_too(taker):
    taker.activate()
    taker.latch.set('a test')
    taker.publish(GOAL)
    taker.latch.clear()
    assert taker.answer(GOAL) == 'stopped'
