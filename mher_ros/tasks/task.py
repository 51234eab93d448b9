"""Base class of the tasks: a Gymnasium GoalEnv that declares its interface."""

import abc
from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar

import gymnasium
from gymnasium import spaces
from mher_ros.interface import TaskInterface, Vector
from mher_ros.options import check, option
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

Array = Vector
Observation = dict[str, Array]
Outcome = tuple[Observation, float, bool, bool, dict[str, Any]]  # of ``step``


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    episode_steps: int = option(
        100, 'steps per test episode; success is evaluated at the last', low=1, high=100_000
    )
    threshold: float = option(
        1.0, "largest distance to the goal that is a success, in the goal's unit", low=1e-9
    )


class Task(gymnasium.Env[Any, Any], abc.ABC):
    """A goal-reaching task with the API of a Gymnasium GoalEnv."""

    metadata: dict[str, Any] = {'render_modes': ['rgb_array'], 'render_fps': 25}
    default_options: ClassVar[TaskOptions]
    arm_options: ClassVar[tuple[str, ...]] = ()  # options that change the dynamics
    summary: ClassVar[str]
    joint_names: tuple[str, ...]  # ROS names of the joints that are observed
    random_start: bool = False  # whether the initial state is random
    parallel_stepping: ClassVar[bool] = False  # whether threads make it faster

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        if render_mode not in (None, 'rgb_array'):
            raise ValueError(f'render_mode takes None or rgb_array, got {render_mode!r}')
        self.options = options if options is not None else self.default_options
        check(self.options, 'task.')
        self.render_mode = render_mode
        self.interface = self._declare()
        n, m = len(self.interface.observation), len(self.interface.goal)
        sizes = {'observation': n, 'achieved_goal': m, 'desired_goal': m}
        self.observation_space = spaces.Dict(
            {key: spaces.Box(-np.inf, np.inf, (size,), np.float64) for key, size in sizes.items()}
        )
        self.action_space = spaces.Box(-1.0, 1.0, (len(self.interface.action),), np.float32)
        self.goal: Array = np.zeros(m)
        self._steps_left = 0
        self._renderer: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; ``options={'goal': ...}`` sets the goal."""
        # An episode depends only on its seed, options and actions, never on earlier episodes.
        super().reset(seed=seed)
        self._reset_state(self.np_random)
        self.goal = self._sample_goal(self.np_random)
        if options and 'goal' in options:
            goal = np.array(options['goal'], dtype=np.float64)
            if goal.shape != self.goal.shape or not np.all(np.isfinite(goal)):
                raise ValueError(f'expected {self.goal.size} finite numbers, got {goal}')
            self.goal = goal
        self._steps_left = self.interface.episode_steps
        return self.observe(*self.joint_state()), {}

    def start_options(self, last: Array | None) -> dict[str, Any] | None:
        """
        Return ``options`` of the reset that begins the next training episode.

        ``last``: last observation (n,) of the training episode before, if there was one.
        """
        return None

    def step(self, action: ArrayLike) -> Outcome:
        """Do one control period; truncates after ``episode_steps``, never terminates."""
        self.move(self.checked_action(action))
        return self.outcome(*self.joint_state())

    def outcome(self, positions: Array, velocities: Array) -> Outcome:
        """Return what ``step`` returns for this joint state, and count the step."""
        self._steps_left -= 1
        observation = self.observe(positions, velocities)
        reward = self.compute_reward(observation['achieved_goal'], self.goal, {})
        info = {'is_success': bool(reward == 0.0)}
        return observation, float(reward), False, self._steps_left <= 0, info

    @classmethod
    def step_batch(cls, tasks: 'Sequence[Task]', actions: NDArray[np.float32]) -> Array:
        """Return observations (B, n) after one step of B tasks with actions (B, k)."""
        # Faster than ``step``, because it computes no rewards.
        checked = tasks[0].checked_action(actions, len(tasks))
        observations = np.empty((len(tasks), len(tasks[0].interface.observation)))
        for task, action, observation in zip(tasks, checked, observations, strict=True):
            task.move(action)
            task._steps_left -= 1
            observation[:] = task._observation(*task.joint_state())
        return observations

    def checked_action(self, action: ArrayLike, count: int | None = None) -> NDArray[np.float32]:
        """Return an action (k,), or ``count`` of them, clipped to [-1, 1]; else ValueError."""
        checked = np.asarray(action, dtype=np.float32)
        one = self.action_space.shape or ()
        if checked.shape != (one if count is None else (count, *one)):
            raise ValueError(f'an action has shape {one}, got {checked.shape}')
        if np.isnan(checked).any():
            raise ValueError(f'an action must not contain NaN, got {checked}')
        return np.clip(checked, np.float32(-1.0), np.float32(1.0))

    def compute_reward(
        self, achieved_goal: ArrayLike, desired_goal: ArrayLike, info: Any
    ) -> NDArray[np.float32]:
        """Return 0 at the goal and -1 elsewhere, for one pair of goals or a batch."""
        return self.interface.reward(achieved_goal, desired_goal)

    def judged_goals(self, observations: Array) -> Array:
        """
        Return what was truly achieved (..., m) in observations (..., n).

        Evaluations judge success by it; a task whose observations have noise overrides it.
        """
        return np.asarray(self.interface.achieved_goal(observations))

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> bool:
        return False  # the arm has to stay at the goal

    def compute_truncated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> bool:
        return self._steps_left <= 0

    def observe(self, positions: Array, velocities: Array) -> Observation:
        """Return the observation for a joint state and the current goal."""
        vector = self._observation(positions, velocities)
        return {
            'observation': vector,
            'achieved_goal': self.interface.achieved_goal(vector).copy(),
            'desired_goal': self.goal.copy(),
        }

    def remember(self, action: NDArray[np.float32]) -> None:
        """Take the action (k,) of the last step, for a task that observes earlier actions."""

    def hold(self) -> None:
        self.move(np.zeros(len(self.interface.action), np.float32))

    @abc.abstractmethod
    def tool_pose(self) -> tuple[Array, Array]:
        """Return position (3,) and orientation (4,) (w, x, y, z) of the tool."""

    @abc.abstractmethod
    def joint_state(self) -> tuple[Array, Array]:
        """Return positions and velocities of ``joint_names`` as new arrays."""

    def scene(self) -> tuple[Any, Any, dict[str, Any]]:
        """Return MuJoCo model and data of the present state, and the fields of a camera."""
        raise NotImplementedError

    def render(self) -> NDArray[np.uint8]:
        """Return an image (height, width, 3) of the state and the goal."""
        from mher_ros.tasks.rendering import SceneRenderer

        model, data, camera = self.scene()
        if self._renderer is None:
            self._renderer = SceneRenderer(model, camera)
        goal = np.zeros(3)
        size = self.interface.position_size
        goal[:size] = self.goal[:size]
        return self._renderer.render(data, goal, self.interface.success_threshold)

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _interface(self, **fields: Any) -> TaskInterface:
        steps, threshold = self.options.episode_steps, self.options.threshold
        return TaskInterface(episode_steps=steps, success_threshold=threshold, **fields)

    @abc.abstractmethod
    def _declare(self) -> TaskInterface:
        """Return the interface of the task."""

    def _reset_state(self, rng: Generator) -> None:
        """Set the initial state."""
        raise NotImplementedError

    def _sample_goal(self, rng: Generator) -> Array:
        """Sample a desired goal."""
        raise NotImplementedError

    @abc.abstractmethod
    def move(self, action: NDArray[np.float32]) -> None:
        """Do one control period with an action in [-1, 1]."""

    @abc.abstractmethod
    def _observation(self, positions: Array, velocities: Array) -> Array:
        """Return the observation of a joint state as a new array."""
