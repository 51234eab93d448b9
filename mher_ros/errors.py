"""What can go wrong that the person in front of it can put right."""

__all__ = ['ArmError', 'EpisodeLostError', 'MherError', 'StopAsked', 'TRIES']

TRIES = 10
"""Times an episode is begun before the arm is given up."""


class MherError(Exception):
    """Base of all errors whose message says what was expected and what came instead."""


class ArmError(MherError):
    """The arm does not do what an episode needs."""


class EpisodeLostError(ArmError):
    """The state of an episode can no longer be trusted; it is begun up to ``TRIES`` times."""


class StopAsked(MherError):
    """Somebody wants the run to stop, in the middle of an episode or an evaluation."""
