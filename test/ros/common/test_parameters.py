"""Options of nodes as ROS parameters."""

import dataclasses

from mher_ros.options import describe, option, OptionError
from mher_ros.ros.common.parameters import declare
from mher_ros.ros.sim.sim_node import SimOptions
from mher_ros.ros.train.train_node import TrainOptions
import pytest
from rcl_interfaces.msg import ParameterType
import rclpy
from rclpy.context import Context
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.parameter import Parameter


@dataclasses.dataclass(frozen=True)
class Options:
    speed: float = option(0.5, 'how fast [m/s]', low=0.0, high=2.0)
    count: int = option(3, 'how many', low=1)
    mode: str = option('slow', 'how', choices=('slow', 'fast'))
    loud: bool = option(False, 'whether it is heard')


@pytest.fixture
def node(monkeypatch):
    """Return a function that makes a node with parameters given on its command line."""
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    made = []

    def make(*given, files=()):
        context = Context()
        words = [word for pair in given for word in ('-p', pair)]
        words += [word for file in files for word in ('--params-file', str(file))]
        rclpy.init(args=['--ros-args', *words], context=context)
        monkeypatch.setattr('sys.argv', ['some_node', '--ros-args', *words])
        node = rclpy.create_node('some_node', context=context)
        made.append((node, context))
        return node

    yield make
    for node, context in made:
        node.destroy_node()
        context.try_shutdown()


def test_defaults_hold_where_nothing_is_given(node):
    assert declare(node(), Options()) == Options()


def test_what_is_given_is_returned_and_declared(node):
    some_node = node('speed:=1.5', 'count:=7', 'mode:=fast', 'loud:=true')
    assert declare(some_node, Options()) == Options(1.5, 7, 'fast', True)
    assert some_node.get_parameter('speed').value == 1.5


def test_a_whole_number_is_taken_for_a_float(node):
    some_node = node('speed:=2')
    speed = declare(some_node, Options()).speed
    assert (type(speed), speed) == (float, 2.0)
    assert some_node.get_parameter('speed').type_ is Parameter.Type.DOUBLE


@pytest.mark.parametrize(
    ('given', 'sentence'),
    [
        ('speed:=3.0', 'speed must be at least 0.0 and at most 2.0, got 3.0'),
        ('speed:=-1', 'speed must be at least 0.0 and at most 2.0, got -1.0'),
        ('speed:=.nan', 'speed takes a finite number, got nan'),
        ('speed:=fast', "speed takes a number, got 'fast'"),
        ('count:=0', 'count must be at least 1, got 0'),
        ('count:=2.0', 'count takes a whole number, got 2.0'),
        ('count:=true', 'count takes a whole number, got True'),
        ('mode:=medium', "mode takes one of slow, fast; got 'medium'"),
        ('mode:=1', 'mode takes a word, got 1'),
        ('loud:=1', 'loud takes true or false, got 1'),
        ('sped:=1.0', "some_node has no parameter 'sped'; it has count, loud, mode, speed"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_was_expected_and_what_came(node, given, sentence):
    with pytest.raises(OptionError) as caught:
        declare(node(given), Options())
    assert str(caught.value) == sentence


def test_parameters_of_every_node_are_not_taken_for_unknown(node):
    assert declare(node('use_sim_time:=true'), Options()) == Options()


SHARED = """
/**:
  ros__parameters:
    some_shared_thing: 3
    nested: {thing: [1, 2]}
    speed: 1.5
"""


@pytest.fixture
def warnings(monkeypatch):
    """Return the warnings that nodes log."""
    logged = []
    monkeypatch.setattr(RcutilsLogger, 'warning', lambda self, text, **_: logged.append(text))
    return logged


@pytest.mark.parametrize('key', ['/**', '/*', '/**/**'])
def test_parameters_of_others_in_a_shared_file_are_passed_over(node, tmp_path, warnings, key):
    file = tmp_path / 'shared.yaml'
    file.write_text(SHARED.replace('/**', key))
    assert declare(node(files=[file]), Options()) == Options(speed=1.5)
    (text,) = warnings
    assert 'nested.thing, some_shared_thing' in text


@pytest.mark.parametrize('own', ['some_node', '/some_node', '/**/some_node'])
def test_a_misspelt_parameter_under_its_own_name_is_refused(node, tmp_path, warnings, own):
    shared, file = tmp_path / 'shared.yaml', tmp_path / 'own.yaml'
    shared.write_text(SHARED)
    file.write_text(f'{own}:\n  ros__parameters:\n    sped: 0.1\n')
    with pytest.raises(OptionError, match="some_node has no parameter 'sped'"):
        declare(node(files=[shared, file]), Options())
    with pytest.raises(OptionError, match="has no parameter 'some_shared_thing'"):
        declare(node('some_shared_thing:=3', files=[shared]), Options())


def test_a_misspelt_parameter_that_a_launch_file_gives_is_refused(node, tmp_path, warnings):
    shared, given = tmp_path / 'shared.yaml', tmp_path / 'launch_params_k3x_7q1w'
    shared.write_text(SHARED)
    given.write_text('/**:\n  ros__parameters:\n    speed: 0.5\n    sped: 0.1\n')
    with pytest.raises(OptionError, match="some_node has no parameter 'sped'"):
        declare(node(files=[shared, given]), Options())
    assert not warnings


def test_what_a_launch_file_and_a_shared_file_give_goes_together(node, tmp_path, warnings):
    shared, given = tmp_path / 'shared.yaml', tmp_path / 'launch_params_k3x_7q1w'
    shared.write_text(SHARED)
    given.write_text('/**:\n  ros__parameters:\n    count: 4\n')
    assert declare(node(files=[shared, given]), Options()) == Options(speed=1.5, count=4)
    (text,) = warnings
    assert 'some_shared_thing' in text


def test_a_parameter_tells_what_it_is_and_what_it_may_be(node):
    some_node = node()
    declare(some_node, Options())
    speed, count, mode = some_node.describe_parameters(['speed', 'count', 'mode'])
    assert (speed.type, speed.description) == (ParameterType.PARAMETER_DOUBLE, 'how fast [m/s]')
    assert speed.floating_point_range[0].from_value == 0.0
    assert speed.floating_point_range[0].to_value == 2.0
    assert count.integer_range[0].from_value == 1
    assert mode.additional_constraints == 'one of slow, fast'


def test_what_is_read_once_cannot_be_set_later(node):
    some_node = node()
    declare(some_node, Options(), changing=('count',))
    results = some_node.set_parameters(
        [
            Parameter('speed', value=1.0),
            Parameter('count', value=9),
            Parameter('count', value=0),
            Parameter('count', value='many'),
        ]
    )
    assert [result.successful for result in results] == [False, True, False, False]
    assert all(result.reason for result in results if not result.successful)
    assert some_node.get_parameter('speed').value == 0.5
    assert some_node.get_parameter('count').value == 9


@pytest.mark.parametrize('options', [SimOptions, TrainOptions])
def test_every_parameter_of_a_node_is_described_and_takes_its_default(node, options):
    some_node = node()
    assert declare(some_node, options()) == options()
    names = [name for name, _, _ in describe(options())]
    for descriptor in some_node.describe_parameters(names):
        assert len(descriptor.description) > 5
        if descriptor.type in (ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_INTEGER):
            assert descriptor.floating_point_range or descriptor.integer_range, descriptor.name


@dataclasses.dataclass(frozen=True)
class Several:
    turn: tuple[float, ...] = option((0.0, 0.0), 'some numbers', low=-1.0, high=1.0)


@pytest.mark.parametrize('text', ['0.5,-1', '[0.5, -1.0]'])
def test_several_numbers_are_a_text_or_an_array(node, text):
    assert declare(node(f'turn:={text}'), Several()) == Several(turn=(0.5, -1.0))


@pytest.mark.parametrize('text', ['0.5,x', '[0.5, 3.0]', '7'])
def test_several_numbers_that_are_wrong_are_refused(node, text):
    with pytest.raises(OptionError, match='turn'):
        declare(node(f'turn:={text}'), Several())
