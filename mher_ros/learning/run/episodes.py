"""Recorded episodes for display: joint positions, goals and relabelled goals."""

from collections.abc import Sequence
import dataclasses
import io
import math
from pathlib import Path
from typing import Any
import zipfile

from mher_ros.errors import MherError
from mher_ros.files import read_at_most, write_atomically
from mher_ros.interface import TaskInterface
from mher_ros.learning.core.replay_buffer import Episode, Floats
from mher_ros.tasks.task import Array
import numpy as np

FORMAT = 3
MAX_EPISODES = 200  # per run; of a longer run every second, fourth, ... episode is kept
MAX_BYTES = 2**28  # of a file, compressed and uncompressed; files of the tasks here have megabytes
MAX_OFFSETS = 64  # per batch
ROWS = {
    'indices': 'index',
    'env_steps': 'env_steps',
    'successes': 'success',
    'goals': 'goal',
    'joints': 'joints',
    'achieved_goals': 'achieved_goals',
}
"""Arrays of ``episodes.npz`` with one row per episode, each with its field of RecordedEpisode."""
# The others are ``format``, ``joint_names``, ``goal_offsets`` of all episodes, concatenated, and
# ``goal_offset_counts``, the number of them per episode.


class EpisodesError(MherError, ValueError):
    """A file of episodes cannot be used."""


@dataclasses.dataclass(frozen=True)
class RecordedEpisode:
    """One training episode of T steps, in single precision."""

    index: int  # number of the episode in the run, from 0
    env_steps: int  # environment steps before this episode
    success: bool  # at the last step
    goal: Floats  # (m,)
    joint_names: tuple[str, ...]
    joints: Floats  # (T + 1, q) positions [rad or m], in the order of ``joint_names``
    achieved_goals: Floats  # (T + 1, m)
    goal_offsets: Floats  # (k, m) new minus original goals of the last batch after the episode


class EpisodeRecorder:
    """Keeps the first and the last episode of a run, and evenly spaced ones between them."""

    def __init__(self, interface: TaskInterface, joint_names: Sequence[str]) -> None:
        self._interface, self._names = interface, tuple(joint_names)
        self._kept: list[RecordedEpisode] = []

    def add(self, index: int, env_steps: int, episode: Episode, joints: Array) -> bool:
        """Record an episode, with ``env_steps`` before it; return its success."""
        # The selection depends only on the number of episodes: it is the same in a resumed run.
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
        spacing = 1
        while math.ceil((index + 1) / spacing) + 1 > MAX_EPISODES:
            spacing *= 2
        self._kept = [kept for kept in self._kept if kept.index % spacing == 0] + [last]
        return last.success

    def record_goal_offsets(self, offsets: Floats | None) -> None:
        """Add the offsets (k, m) of a batch after the last episode; None: not relabelled."""
        if offsets is not None and self._kept:
            some = offsets[:MAX_OFFSETS].astype(np.float32)
            self._kept[-1] = dataclasses.replace(self._kept[-1], goal_offsets=some)

    def resume(self, path: Path, episodes: int, steps: int) -> None:
        """Load the first ``episodes`` episodes, of ``steps`` steps, if the file exists."""
        if not path.exists():
            return
        recorded = read_episodes(path)
        names, shape = list(recorded[0].joint_names), recorded[0].achieved_goals.shape
        for what, expected, found in (
            ('joints', list(self._names), names),
            ('shape of achieved goals', (steps + 1, len(self._interface.goal)), shape),
        ):
            if found != expected:
                raise EpisodesError(f'episodes in {path}: expected {what} {expected}, got {found}')
        self._kept = [episode for episode in recorded if episode.index < episodes]

    def save(self, path: Path) -> None:
        """Write the recorded episodes; after an OSError the old file is unchanged."""
        if not self._kept:
            return
        offsets = [episode.goal_offsets for episode in self._kept]
        arrays: dict[str, Any] = {
            'format': np.array(FORMAT),
            'joint_names': np.array(self._names, np.str_),
            **{
                name: np.array([getattr(episode, field) for episode in self._kept])
                for name, field in ROWS.items()
            },
            'goal_offsets': np.concatenate(offsets),
            'goal_offset_counts': np.array([len(some) for some in offsets], np.int64),
        }
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_atomically(path, content.getvalue())


def read_episodes(path: Path) -> list[RecordedEpisode]:
    try:
        content = io.BytesIO(read_at_most(path, MAX_BYTES))
        with zipfile.ZipFile(content) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise ValueError(f'it unpacks to more than {MAX_BYTES} bytes')
        with np.load(content, allow_pickle=False) as file:
            if file['format'] != FORMAT:
                raise ValueError(f'expected format {FORMAT}, got {file["format"]}')
            names = tuple(file['joint_names'].tolist())
            ends = np.cumsum(file['goal_offset_counts'])
            columns = [file[name] for name in ROWS]
            offsets_of_all = np.split(file['goal_offsets'], ends[:-1])
        return [
            RecordedEpisode(
                joint_names=names,
                goal_offsets=offsets,
                **dict(zip(ROWS.values(), row, strict=True)),
            )
            for *row, offsets in zip(*columns, offsets_of_all, strict=True)
        ]
    except FileNotFoundError:
        raise EpisodesError(f'there is no file of episodes {path}') from None
    except Exception as error:  # numpy and zipfile raise many types of errors
        raise EpisodesError(f'{path} is not a usable file of episodes: {error}') from error
