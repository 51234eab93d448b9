"""What can go wrong that the person in front of it can put right."""

__all__ = ['ArmError', 'EpisodeLostError', 'MherError', 'StopAsked']


class MherError(Exception):
    """Base of all errors whose message says what was expected and what came instead."""


class ArmError(MherError):
    """The arm does not do what an episode needs."""


class EpisodeLostError(ArmError):
    """The state of an episode can no longer be trusted; the episode can be done again."""


class StopAsked(MherError):
    """Somebody wants the run to stop, in the middle of an episode or an evaluation."""
