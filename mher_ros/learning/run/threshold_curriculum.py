"""A success threshold for training that starts large and shrinks as success holds."""

from mher_ros.interface import TaskInterface
from mher_ros.learning.core.replay_buffer import Episode

SHRINKS = 0.7  # factor of the threshold, whenever it shrinks


class ThresholdCurriculum:
    """Factor of the success threshold in training: from ``start`` down to 1."""

    def __init__(self, interface: TaskInterface, start: float, episodes: int) -> None:
        """Shrink after ``episodes`` successive training episodes that reached their goals."""
        self._interface, self._episodes = interface, episodes
        self.factor = start
        self.reached = 0
        """Successive episodes that reached their goals, since it has shrunk."""

    def take(self, episode: Episode) -> None:
        """Take a training episode: it reached its goal if its last state is a success."""
        last = self._interface.achieved_goal(episode.observations[-1])
        success = self._interface.is_success(last, episode.goal, self.factor)
        self.reached = self.reached + 1 if success else 0
        if self.reached == self._episodes:
            self.factor, self.reached = max(1.0, SHRINKS * self.factor), 0
