"""The base of every task: a Gymnasium GoalEnv that declares its interface."""

from __future__ import annotations

import abc
from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar, TYPE_CHECKING

import gymnasium
from gymnasium import spaces
from mher_ros.interface import TaskInterface
from mher_ros.options import check, option
import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ['Observation', 'Task', 'TaskOptions']

Observation = dict[str, NDArray[np.float64]]


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    """Options that every task has."""

    episode_steps: int = option(
        100, 'steps in an episode; success is judged at the last', low=1, high=100_000
    )
    threshold: float = option(
        1.0, "largest distance to the goal that counts, in the goal's unit", low=1e-9
    )


class Task(gymnasium.Env[Any, Any], abc.ABC):
    """
    A goal-reaching task that any Gymnasium tool can use.

    An episode is a function of its reset seed and its actions alone: nothing of an earlier
    episode is left after ``reset``, so episodes can be run anywhere, in any order.
    """

    metadata: dict[str, Any] = {'render_modes': ['rgb_array'], 'render_fps': 25}
    default_options: ClassVar[TaskOptions]
    arm_options: ClassVar[tuple[str, ...]] = ()
    """Options that change how the arm moves, not which goals it gets."""
    summary: ClassVar[str]
    joint_names: tuple[str, ...]
    """Joints whose state makes the observation, under the names ROS knows them by."""
    random_start: ClassVar[bool] = False
    """Whether the initial state depends on the reset's seed."""
    threads_pay: ClassVar[bool] = False
    """Whether several instances, each in a thread of its own, step faster than one by one."""

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        if render_mode not in (None, 'rgb_array'):
            raise ValueError(f'render_mode takes None or rgb_array, got {render_mode!r}')
        self.options = options if options is not None else self.default_options
        check(self.options, 'task.')
        self.render_mode = render_mode
        self.interface = self._declare()
        n, m = len(self.interface.observation), len(self.interface.goal)
        goal_space = spaces.Box(-np.inf, np.inf, (m,), np.float64)
        self.observation_space = spaces.Dict(
            {
                'observation': spaces.Box(-np.inf, np.inf, (n,), np.float64),
                'achieved_goal': goal_space,
                'desired_goal': goal_space,
            }
        )
        self.action_space = spaces.Box(-1.0, 1.0, (len(self.interface.action),), np.float32)
        self.goal: NDArray[np.float64] = np.zeros(m)
        self._steps_left = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; ``options={'goal': ...}`` sets the goal instead of drawing it."""
        super().reset(seed=seed)
        self._reset_state(self.np_random)
        self.goal = self._draw_goal(self.np_random)
        if options and 'goal' in options:
            self.goal = self._checked_goal(options['goal'])
        self._steps_left = self.interface.episode_steps
        return self.observe(*self.joint_state()), {}

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do one control period; never terminates, truncates after ``episode_steps``."""
        self.move(self.checked_action(action))
        self._steps_left -= 1
        observation = self.observe(*self.joint_state())
        reward = self.compute_reward(observation['achieved_goal'], self.goal, {})
        info = {'is_success': bool(reward == 0.0)}
        return observation, float(reward), False, self._steps_left <= 0, info

    @classmethod
    def step_together(
        cls, tasks: Sequence[Self], actions: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """
        Do one control period in each of B tasks of this class under actions (B, k).

        Returns observations (B, n): the same as ``step`` gives, only sooner, since nobody asks
        for goals and rewards.
        """
        checked = tasks[0].checked_action(actions, len(tasks))
        observations = np.empty((len(tasks), len(tasks[0].interface.observation)))
        for task, action, observation in zip(tasks, checked, observations, strict=True):
            task.move(action)
            task._steps_left -= 1
            observation[:] = task._observation(*task.joint_state())
        return observations

    def move(self, action: NDArray[np.float32]) -> None:
        """Do one control period under an action within [-1, 1], without looking."""
        self._advance(action)

    def checked_action(self, action: ArrayLike, count: int | None = None) -> NDArray[np.float32]:
        """Return an action, or ``count`` of them, within [-1, 1]; raise ValueError if not one."""
        checked = np.asarray(action, dtype=np.float32)
        one = self.action_space.shape or ()
        if checked.shape != (one if count is None else (count, *one)):
            raise ValueError(f'an action has shape {one}, got {checked.shape}')
        if np.isnan(checked).any():
            raise ValueError(f'an action is made of numbers, got {checked}')
        return np.clip(checked, np.float32(-1.0), np.float32(1.0))

    def compute_reward(
        self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any
    ) -> NDArray[np.float32]:
        """Return 0 at the goal and -1 elsewhere, for one pair or any batch of them."""
        return self.interface.reward(achieved_goal, desired_goal)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> bool:
        """Return False: the arm has to stay at the goal."""
        return False

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> bool:
        """Return whether the episode's steps are used up."""
        return self._steps_left <= 0

    def observe(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> Observation:
        """Return what is seen under the current goal with the joints in the given state."""
        vector = self._observation(positions, velocities)
        return {
            'observation': vector,
            'achieved_goal': self.interface.achieved_goal(vector).copy(),
            'desired_goal': self.goal.copy(),
        }

    def _checked_goal(self, goal: ArrayLike) -> NDArray[np.float64]:
        checked = np.array(goal, dtype=np.float64)
        if checked.shape != self.goal.shape or not np.all(np.isfinite(checked)):
            raise ValueError(f'a goal is {self.goal.size} finite numbers, got {goal!r}')
        return checked

    def hold(self) -> None:
        """Let a control period pass in which nothing is asked of the arm."""
        self._advance(np.zeros(len(self.interface.action), np.float32))

    @abc.abstractmethod
    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return position (3,) and orientation (4,) (w, x, y, z) of what is led to goals."""

    @abc.abstractmethod
    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return positions and velocities of ``joint_names`` as new arrays."""

    @abc.abstractmethod
    def render(self) -> NDArray[np.uint8]:
        """Return a picture (height, width, 3) of the state and the goal."""

    @abc.abstractmethod
    def _declare(self) -> TaskInterface:
        """Say what is observed, commanded and achieved."""

    @abc.abstractmethod
    def _reset_state(self, rng: np.random.Generator) -> None:
        """Put the system in its initial state."""

    @abc.abstractmethod
    def _draw_goal(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a desired goal."""

    @abc.abstractmethod
    def _advance(self, action: NDArray[np.float32]) -> None:
        """Move the system by one control period under an action within [-1, 1]."""

    @abc.abstractmethod
    def _observation(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the observation vector of a joint state as a new array."""
