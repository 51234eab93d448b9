"""What the page says, made of what nodes tell over real topics."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from mher_ros.ros.page_lines import duration_text, page_lines
from mher_ros.ros.watched_nodes import WatchedNodes
from mher_ros.view.live_page import Line
import pytest
from std_msgs.msg import Bool, Float64

pytestmark = pytest.mark.ros

WARN = DiagnosticStatus.WARN


class Counting(WatchedNodes):
    """Counts what it hears of arrivals."""

    count = 0

    def _take_distance(self, message):
        super()._take_distance(message)
        self.count += 1

    def _take_reached(self, message):
        super()._take_reached(message)
        self.count += 1


class Told:
    """Nodes that are heard, and what they say."""

    def __init__(self, world):
        self.listener, self.speaker = world.peer(), world.peer()
        self.nodes = Counting(self.listener.node)
        self._distance = self.speaker.talk(Float64, 'policy_node/distance')
        self._reached = self.speaker.talk(Bool, 'policy_node/reached')
        self._diagnostics = self.speaker.talk(DiagnosticArray, '/diagnostics')

    def status(self, name, message, figures, level=DiagnosticStatus.OK):
        self.say(name, message, figures, level)
        self.listener.wait_until(
            lambda: (found := self.nodes.status(name)) and found.message == message, message
        )

    def say(self, name, message, figures, level=DiagnosticStatus.OK):
        values = [KeyValue(key=key, value=value) for key, value in figures.items()]
        status = DiagnosticStatus(name=name, level=level, message=message, values=values)
        self._diagnostics.publish(DiagnosticArray(status=[status]))

    def arrive(self, distance, reached):
        self.hears_distance(distance)
        self.hears_reached(reached)

    def hears_distance(self, distance):
        self._hears(self._distance, Float64(data=distance))

    def hears_reached(self, reached):
        self._hears(self._reached, Bool(data=reached))

    def _hears(self, publisher, message):
        """Publish it, and return when it was taken."""
        count = self.nodes.count
        publisher.publish(message)
        self.listener.wait_until(lambda: self.nodes.count > count, 'the message')

    def lines(self):
        return {line.name: line for line in page_lines(self.nodes)}


@pytest.fixture
def told(world):
    """Return nodes that say what the test wants."""
    return Told(world)


def test_where_nobody_is_heard_that_is_said(told):
    assert told.lines()['Policy'].text == 'no policy_node and no train_node is running'


def test_a_policy_tells_its_state_its_distance_and_its_speed(told):
    told.status('policy_node', 'the tool has left its box', {'speed cap [m/s]': '0.25'}, WARN)
    told.arrive(0.0123, True)
    lines = told.lines()
    assert lines['Policy'].text == 'the tool has left its box'
    assert lines['Policy'].is_good is False
    assert (lines['Distance'].text, lines['Distance'].is_good) == ('12.3 mm, reached', True)
    assert lines['Speed'].text == 'at most 0.25 m/s'


def test_a_stop_is_told_as_to_a_person_at_the_page(told):
    sentence = 'stopped until the stop is cleared: somebody called ~/stop'
    told.status('policy_node', sentence, {'stopped': 'true'}, WARN)
    assert told.lines()['Policy'] == Line('Policy', 'stopped; press Resume', False)


def test_a_distance_is_shown_with_what_was_told_of_it_and_never_of_another(told):
    told.status('policy_node', 'moving', {})
    told.arrive(0.0123, True)
    told.hears_distance(0.1026)  # of a new goal
    assert told.lines()['Distance'].text == '12.3 mm, reached'
    told.hears_reached(False)
    assert told.lines()['Distance'] == Line('Distance', '102.6 mm')
    told.hears_reached(False)  # there is no goal any more
    assert 'Distance' not in told.lines()


def test_a_run_tells_how_far_it_is(told):
    figures = {
        'environment steps': '175',
        'steps at most': '1000',
        'epoch': '3',
        'success rate': '0.96',
        'time left [s]': '125.4',
    }
    told.status('train_node', 'learning', figures)
    lines = told.lines()
    assert lines['Steps'].text == '175 of at most 1000'
    assert lines['Epoch'].text == '3'
    assert lines['Success'].text == '96 % of the test goals'
    assert lines['Left'].text == 'at most 2 min 5 s'


def test_figures_that_are_none_are_left_out(told):
    figures = {'success rate': '', 'time left [s]': 'nan', 'epoch': ''}
    told.status('train_node', 'starting', figures)
    assert set(told.lines()) == {'Training'}


def test_a_node_of_another_namespace_is_not_meant(told):
    told.say('other/policy_node', 'moving', {})
    told.status('train_node', 'learning', {})  # so that has come, too
    assert 'Policy' not in told.lines()


@pytest.mark.parametrize(
    ('seconds', 'text'),
    [(0.4, '0 s'), (59.6, '1 min 0 s'), (61, '1 min 1 s'), (7260, '2 h 1 min')],
)
def test_times_are_said_in_minutes_and_seconds(seconds, text):
    assert duration_text(seconds) == text
