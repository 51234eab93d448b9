"""Declares the options of a node as ROS parameters."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from pathlib import Path
import sys
from typing import Any, TypeVar

from mher_ros.options import check, describe, option_text, OptionError, override
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter
import yaml

Options = TypeVar('Options')

OF_RCLPY = ('use_sim_time', 'start_type_description_service', 'qos_overrides.')
"""Parameters that rclpy declares."""
OF_LAUNCH = 'launch_params_'
"""Prefix of the files into which launch_ros writes the parameters of one node."""


def declare(node: Node, defaults: Options, changing: tuple[str, ...] = ()) -> Options:
    """
    Declare every option as a parameter and return the options with the given values.

    Parameters are read-only, except those named in ``changing``. The name of a nested option has
    the name of its section as a prefix: ``safety.state_timeout``.

    Unknown parameters are refused, unless they come from a file for several nodes (under ``/**``).
    A file that launch_ros has written is for this node alone, whatever name it contains.
    """
    options = _declare(node, defaults, changing, '')
    known = {key for key, _, _ in describe(defaults)}
    unknown = [
        name
        for name in node._parameter_overrides
        if name not in known and not name.startswith(OF_RCLPY)
    ]
    if unknown:
        shared = _shared_parameters(sys.argv)
        for name in unknown:
            if name not in shared:
                raise OptionError(
                    f'{node.get_name()} has no parameter {name!r}; it has '
                    f'{", ".join(sorted(known))}'
                )
        node.get_logger().warning(
            f'ignored parameters for several nodes that {node.get_name()} does not have: '
            f'{", ".join(sorted(unknown))}'
        )
    check(options)
    return options


def _shared_parameters(command: Sequence[str]) -> set[str]:
    """Return the names that files set for any node, and nothing sets for this one."""
    shared: set[str] = set()
    own: set[str] = set()
    for option, value in zip(command, command[1:], strict=False):
        if option in ('-p', '--param'):
            own.add(value.partition(':=')[0].rpartition(':')[2])
        elif option == '--params-file':
            # rclpy has read the file before, so it is valid.
            path = Path(value)
            content = yaml.safe_load(path.read_text(encoding='utf-8'))
            for key, node in content.items():
                is_for_any = key.rpartition('/')[2] in ('*', '**')
                names = shared if is_for_any and not path.name.startswith(OF_LAUNCH) else own
                names.update(_names(node.get('ros__parameters', {})))
    return shared - own


def _names(parameters: Mapping[str, Any], prefix: str = '') -> Iterator[str]:
    """Yield the names of nested parameters, with dots between their parts."""
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _names(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}'


def _declare(node: Node, defaults: Any, changing: tuple[str, ...], prefix: str) -> Any:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(defaults):
        name, default = prefix + field.name, getattr(defaults, field.name)
        if dataclasses.is_dataclass(default):
            values[field.name] = _declare(node, default, changing, f'{name}.')
            continue
        given = node._parameter_overrides.get(name)
        if isinstance(default, float) and given and type(given.value) is int:
            # Accept 2 for 2.0.
            given = Parameter(name, value=float(given.value))
            node._parameter_overrides[name] = given
        descriptor = _descriptor(field, read_only=name not in changing)
        # Several numbers are a text, such as 0,0,90; an array is accepted, too.
        usual = option_text(default) if isinstance(default, tuple) else default
        try:
            value = node.declare_parameter(name, usual, descriptor).value
        except (InvalidParameterTypeException, InvalidParameterValueException):
            value = given.value if given else default  # `check` reports what is wrong
        if isinstance(default, tuple):
            numbers = value if isinstance(value, str | int | float) else list(value)
            value = getattr(override(defaults, {field.name: numbers}, prefix), field.name)
        values[field.name] = value
    return dataclasses.replace(defaults, **values)


def _descriptor(field: Any, read_only: bool) -> ParameterDescriptor:
    limits = field.metadata
    descriptor = ParameterDescriptor(description=limits['help'], read_only=read_only)
    if limits['choices'] is not None:
        choices = ', '.join(map(str, limits['choices']))
        descriptor.additional_constraints = f'one of {choices}'
    low, high = limits['low'], limits['high']
    is_number = not isinstance(field.default, tuple)
    if is_number and (low is not None or high is not None):
        if isinstance(field.default, float):
            low, high = (-1.7e308 if low is None else low), (1.7e308 if high is None else high)
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(low), to_value=float(high))
            ]
        else:
            low, high = (-(2**63) if low is None else low), (2**63 - 1 if high is None else high)
            descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
    return descriptor
