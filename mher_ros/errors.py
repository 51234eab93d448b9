"""What can go wrong that the person in front of it can put right."""

__all__ = ['MherError']


class MherError(Exception):
    """Base of all errors whose message says what was expected and what came instead."""
