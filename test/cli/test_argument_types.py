"""What texts on the command line are read as."""

import argparse

from mher_ros.cli.argument_types import positives
import pytest


def test_whole_numbers_are_read_between_commas():
    assert positives('25,100,500') == [25, 100, 500]


@pytest.mark.parametrize('text', ['', '25,', '0', '1.5', 'fast'])
def test_what_is_no_list_of_whole_numbers_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match='a whole number of at least 1, got'):
        positives(text)
