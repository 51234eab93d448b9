"""Declared options: reading, checking, and what is said of a wrong one."""

import dataclasses
import math

from hypothesis import given
from hypothesis import strategies as st
from mher_ros.options import check, describe, option, OptionError, override
import numpy as np
import pytest


@dataclasses.dataclass(frozen=True)
class Section:
    hidden: tuple[int, ...] = option((64, 32), 'units of each layer', low=1)
    rate: float = option(0.5, 'a share', low=0.0, high=1.0)
    ceiling: float = option(0.0, 'no more than', high=5.0)


@dataclasses.dataclass(frozen=True)
class Options:
    label: str = 'undeclared'
    count: int = option(3, 'how many', low=1)
    quick: bool = option(False, 'whether to hurry')
    kind: str = option('round', 'which shape', choices=('round', 'square'))
    free: str = option('word', 'any word')
    section: Section = dataclasses.field(default_factory=Section)


@dataclasses.dataclass(frozen=True)
class WithoutDefault:
    name: str
    count: int = option(3, 'how many', low=1)


KEYS = 'count, free, kind, quick, section.ceiling, section.hidden, section.rate'


@pytest.mark.parametrize(
    ('key', 'text', 'value'),
    [
        ('count', '7', 7),
        ('quick', 'true', True),
        ('quick', 'False', False),
        ('kind', 'square', 'square'),
        ('free', '12', '12'),
        ('section.rate', '1', 1.0),
        ('section.rate', '1e-3', 0.001),
        ('section.hidden', '8,16,8', (8, 16, 8)),
        ('section.hidden', ' 8 , 16 ', (8, 16)),
        ('section.hidden', '8', (8,)),
        ('section.hidden', [8, 16], (8, 16)),
        ('section.rate', 1, 1.0),
        ('section.rate', np.float64(0.25), 0.25),
    ],
)
def test_text_and_numbers_are_read_as_the_type_of_the_option(key, text, value):
    changed = {name: v for name, v, _ in describe(override(Options(), {key: text}))}[key]
    assert changed == value
    assert type(changed) is type(value)


def test_only_what_was_named_is_changed():
    before = Options()
    after = override(before, {'section.rate': '0.25', 'count': 9})
    assert after == dataclasses.replace(before, count=9, section=Section(rate=0.25))
    assert before == Options()


@pytest.mark.parametrize(
    ('key', 'known'),
    [
        *((key, KEYS) for key in ('colour', 'section', 'section.', 'count.more', '', '.')),
        ('section.colour', 'section.ceiling, section.hidden, section.rate'),
    ],
)
def test_unknown_key_is_refused_with_those_there_are(key, known):
    with pytest.raises(OptionError) as caught:
        override(Options(), {key: '1'})
    assert str(caught.value) == f'unknown key {key!r}; the keys are {known}'


@pytest.mark.parametrize('options', [Options(), WithoutDefault('a')])
def test_field_that_is_not_declared_as_an_option_is_no_key(options):
    key = dataclasses.fields(options)[0].name
    with pytest.raises(OptionError, match=f'unknown key {key!r}'):
        override(options, {key: 'changed'})


@pytest.mark.parametrize(
    ('key', 'value', 'message'),
    [
        ('count', 'many', "count takes a whole number, got 'many'"),
        ('count', '1.5', "count takes a whole number, got '1.5'"),
        ('count', 1.5, 'count takes a whole number, got 1.5'),
        ('count', True, 'count takes a whole number, got True'),
        ('count', None, 'count takes a whole number, got None'),
        ('count', '', "count takes a whole number, got ''"),
        ('quick', 'yes', "quick takes true or false, got 'yes'"),
        ('quick', 1, 'quick takes true or false, got 1'),
        ('free', 3, 'free takes a word, got 3'),
        ('section.rate', 'half', "section.rate takes a number, got 'half'"),
        ('section.rate', True, 'section.rate takes a number, got True'),
        ('section.rate', [0.5], 'section.rate takes a number, got [0.5]'),
        (
            'section.hidden',
            '8,wide',
            "section.hidden takes numbers separated by commas (such as 64,32), got '8,wide'",
        ),
        (
            'section.hidden',
            '8,1.5',
            "section.hidden takes numbers separated by commas (such as 64,32), got '8,1.5'",
        ),
        (
            'section.hidden',
            '',
            'section.hidden takes numbers separated by commas (such as 64,32), got ()',
        ),
        (
            'section.hidden',
            (8, 1.5),
            'section.hidden takes numbers separated by commas (such as 64,32), got (8, 1.5)',
        ),
        (
            'section.hidden',
            8,
            'section.hidden takes numbers separated by commas (such as 64,32), got 8',
        ),
        ('kind', 'oval', "kind takes one of round, square; got 'oval'"),
        ('count', '0', 'count must be at least 1, got 0'),
        ('section.hidden', '8,0', 'section.hidden must be at least 1, got 0'),
        ('section.rate', '1.5', 'section.rate must be at least 0.0 and at most 1.0, got 1.5'),
        ('section.rate', -0.5, 'section.rate must be at least 0.0 and at most 1.0, got -0.5'),
        ('section.ceiling', '6', 'section.ceiling must be at most 5.0, got 6.0'),
        ('section.rate', 'nan', 'section.rate takes a finite number, got nan'),
        ('section.ceiling', '-inf', 'section.ceiling takes a finite number, got -inf'),
        ('section.ceiling', math.nan, 'section.ceiling takes a finite number, got nan'),
        ('section.ceiling', '1e999', 'section.ceiling takes a finite number, got inf'),
    ],
)
def test_wrong_value_is_refused_with_what_was_expected(key, value, message):
    with pytest.raises(OptionError) as caught:
        override(Options(), {key: value})
    assert str(caught.value) == message


def test_whole_number_too_large_for_a_float_is_refused():
    with pytest.raises(OptionError, match=r'section\.ceiling takes a number, got 1000'):
        override(Options(), {'section.ceiling': 10**400})


def test_limits_are_included():
    for rate in (0.0, 1.0):
        assert override(Options(), {'section.rate': rate}).section.rate == rate
    assert override(Options(), {'count': 1}).count == 1


def test_values_given_to_the_class_are_checked_by_check():
    check(Options())
    with pytest.raises(OptionError, match='run.count must be at least 1, got 0'):
        check(Options(count=0), 'run.')
    with pytest.raises(OptionError, match='run.section.rate takes a number, got 1'):
        check(Options(section=Section(rate=1)), 'run.')


def test_description_lists_every_declared_option_with_its_value_and_help():
    assert describe(Options(count=5), 'run.') == [
        ('run.count', 5, 'how many'),
        ('run.quick', False, 'whether to hurry'),
        ('run.kind', 'round', 'which shape'),
        ('run.free', 'word', 'any word'),
        ('run.section.hidden', (64, 32), 'units of each layer'),
        ('run.section.rate', 0.5, 'a share'),
        ('run.section.ceiling', 0.0, 'no more than'),
    ]


def as_text(value):
    return ','.join(map(str, value)) if isinstance(value, tuple) else str(value)


@given(
    st.builds(
        Options,
        count=st.integers(min_value=1),
        quick=st.booleans(),
        kind=st.sampled_from(['round', 'square']),
        free=st.text(),
        section=st.builds(
            Section,
            hidden=st.lists(st.integers(1, 10**6), min_size=1, max_size=5).map(tuple),
            rate=st.floats(0.0, 1.0),
            ceiling=st.floats(max_value=5.0, allow_nan=False, allow_infinity=False),
        ),
    )
)
def test_what_is_described_can_be_read_back_as_values_and_as_text(options):
    rows = describe(options)
    assert override(Options(), {key: value for key, value, _ in rows}) == options
    assert override(Options(), {key: as_text(value) for key, value, _ in rows}) == options


@given(st.text(), st.text())
def test_whatever_is_typed_is_read_or_refused_by_name(key, text):
    for name in (key, 'count', 'quick', 'section.hidden', 'section.rate'):
        try:
            changed = override(Options(), {name: text})
        except OptionError as error:
            assert repr(name) in str(error) or str(error).startswith(name)
        else:
            check(changed)
