"""What the page says, made of what nodes publish as their status."""

from mher_ros.ros.common.status import DeploymentStatus, Level, TrainingStatus
from mher_ros.ros.web.watched_nodes import duration_text, page_lines
from mher_ros.view.live_page import Line
import pytest

pytestmark = pytest.mark.ros


def lines_of(policy=None, training=None):
    return {line.name: line for line in page_lines(policy, training)}


def test_where_no_node_is_that_is_said():
    assert lines_of()['Policy'].text == 'no policy_node and no train_node is running'


def test_a_policy_tells_its_state_its_distance_and_its_speed():
    reason = 'the tool has left its box'
    lines = lines_of(
        DeploymentStatus('outside_box', reason, Level.WARN, speed_cap=0.25, distance=0.0123)
    )
    assert lines['Policy'] == Line('Policy', reason, False)
    assert lines['Distance'] == Line('Distance', '12.3 mm')
    assert lines['Speed'].text == 'at most 0.25 m/s'


def test_what_is_near_and_what_is_wrong_with_obstacles_is_said():
    near = ('post', 'wrist_flex_link', 0.0234)
    lines = lines_of(
        DeploymentStatus('running', 'moving', nearest=near, obstacle_text='box/1: too large'),
        TrainingStatus('learning', 'learning', ended_by='joint_outside'),
    )
    assert lines['Nearest'].text == '23 mm between post and wrist_flex_link'
    assert lines['Obstacle'] == Line('Obstacle', 'box/1: too large', False)
    assert lines['Stopped'] == Line('Stopped', 'joint_outside', False)
    lines = lines_of(training=TrainingStatus('learning', 'learning', nearest=near))
    assert lines['Nearest'].text == '23 mm between post and wrist_flex_link'


def test_a_goal_that_is_reached_is_said_to_be():
    lines = lines_of(DeploymentStatus('running', 'moving', distance=0.0123, reached=True))
    assert lines['Policy'].is_good is True
    assert lines['Distance'] == Line('Distance', '12.3 mm, reached', True)


def test_a_stop_is_told_as_to_a_person_at_the_page():
    reason = 'stopped until the stop is cleared: ~/stop was called'
    lines = lines_of(DeploymentStatus('stopped', reason, Level.WARN, stopped=True))
    assert lines['Policy'] == Line('Policy', 'stopped; press Resume', False)


def test_a_run_tells_how_far_it_is():
    lines = lines_of(
        training=TrainingStatus(
            'learning',
            'learning',
            steps=175,
            most_steps=1000,
            epoch=3,
            success_rate=0.96,
            seconds_left=125.4,
        )
    )
    assert 'Policy' not in lines
    assert lines['Training'] == Line('Training', 'learning', True)
    assert lines['Steps'].text == '175 of at most 1000'
    assert lines['Epoch'].text == '3'
    assert lines['Success'].text == '96 % of the test goals'
    assert lines['Left'].text == 'at most 2 min 5 s'


def test_what_is_not_known_is_left_out():
    assert set(lines_of(DeploymentStatus('unconfigured', 'not configured'))) == {'Policy'}
    assert set(lines_of(training=TrainingStatus('starting'))) == {'Training', 'Steps', 'Epoch'}


@pytest.mark.parametrize(
    ('seconds', 'text'),
    [(0.4, '0 s'), (59.6, '1 min 0 s'), (61, '1 min 1 s'), (7260, '2 h 1 min')],
)
def test_times_are_said_in_minutes_and_seconds(seconds, text):
    assert duration_text(seconds) == text
