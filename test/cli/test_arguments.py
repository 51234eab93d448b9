"""What texts on the command line are read as."""

import argparse

from mher_ros.cli.arguments import port, positives
import pytest


def test_whole_numbers_are_read_between_commas():
    assert positives('25,100,500') == [25, 100, 500]


@pytest.mark.parametrize('text', ['', '25,', '0', '1.5', 'fast'])
def test_what_is_no_list_of_whole_numbers_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match='a whole number of at least 1, got'):
        positives(text)


def test_a_port_is_any_that_tcp_has_or_0():
    assert [port(text) for text in ('0', '8080', '65535')] == [0, 8080, 65535]


@pytest.mark.parametrize('text', ['', '-1', '65536', '80.0', 'http'])
def test_what_is_no_port_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match='a whole number from 0 to 65535, got'):
        port(text)
