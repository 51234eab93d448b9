"""Errors that a user can correct; the message says what was expected and what was found."""

from collections.abc import Iterator
import contextlib

TRIES = 10  # times an episode is started before the arm is given up
EXTRAS = {
    'gymnasium_robotics': 'train',
    'imageio': 'train',
    'matplotlib': 'bench',
    'metaworld': 'train',
    'onnx': 'train',
    'ray': 'ray',
    'rclpy': 'ros',
    'rich': 'train',
    'stable_baselines3': 'bench',
    'tensorboard': 'train',
    'torch': 'train',
    'trimesh': 'view',
    'viser': 'view',
}
"""Which extra of this package brings each module that is not always installed."""


class MherError(Exception):
    """Base of all errors whose message says what was expected and what was found."""


class MissingExtraError(MherError, ImportError):
    """A module that only an extra of this package brings."""


class ArmError(MherError):
    """The arm does not do what an episode needs."""


class EpisodeLostError(ArmError):
    """The state of an episode is not reliable; the episode is started up to ``TRIES`` times."""


class StopRequested(MherError):
    """The user wants the run to stop, during an episode or an evaluation."""


@contextlib.contextmanager
def explaining_missing_extras() -> Iterator[None]:
    """Turn the failed import of a module into the name of the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or '').partition('.')[0]
        if module not in EXTRAS:
            raise
        raise MissingExtraError(
            f"this needs {module}, not installed: pip install 'mher_ros[{EXTRAS[module]}]'"
        ) from error
