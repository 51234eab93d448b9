"""What nodes say of themselves, as messages and over DDS."""

from concurrent.futures import ThreadPoolExecutor
import dataclasses
import json

from diagnostic_msgs.msg import DiagnosticStatus
from mher_ros.ros.common.polled_topic import LATCHED, malformed_messages
from mher_ros.ros.common.raw_messages import MalformedError
from mher_ros.ros.common.status import (
    ACCEPTED,
    box_of,
    DeploymentStatus,
    Level,
    point_of,
    SimulationStatus,
    subscribe_status,
    TrainingStatus,
    ViewStatus,
)
from mher_ros.ros.web.watched_nodes import WatchedNodes
import numpy as np
import pytest

pytestmark = pytest.mark.ros

BOX = ((0.1, 0.2, 0.3), (1.0 / 3.0, 2.0, 1e-300))
POLICY = DeploymentStatus(
    'running',
    'commands are sent to the arm',
    Level.WARN,
    frame='base "link"',
    output='twist',
    workspace=BOX,
    box=BOX,
    threshold=0.05,
    speed_cap=0.25,
    moving=True,
    goal=(0.1, -0.0, 1.0 / 3.0),
    distance=0.1 + 0.2,
    last_drop='no_progress',
    accepted=3,
    refused=2,
    accepted_goal=(0.1, -0.0, 1.0 / 3.0),
    answer=ACCEPTED,
    answer_text='a sentence with ü',
    answered_position=(0.1, -0.0, 1.0 / 3.0),
    answered_frame='map',
)
SIMULATION = SimulationStatus(
    'running',
    'on time',
    arm='fetch',
    life=2**62 + 1,
    resets=7,
    seed=-1,
    reset_stamp=2**62 + 3,
    contacts=2,
    deepest_contact=0.1 + 0.2,
    contact_between='post and wrist',
)


@pytest.mark.parametrize(
    'status',
    [
        POLICY,
        DeploymentStatus(),
        SIMULATION,
        ViewStatus('serving', '1 looking', Level.ERROR, 'http://127.0.0.1:8080/', 1),
        TrainingStatus('starting', workspace=BOX, success_rate=1.0, seconds_left=None),
    ],
)
def test_a_status_comes_back_from_its_message_to_the_bit(status):
    message = status.to_message('left/policy_node')
    assert (message.name, message.message) == ('left/policy_node', status.reason)
    assert message.level == status.level.value
    assert type(status).from_message(message) == status


def spoilt(key, text):
    message = POLICY.to_message()
    for pair in message.values:
        if pair.key == key:
            pair.value = text
    return message


@pytest.mark.parametrize(
    ('key', 'text'),
    [
        ('state', 'running'),
        ('state', '3'),
        ('state', 'null'),
        ('distance', 'NaN'),
        ('distance', '-Infinity'),
        ('distance', '"0.3"'),
        ('distance', 'true'),
        ('distance', '1e999'),
        ('distance', '1' + 400 * '0'),
        ('distance', 5000 * '1'),
        ('reached', '1'),
        ('reached', 'null'),
        ('accepted', '1.0'),
        ('accepted', 'true'),
        ('goal', '[1, 2]'),
        ('goal', '[1, 2, 3, 4]'),
        ('goal', '[1, 2, null]'),
        ('goal', '[1, 2, NaN]'),
        ('goal', '{"0": 1, "1": 2, "2": 3}'),
        ('goal', '"abc"'),
        ('goal', 100_000 * '['),
        ('workspace', '[1, 2, 3]'),
        ('workspace', '[[1, 2, 3], null]'),
        ('workspace', ''),
    ],
)
def test_a_value_that_is_none_of_its_kind_is_refused_by_name(key, text):
    with pytest.raises(MalformedError, match=f'^{key}: '):
        DeploymentStatus.from_message(spoilt(key, text))


def test_a_message_without_a_field_or_of_another_level_is_refused():
    message = POLICY.to_message()
    message.values = [pair for pair in message.values if pair.key != 'goal']
    with pytest.raises(MalformedError, match='^goal: '):
        DeploymentStatus.from_message(message)
    message = POLICY.to_message()
    message.level = DiagnosticStatus.STALE
    with pytest.raises(MalformedError, match='^level'):
        DeploymentStatus.from_message(message)


def test_whole_numbers_are_distances_and_more_values_do_no_harm():
    message = spoilt('distance', '2')
    message.values.append(dataclasses.replace(ViewStatus()).to_message().values[-1])
    assert DeploymentStatus.from_message(message) == dataclasses.replace(POLICY, distance=2.0)


def test_positions_of_two_entries_lie_at_height_0_and_others_than_numbers_are_none():
    assert point_of(np.array((1.0, 2.0), np.float32)) == (1.0, 2.0, 0.0)
    box = box_of((1, 2), np.array((4, 5)))
    assert json.dumps(box) == '[[1.0, 2.0, 0.0], [4.0, 5.0, 0.0]]'
    assert point_of((1.0, np.nan, 2.0)) is None
    assert point_of(None) is None
    assert box_of((0.0, 0.0), (np.inf, 1.0)) is None


def test_who_comes_late_gets_the_last_status_and_survives_one_that_is_none(world):
    speaker, late = world.peer(), world.peer()
    publisher = speaker.node.create_publisher(DiagnosticStatus, 'policy_node/status', LATCHED)
    publisher.publish(POLICY.to_message())
    came = []
    topic = subscribe_status(late.node, DeploymentStatus, 'policy_node', came.append)
    assert topic == '/policy_node/status'
    late.wait_until(lambda: came == [POLICY], 'the status')
    publisher.publish(spoilt('goal', '[1]'))
    late.wait_until(lambda: malformed_messages(late.node) == 1, 'the malformed one')
    publisher.publish(dataclasses.replace(POLICY, goal=None).to_message())
    late.wait_until(lambda: len(came) == 2, 'the next')
    assert came[1].goal is None


class Watched:
    """Nodes as the page knows them, and one that publishes for them."""

    def __init__(self, world, remap=()):
        self.peer = world.peer(remap)
        self.nodes = WatchedNodes(self.peer.node)

    def publisher(self, topic):
        return self.peer.talk(DiagnosticStatus, topic, LATCHED)


def test_the_frame_is_that_of_the_policy_or_else_of_the_run(world):
    watched = Watched(world)
    nodes = watched.nodes
    assert (nodes.policy.latest, nodes.training.latest) == (None, None)
    assert (nodes.frame, nodes.workspace) == ('', None)
    training = TrainingStatus('learning', frame='world', workspace=BOX)
    policy, train = map(watched.publisher, ('policy_node/status', 'train_node/status'))
    train.publish(training.to_message())
    policy.publish(DeploymentStatus('unconfigured').to_message())
    watched.peer.wait_until(lambda: nodes.policy.latest and nodes.training.latest, 'both')
    assert (nodes.frame, nodes.workspace) == ('world', BOX)
    policy.publish(POLICY.to_message())
    watched.peer.wait_until(lambda: nodes.frame == POLICY.frame, 'the frame of the policy')


def test_a_node_of_another_namespace_is_not_meant(world):
    watched = Watched(world, {'__ns': '/left'})
    other = watched.peer.node.create_publisher(DiagnosticStatus, '/policy_node/status', LATCHED)
    other.publish(POLICY.to_message())
    watched.publisher('train_node/status').publish(TrainingStatus('learning').to_message())
    watched.peer.wait_until(lambda: watched.nodes.training.latest, 'the run')
    assert watched.nodes.policy.latest is None


def test_a_node_that_is_not_configured_and_one_that_is_being_say_so(deploy):
    deployed = deploy(tells_model=False, autostart=False, model_timeout=0.5)
    statuses = deployed.peer.follow(DeploymentStatus, 'policy_node')
    first = statuses.wait_for(after=0)
    assert (first.state, first.level, first.is_active) == ('unconfigured', Level.OK, False)
    assert (first.frame, first.workspace, first.speed_cap) == ('', None, None)
    deployed.trigger('stop')
    assert statuses.wait_for(lambda status: status.stopped, after=-2).state == 'unconfigured'
    deployed.trigger('clear')
    seen = len(statuses.messages)
    assert not deployed.change('configure')
    states = [status.state for status in statuses.messages[seen:]]
    statuses.wait_for(lambda status: status.state == 'configuring', after=seen)
    failed = statuses.wait_for(lambda status: status.level is Level.ERROR, after=seen)
    assert failed.state == 'unconfigured', states
    assert 'no model of the arm was received' in failed.reason
    deployed.arm.tell_model()
    assert deployed.change('configure')
    status = statuses.wait_for(lambda status: status.state == 'inactive', after=-2)
    assert (status.frame, status.level) == ('world', Level.OK)
    assert deployed.change('activate')
    statuses.wait_for(lambda status: status.is_active, after=-2)
    assert deployed.change('deactivate')
    statuses.wait_for(lambda status: status.state == 'inactive', after=-2)
    assert deployed.change('cleanup')
    statuses.wait_for(lambda status: status.state == 'unconfigured', after=-2)


def test_a_stop_while_the_node_is_being_configured_is_published_meanwhile(deploy):
    deployed = deploy(tells_model=False, autostart=False, model_timeout=60.0)
    statuses = deployed.peer.follow(DeploymentStatus, 'policy_node')
    with ThreadPoolExecutor() as pool:
        configured = pool.submit(deployed.change, 'configure')  # the executor is busy with it
        deployed.node.wait_for('waiting for the model of the arm')
        deployed.trigger('stop')
        status = statuses.wait_for(lambda status: status.stopped, after=0)
        assert (status.state, status.level) == ('configuring', Level.WARN)
        deployed.arm.tell_model()
        assert configured.result()
    status = statuses.wait_for(lambda status: status.state == 'inactive', after=-2)
    assert (status.stopped, status.level) == (True, Level.WARN)


@pytest.mark.parametrize('kind', [DeploymentStatus, TrainingStatus])
def test_the_nearest_parts_are_data(kind):
    status = kind(nearest=('block/3', 'wrist_flex_link', 0.0125))
    assert kind.from_message(status.to_message()) == status
    message = status.to_message()
    (pair,) = (pair for pair in message.values if pair.key == 'nearest')
    for wrong in ('["block/3", "wrist_flex_link"]', '["a", 1, 0.1]', '["a", "b", "c"]', '"a"'):
        pair.value = wrong
        with pytest.raises(MalformedError):
            kind.from_message(message)


def test_a_change_of_distances_alone_is_not_urgent():
    near = DeploymentStatus(nearest=('a', 'b', 0.1), distance=0.2)
    assert near.urgent == DeploymentStatus(nearest=('a', 'b', 0.3)).urgent
