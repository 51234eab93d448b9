"""
Episodes kept to be looked at: how the arm moved, under which goal, and what was learnt from it.

``episodes.npz`` holds E episodes of T steps, arrays of numbers and text alone:

    format           2
    joint_names      (q,)
    indices          (E,) number of each episode in the run, from 0
    env_steps        (E,) environment steps of the run before it
    successes        (E,)
    goals            (E, m)
    joints           (E, T + 1, q) positions
    achieved_goals   (E, T + 1, m)
    virtual_offsets  (V, m) those of all episodes, one after the other
    virtual_counts   (E,) how many of them belong to each
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import io
from pathlib import Path
from typing import Any
import zipfile

from mher_ros.errors import MherError
from mher_ros.files import read_at_most, write_atomically
from mher_ros.interface import TaskInterface
from mher_ros.learning.replay import Episode
import numpy as np
from numpy.typing import NDArray

__all__ = ['EPISODES', 'EpisodeRecorder', 'EpisodesError', 'read_episodes', 'RecordedEpisode']

EPISODES = 'episodes.npz'
FORMAT = 2
MOST = 200
"""Episodes kept of a run; of a longer one, every second, every fourth and so on."""
MOST_BYTES = 2**28
"""Of a file, packed and unpacked; one of a task that comes along has some megabytes."""
MOST_VIRTUAL = 64
"""Offsets kept of a batch."""
KINDS = {
    'format': 'i',
    'joint_names': 'U',
    'indices': 'i',
    'env_steps': 'i',
    'successes': 'b',
    'goals': 'f',
    'joints': 'f',
    'achieved_goals': 'f',
    'virtual_offsets': 'f',
    'virtual_counts': 'i',
}
"""The file's arrays and their dtypes' kinds."""


class EpisodesError(MherError, ValueError):
    """A file of episodes that cannot be read; the message says which and why."""


@dataclasses.dataclass(frozen=True)
class RecordedEpisode:
    """One training episode of T steps; numbers are as exact as 32 bits are."""

    index: int
    """Its number in the run, from 0."""
    env_steps: int
    """Environment steps of the run before it."""
    success: bool
    """Whether its last step was at the goal."""
    goal: NDArray[np.float32]
    """(m,)"""
    joint_names: tuple[str, ...]
    joints: NDArray[np.float32]
    """(T + 1, q) positions [rad or m], in the order of ``joint_names``."""
    achieved_goals: NDArray[np.float32]
    """(T + 1, m)"""
    virtual_offsets: NDArray[np.float32]
    """
    (k, m), of the last batch that was learnt from after it; (0, m) if there was none.

    Each from the goal that a transition was collected under to the one that it was given.
    """


class EpisodeRecorder:
    """
    Keeps the first and the last episode of a run and, evenly spread, some between them.

    Which ones follows from the number of episodes alone, so a run that goes on keeps the same.
    """

    def __init__(self, interface: TaskInterface, joint_names: Sequence[str]) -> None:
        self._interface, self._names = interface, tuple(joint_names)
        self._kept: list[RecordedEpisode] = []

    def add(
        self,
        index: int,
        env_steps: int,
        episode: Episode,
        joints: NDArray[np.float64],
    ) -> None:
        """Keep the episode of a number, before which there were ``env_steps``, as the last."""
        interface = self._interface
        achieved = interface.achieved_goal(episode.observations)
        last = RecordedEpisode(
            index,
            env_steps,
            bool(interface.reward(achieved[-1], episode.goal) == 0.0),
            episode.goal.astype(np.float32),
            self._names,
            joints.astype(np.float32),
            achieved.astype(np.float32),
            np.empty((0, len(interface.goal)), np.float32),
        )
        apart = _apart(index + 1)
        self._kept = [kept for kept in self._kept if kept.index % apart == 0]
        self._kept.append(last)

    def note_virtual_offsets(self, offsets: NDArray[np.float32] | None) -> None:
        """Take what was learnt from after the last episode, (k, m) if anything was."""
        if offsets is not None and self._kept:
            # Rows of a batch are in no order: the first ones are as good as any.
            made = offsets[:MOST_VIRTUAL].astype(np.float32)
            self._kept[-1] = dataclasses.replace(self._kept[-1], virtual_offsets=made)

    def resume(self, path: Path, episodes: int, steps: int) -> None:
        """
        Go on with what ``path`` holds of a run's first ``episodes``, each of ``steps`` steps.

        No file holds none of them; one that cannot be used raises EpisodesError.
        """
        if not path.exists():
            return
        recorded = read_episodes(path)
        if recorded and recorded[0].joint_names != self._names:
            raise EpisodesError(
                f'the episodes in {path} should be of the joints {list(self._names)}, '
                f'got {list(recorded[0].joint_names)}'
            )
        shape = steps + 1, len(self._interface.goal)
        if recorded and recorded[0].achieved_goals.shape != shape:
            raise EpisodesError(
                f'the episodes in {path} should achieve goals of shape {shape}, '
                f'got {recorded[0].achieved_goals.shape}'
            )
        self._kept = [episode for episode in recorded if episode.index < episodes]

    def save(self, path: Path) -> None:
        """Write what is kept, if anything; OSError leaves the file that was there."""
        kept = self._kept
        if not kept:
            return
        content = io.BytesIO()
        np.savez(
            content,
            format=np.array(FORMAT),
            joint_names=np.array(self._names, np.str_),
            indices=np.array([episode.index for episode in kept], np.int64),
            env_steps=np.array([episode.env_steps for episode in kept], np.int64),
            successes=np.array([episode.success for episode in kept]),
            goals=np.stack([episode.goal for episode in kept]),
            joints=np.stack([episode.joints for episode in kept]),
            achieved_goals=np.stack([episode.achieved_goals for episode in kept]),
            virtual_offsets=np.concatenate([episode.virtual_offsets for episode in kept]),
            virtual_counts=np.array([len(episode.virtual_offsets) for episode in kept], np.int64),
        )
        write_atomically(path, content.getvalue())


def read_episodes(path: Path) -> list[RecordedEpisode]:
    """Return what ``EpisodeRecorder`` wrote, the first episode first."""
    try:
        content = io.BytesIO(read_at_most(path, MOST_BYTES))
        with zipfile.ZipFile(content) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise ValueError(f'it should unpack to at most {MOST_BYTES} bytes')
        with np.load(content, allow_pickle=False) as file:
            _check_format(np.asarray(file['format']))
            arrays = {name: np.asarray(file[name]) for name in KINDS}
        _check(arrays)
    except FileNotFoundError:
        raise EpisodesError(f'there is no file of episodes {path}') from None
    except Exception as error:  # numpy and zipfile raise nearly anything
        raise EpisodesError(f'{path} is no file of episodes that can be used: {error}') from error
    names = tuple(arrays['joint_names'].tolist())
    ends = np.cumsum(arrays['virtual_counts'])
    made = np.split(arrays['virtual_offsets'], ends[:-1])
    return [
        RecordedEpisode(
            int(arrays['indices'][row]),
            int(arrays['env_steps'][row]),
            bool(arrays['successes'][row]),
            arrays['goals'][row],
            names,
            arrays['joints'][row],
            arrays['achieved_goals'][row],
            made[row],
        )
        for row in range(len(arrays['indices']))
    ]


def _apart(episodes: int) -> int:
    """Return how far apart the episodes kept of so many are; the last is kept besides."""
    apart = 1
    while -(-episodes // apart) + 1 > MOST:
        apart *= 2
    return apart


def _check_format(found: NDArray[Any]) -> None:
    """Raise ValueError unless the other arrays are those that are expected."""
    if found.shape != () or found.dtype.kind != KINDS['format'] or found != FORMAT:
        raise ValueError(f'its format should be {FORMAT}, it is {found}')


def _check(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError unless the arrays are of one record."""
    for name, kind in KINDS.items():
        if arrays[name].dtype.kind != kind:
            raise ValueError(f'{name} should be of kind {kind!r}, it is {arrays[name].dtype}')
    if arrays['joints'].ndim != 3 or arrays['achieved_goals'].ndim != 3:
        raise ValueError('joints and achieved_goals should have three axes')
    (count, instants, joints), goal = arrays['joints'].shape, arrays['achieved_goals'].shape[2]
    if not count or not instants:
        raise ValueError('there should be episodes, and places in them')
    counts = arrays['virtual_counts']
    if counts.shape != (count,) or not ((0 <= counts) & (counts <= MOST_BYTES)).all():
        raise ValueError(f'virtual_counts should be {count} counts, they are {counts}')
    shapes = {
        'joint_names': (joints,),
        'indices': (count,),
        'env_steps': (count,),
        'successes': (count,),
        'goals': (count, goal),
        'achieved_goals': (count, instants, goal),
        'virtual_offsets': (int(counts.sum()), goal),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f'{name} should have shape {shape}, it has {arrays[name].shape}')
    for name, kind in KINDS.items():
        if kind == 'f' and not np.isfinite(arrays[name]).all():
            raise ValueError(f'{name} should be numbers, some are not finite')
    if (np.diff(arrays['indices']) <= 0).any():
        raise ValueError('indices should rise')
