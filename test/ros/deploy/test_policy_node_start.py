"""While policy_node starts, or cannot, it says so, and ``~/stop`` is answered all the same."""

from concurrent.futures import ThreadPoolExecutor
import sys
import threading
import time

from geometry_msgs.msg import PointStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

pytestmark = pytest.mark.ros

PROMPT = 1.0
"""
What counts as an answer at once [s], on a machine that may be busy.

What it waited for before takes many times longer.
"""


def test_without_the_driver_the_node_ends_in_a_sentence(deploy):
    deployed = deploy(tells_model=False, model_timeout=0.5)
    deployed.node.wait_for(
        'policy_node: no model of the arm was received on /robot_description within 0.5'
    )
    assert deployed.node.end() == 1
    assert not any('Traceback' in line for line in deployed.node.lines)


def test_without_the_driver_a_managed_node_can_be_configured_later(deploy):
    deployed = deploy(tells_model=False, autostart=False, model_timeout=0.5)
    deployed.node.wait_for('waiting to be configured')
    for _ in range(2):
        assert not deployed.change('configure')
        deployed.node.wait_for('no model of the arm was received on /robot_description')
        assert deployed.state() == 'unconfigured'
    deployed.arm.tell_model()
    assert deployed.change('configure')
    assert deployed.change('activate')
    deployed.meet()
    deployed.arm.wait_for_states(10)
    deployed.move()


class Presser:
    """Somebody who calls ``~/stop`` and measures how long the answer takes."""

    def __init__(self, deployed):
        self._deployed = deployed
        self._client = deployed.peer.client(Trigger, 'policy_node/stop')
        self.times = []

    def press(self):
        answer, seconds = self._deployed.peer.call(self._client, Trigger.Request())
        assert answer.success
        self.times.append(seconds)

    def press_until(self, done):
        while not done():
            self.press()
            time.sleep(0.005)

    def check(self):
        """Every answer came at once; `pytest -s` shows the times, which depend on the machine."""
        median, longest = 1000.0 * np.median(self.times), 1000.0 * max(self.times)
        print(f'{len(self.times)} stops: median {median:.1f} ms, longest {longest:.1f} ms')
        assert max(self.times) < PROMPT


def test_a_stop_is_answered_while_the_node_is_being_configured(deploy):
    deployed = deploy(tells_model=False, autostart=False, model_timeout=60.0)
    deployed.node.wait_for('waiting to be configured')
    presser = Presser(deployed)
    with ThreadPoolExecutor() as pool:
        configured = pool.submit(deployed.change, 'configure')
        # While the policy is loaded, the arm's model is missing, and then is loaded, too.
        presser.press_until(lambda: any('waiting for the model' in x for x in deployed.node.lines))
        for _ in range(20):
            presser.press()
        deployed.arm.tell_model()
        presser.press_until(configured.done)
        assert configured.result()
    presser.check()
    deployed.node.wait_for('stopped until the stop is cleared')
    assert deployed.change('activate')
    deployed.meet()
    deployed.arm.wait_for_states(10)
    deployed.expect_no_goal_is_taken()
    deployed.trigger('clear')
    deployed.move()


def test_a_stop_is_answered_under_a_flood_of_goals_and_states(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()
    presser, over = Presser(deployed), threading.Event()
    node = deployed.peer.node
    goals = node.create_publisher(PointStamped, 'clicked_point', 10)
    states = node.create_publisher(JointState, 'joint_states', 10)
    goal = PointStamped()
    goal.header.frame_id, goal.point.x = 'world', float('nan')
    finger = JointState(name=['finger'], position=[0.0])

    def flood():
        while not over.is_set():
            goals.publish(goal)
            states.publish(finger)
            time.sleep(0.0003)

    with ThreadPoolExecutor() as pool:
        flooding = pool.submit(flood)
        deployed.node.wait_for('refused a goal')
        deployed.expect_one_stop(presser.press)
        for _ in range(50):
            presser.press()
        over.set()
        flooding.result()
    presser.check()


def test_a_stop_is_answered_while_goals_wait_for_their_frames(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    presser = Presser(deployed)
    for number in range(30):
        deployed.publish(deployed.far_goal(), frame=f'unknown_{number}')
        presser.press()
    presser.check()


def test_of_a_clear_and_a_stop_the_later_counts(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    stop = deployed.peer.client(Trigger, 'policy_node/stop')
    clear = deployed.peer.client(Trigger, 'policy_node/clear')
    for _ in range(20):
        cleared, stopped = clear.call_async(Trigger.Request()), stop.call_async(Trigger.Request())
        deployed.peer.wait_until(lambda: cleared.done() and stopped.done(), 'both are answered')  # noqa: B023
    deployed.expect_no_goal_is_taken()
    deployed.trigger('clear')
    deployed.move()


def end_without_a_traceback(deployed):
    assert deployed.node.stop() == 0
    assert not any('Traceback' in line for line in deployed.node.lines), deployed.node


def test_a_node_that_waits_for_the_model_ends_when_it_is_told_to(deploy):
    deployed = deploy(tells_model=False, model_timeout=600.0)
    deployed.node.wait_for('waiting for the model')
    end_without_a_traceback(deployed)


def test_a_managed_node_ends_before_it_is_configured(deploy):
    deployed = deploy(autostart=False)
    deployed.node.wait_for('waiting to be configured')
    end_without_a_traceback(deployed)


def test_a_managed_node_ends_while_it_is_being_configured(deploy):
    deployed = deploy(tells_model=False, autostart=False, model_timeout=600.0)
    deployed.node.wait_for('waiting to be configured')
    client = deployed.peer.client(ChangeState, 'policy_node/change_state')
    configure = Transition(id=Transition.TRANSITION_CONFIGURE)
    client.call_async(ChangeState.Request(transition=configure))
    deployed.node.wait_for('waiting for the model')
    end_without_a_traceback(deployed)


# Loading goes on until the node is gone; the process waits for what comes of that.
SLOW = """
import sys, threading, time
from mher_ros.ros.common.process import run_process
from mher_ros.ros.deploy import policy_node
from std_msgs.msg import String

class Deployment:
    def __init__(self, node, *_):
        print('loading', flush=True)
        while True:
            node.destroy_publisher(node.create_publisher(String, 'a_topic', 1))
            time.sleep(0.001)

policy_node.Deployment = Deployment
code = run_process('policy_node')
for thread in threading.enumerate():
    if thread.name == 'executor':
        thread.join()
sys.exit(code)
"""


def test_a_node_that_ends_before_it_has_loaded_its_arm_prints_no_traceback(world):
    node = world.start(sys.executable, '-c', SLOW, '--ros-args', '-p', 'autostart:=false')
    node.wait_for('waiting to be configured')
    peer = world.peer()
    client = peer.client(ChangeState, 'policy_node/change_state')
    configure = Transition(id=Transition.TRANSITION_CONFIGURE)
    client.call_async(ChangeState.Request(transition=configure))
    node.wait_for('loading')
    assert node.stop() == 0
    assert not any('Traceback' in line for line in node.lines), node
