"""The page of view_node in a real browser, over real DDS: what it shows, what people do there."""

import re

from browser import project, still_camera, wait_for
from deployed_policy import stops
from fake_arm import FakeArm, vector
from geometry_msgs.msg import PoseStamped
import numpy as np
import pytest
from viewed import Viewed

pytestmark = [pytest.mark.ros, pytest.mark.slow]

PATIENCE = 120.0
"""For a browser that draws without a graphics card beside other tests [s]."""
GRIP = np.array((0.0, 0.0, 0.12))
"""Where on the handle its upward arrow is [m]."""


class Windows(Viewed):
    """A view_node and windows on its page."""

    def __init__(self, world, browser, **parameters):
        super().__init__(world, **parameters)
        self._browser, self._windows = browser, []

    def window(self):
        self._windows.append(self._browser.open(self.address))
        return self._windows[-1]

    def close(self):
        """Close its windows: those that nobody looks at draw on, and take the next test's time."""
        for window in self._windows:
            window.close()


@pytest.fixture
def view(world, browser):
    """Return a function that starts a view_node."""
    started = []

    def start(**parameters):
        started.append(Windows(world, browser, **parameters))
        return started[-1]

    yield start
    for viewed in started:
        viewed.close()


def wait_for_line(window, name, text):
    """Return what a line of the page says once it matches ``text``."""

    def look():
        told = window.evaluate(
            f"""() => document.querySelector('[data-line="{name}"]')?.innerText ?? ''"""
        )
        return re.search(text, told)

    return wait_for(look, PATIENCE, f'{name}: {text}').string


def coloured(window, pixel):
    """Return whether an arrow is drawn at ``pixel``."""
    x, y = pixel.astype(int)
    around = window.picture()[y - 3 : y + 4, x - 3 : x + 4]
    return np.ptp(around, axis=-1).max() > 80


class Hand:
    """A person at a window, with the goal's handle in reach."""

    def __init__(self, window, space):
        """``space``: low and high corner (3,) [m] of the workspace, in whose middle it waits."""
        self.window, self.low, self.high = window, *space
        self.middle = (self.low + self.high) / 2.0
        wait_for_line(window, 'Policy', 'goal')
        self._camera = still_camera(window, self.middle)
        self.wait_for_handle()

    def wait_for_handle(self):
        """Return when the handle is where it was at first."""
        wait_for(lambda: coloured(self.window, self.pixel(0.0)), PATIENCE, 'the handle')

    def pixel(self, way):
        """Return where the handle's upward arrow is seen if it was dragged by ``way`` [m]."""
        return project(self._camera, self.middle + GRIP + (0.0, 0.0, way))

    def drag(self, way):
        """Drag the handle upwards by ``way`` [m] and let it go."""
        self.window.drag(self.pixel(0.0), self.pixel(way))

    def drag_until_sent(self, way, goals):
        """Drag it, again if that came too late; return the goal that was sent."""

        def drag():
            self.wait_for_handle()
            self.drag(way)

        self.repeat_until(drag, lambda: goals.messages, 'a goal')
        return goals.messages[0]

    def repeat_until(self, action, condition, what):
        """Do something until ``condition``, again once a note has gone that it came too late."""
        while True:
            action()
            wait_for(lambda: condition() or self._is_late(), PATIENCE, what)
            if condition():
                return
            wait_for(lambda: not self._is_late(), PATIENCE, 'the note to go')

    def _is_late(self):
        text = self.window.text()
        return 'too long ago' in text or 'before the last stop' in text


@pytest.fixture
def hand(deploy, view):
    """Return a function: a deployed policy, and one that sits a person at its page."""

    def start():
        deployed = deploy('joint_trajectory')
        deployed.wait_until_active()
        space = np.array(deployed.status().workspace)
        viewed = view()
        return deployed, lambda: Hand(viewed.window(), space)

    return start


def test_it_waits_for_an_arm_shows_it_and_sees_it_go(world, view):
    viewed = view()
    with viewed.window() as window:
        wait_for_line(window, 'Arm', 'waiting for robot_description and joint_states')
        blank = window.picture()
        arm = FakeArm(world.peer(), 'joint_position')
        wait_for_line(window, 'Arm', 'from joint_states')
        wait_for(lambda: changed(window, blank) > 5000, PATIENCE, 'the arm')
        at_home = settled(window)
        arm.positions = arm.positions + np.array((0.0, 0.3, 0.0, 0.3, 0.0, 0.0, 0.0))
        wait_for(lambda: changed(window, at_home) > 1000, PATIENCE, 'the arm to move')
        arm.is_silent = True
        wait_for_line(window, 'Arm', 'waiting for joint_states')
        arm.close()
    assert viewed.node.is_running()


def changed(window, before):
    """Return how many pixels of the picture have changed."""
    width = before.shape[1] * 2 // 3  # the rest is text
    return (np.abs(window.picture() - before)[:, :width].max(axis=-1) > 30).sum()


def settled(window):
    """Return the picture once it stays as it is."""
    shown = [window.picture()]

    def is_still():
        shown.append(window.picture())
        return (shown[-1] == shown[-2]).all()

    wait_for(is_still, PATIENCE, 'a picture that stays')
    return shown[-1]


def test_a_goal_is_sent_where_the_handle_is_let_go_and_the_arm_goes_there(hand):
    deployed, sit = hand()
    person = sit()
    goals = deployed.peer.listen(PoseStamped, 'goal_pose')
    goal = person.drag_until_sent(0.08, goals)
    assert goal.header.frame_id == 'world'
    place = vector(goal.pose.position)
    np.testing.assert_allclose(place, person.middle + (0.0, 0.0, 0.08), atol=0.005)
    assert len(goals.messages) == 1
    wait_for_line(person.window, 'Distance', 'reached')
    assert np.linalg.norm(deployed.arm.tool - place) < 0.025


def test_a_handle_that_stops_have_replaced_can_be_dragged(hand):
    deployed, sit = hand()
    person = sit()
    goals = deployed.peer.listen(PoseStamped, 'goal_pose')
    for _ in range(5):
        deployed.trigger('stop')
        deployed.trigger('clear')
    goal = person.drag_until_sent(0.08, goals)
    np.testing.assert_allclose(
        vector(goal.pose.position), person.middle + (0.0, 0.0, 0.08), atol=0.005
    )


def test_a_goal_that_is_refused_is_said_to_be_and_the_handle_goes_back(hand):
    deployed, sit = hand()
    person = sit()
    person.repeat_until(
        lambda: person.drag(0.6),
        lambda: 'The goal was refused' in person.window.text(),
        'the refusal',
    )
    person.wait_for_handle()
    assert not deployed.commands.messages


def test_a_window_that_is_closed_while_dragging_sends_no_goal(hand):
    deployed, sit = hand()
    person = sit()
    goals = deployed.peer.listen(PoseStamped, 'goal_pose')
    with person.window.holding(person.pixel(0.0)) as move:
        move(person.pixel(0.08))
        person.window.close()
    deployed.wait_for_heartbeats(5)
    other = sit()  # the handle is back where it was
    assert not goals.messages
    other.drag_until_sent(0.08, goals)


def test_the_stop_button_stops_the_arm_until_it_is_resumed(hand):
    deployed, sit = hand()
    person = sit()
    deployed.move()
    person.window.press('Stop the arm')
    wait_for_line(person.window, 'Policy', 'stopped; press Resume')
    assert stops(deployed.commands.messages)[-1]
    deployed.expect_no_goal_is_taken()
    person.repeat_until(
        lambda: person.window.press('Resume'),
        lambda: 'there is no goal' in person.window.text(),
        'the stop to be cleared',
    )
    goals = deployed.peer.listen(PoseStamped, 'goal_pose')
    person.repeat_until(
        lambda: person.window.press('Random goal'), lambda: goals.messages, 'a goal'
    )
    goal = vector(goals.messages[0].pose.position)
    assert (person.low <= goal).all() and (goal <= person.high).all()
    wait_for_line(person.window, 'Distance', 'reached')
