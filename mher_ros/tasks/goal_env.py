"""Any Gymnasium GoalEnv as a task."""

from collections.abc import Callable
import dataclasses
from typing import Any, ClassVar

import gymnasium
from gymnasium import spaces
from mher_ros.interface import Field, TaskInterface
from mher_ros.options import option, OptionError
from mher_ros.registry import import_object
from mher_ros.tasks.task import Array, Observation, Task, TaskOptions
import numpy as np
from numpy.typing import ArrayLike, NDArray

KEYS = ('observation', 'achieved_goal', 'desired_goal')
EPISODE_STEPS = 50  # default if the env has no time limit
SAMPLED_EPISODES, SAMPLED_STEPS = 16, 10  # with random actions, to find goal box and goal map
MARGIN = 0.1  # of the goal box around the sampled goals, relative to its size
BISECTIONS = 60  # to find the success threshold

MakeEnv = Callable[[], Any]
GoalMap = Callable[[Array], Array]  # observations (..., n) to achieved goals (..., m)


@dataclasses.dataclass(frozen=True)
class GoalEnvOptions(TaskOptions):
    episode_steps: int = option(
        EPISODE_STEPS, 'steps per episode; success is evaluated at the last', low=1, high=100_000
    )
    threshold: float = option(
        0.0, 'largest distance to the goal that is a success; 0: use compute_reward', low=0.0
    )


class GoalEnvInterface(TaskInterface):
    """An interface whose success and goal map can be functions of the env."""

    succeeds: Callable[[Any, Any], Any] | None
    goal_map: GoalMap | None
    has_goal_map: bool  # whether predicted observations have an achieved goal

    def is_success(
        self, achieved: ArrayLike, desired: ArrayLike, threshold_factor: float = 1.0
    ) -> NDArray[np.bool_]:
        if self.succeeds is None:
            return super().is_success(achieved, desired, threshold_factor)
        # There is no threshold to ease: ``make_learner`` refuses schedule.threshold_start.
        return self.succeeds(np.asarray(achieved), np.asarray(desired))

    def achieved_goal(self, observation: Any) -> Any:
        if self.goal_map is None:
            return super().achieved_goal(observation)
        own = observation[..., : -len(self.goal)]  # without the appended achieved goal
        if isinstance(own, np.ndarray):
            return np.asarray(self.goal_map(own), own.dtype)
        return own.new_tensor(np.asarray(self.goal_map(own.numpy())))


class GoalEnvTask(Task):
    """
    A foreign GoalEnv, created with ``make_env``.

    Actions are scaled to [-1, 1]. The reward is 0 where the env's ``compute_reward`` is maximal,
    and -1 elsewhere. Agents need the achieved goal in the observation: if no range of entries
    equals it in sampled states, it is appended.
    """

    make_env: ClassVar[MakeEnv]
    goal_map: ClassVar[GoalMap | None] = None
    declared: ClassVar[dict[TaskOptions, tuple[GoalEnvInterface, bool]]]  # a cache
    summary = 'a Gymnasium GoalEnv'
    default_options = GoalEnvOptions()
    joint_names = ()

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        self._env = type(self).make_env()
        self._now, self._is_over = np.zeros(0), False
        super().__init__(options, render_mode)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        gymnasium.Env.reset(self, seed=seed)
        if options and 'goal' in options:
            raise ValueError(f'{self.interface.task} samples its own goals')
        start, _ = self._env.reset(seed=seed)
        self._now, self.goal = self._vector(start), np.array(start['desired_goal'], np.float64)
        self._is_over, self._steps_left = False, self.interface.episode_steps
        return self.observe(*self.joint_state()), {}

    def move(self, action: NDArray[np.float32]) -> None:
        if self._is_over:  # a terminal state is absorbing
            return
        space = self._env.action_space
        share = 0.5 * (np.asarray(action, np.float64) + 1.0)
        scaled = (space.low + share * (space.high - space.low)).astype(space.dtype)
        observation, _, terminated, truncated, _ = self._env.step(scaled)
        if truncated and not terminated:
            raise OptionError(
                f'{self.interface.task} truncated an episode: reduce schedule.episode_steps and '
                'task.episode_steps, or remove its time limit'
            )
        self._now, self._is_over = self._vector(observation), bool(terminated)

    def joint_state(self) -> tuple[Array, Array]:
        return np.zeros(0), np.zeros(0)

    def tool_pose(self) -> tuple[Array, Array]:
        raise NotImplementedError(f'{self.interface.task} has no tool')

    def scene(self) -> tuple[Any, Any, dict[str, Any]]:
        raise OptionError(f'{self.interface.task} is rendered by its own env, not by mher_ros')

    def close(self) -> None:
        self._env.close()

    def _observation(self, positions: Array, velocities: Array) -> Array:
        return self._now.copy()

    def _vector(self, observation: dict[str, Any]) -> Array:
        keys = KEYS[: 2 if self._appends_goal else 1]
        return np.concatenate([np.asarray(observation[key], np.float64) for key in keys])

    def _declare(self) -> TaskInterface:
        declared = type(self).declared
        if self.options not in declared:
            declared[self.options] = self._inspect()
        interface, self._appends_goal = declared[self.options]
        return interface

    def _inspect(self) -> tuple[GoalEnvInterface, bool]:
        """Return the interface, found with random actions, and whether to append the goal."""
        _check_spaces(type(self).__name__, self._env)
        samples = _sample(self._env)
        states, achieved, desired = (np.stack([one[key] for one in samples]) for key in KEYS)
        n, m = states.shape[1], achieved.shape[1]
        goal_map = type(self).goal_map
        if goal_map is not None:
            mapped = np.asarray(goal_map(states))
            if mapped.shape != achieved.shape or not np.allclose(mapped, achieved, atol=1e-5):
                raise OptionError(
                    f'{type(self).__name__}: goal_map does not return the achieved goals: '
                    f'expected {achieved[:1]}, got {mapped[:1]}'
                )
        first = None if goal_map is not None else _find_slice(states, achieved)
        low, high = _goal_box(self._env, np.concatenate((achieved, desired)))
        succeeds, threshold = self._success(desired, high - low)
        start = n if first is None else first
        scales = 0.5 * (self._env.action_space.high - self._env.action_space.low)
        names = [f'observation_{index}' for index in range(n)]
        names += [f'achieved_{index}' for index in range(m)] if first is None else []
        interface = GoalEnvInterface(
            task=type(self).__name__,
            observation=tuple(Field(name, '1') for name in names),
            goal=tuple(Field(f'goal_{index}', '1') for index in range(m)),
            action=tuple(Field(f'action_{i}', '1', scale=float(s)) for i, s in enumerate(scales)),
            action_meaning='env_action',
            frame='env',
            control_period=float(getattr(self._env.unwrapped, 'dt', 0.0)) or 0.1,
            episode_steps=self.options.episode_steps,
            goal_low=tuple(low.tolist()),
            goal_high=tuple(high.tolist()),
            success_threshold=threshold,
            achieved_index=tuple(range(start, start + m)),
        )
        # Functions of this env are not fields: they are not part of a policy's contract.
        has_goal_map = goal_map is not None or first is not None
        vars(interface).update(succeeds=succeeds, goal_map=goal_map, has_goal_map=has_goal_map)
        return interface, first is None

    def _success(
        self, goals: Array, width: Array
    ) -> tuple[Callable[[Any, Any], Any] | None, float]:
        """Return the success function (None: by distance only) and the threshold."""
        if self.options.threshold > 0.0:
            return None, self.options.threshold
        name = type(self).__name__
        compute = self._env.unwrapped.compute_reward
        others = np.roll(goals, 1, axis=0)
        try:
            best = np.asarray(compute(goals, goals, {}), np.float64)
            rewards = np.asarray(compute(goals, others, {}), np.float64)
        except Exception as error:  # foreign code
            raise OptionError(
                f'{name}: compute_reward must take batches of goals (B, m): {error!r}'
            ) from error
        values = np.unique(np.concatenate((best.ravel(), rewards.ravel())))
        if best.shape != (len(goals),) or len(values) > 2 or np.ptp(best) > 0.0:
            raise OptionError(
                f'{name}: expected a sparse reward with two values and shape (B,); got shape '
                f'{best.shape} and values {values[:4]}. For a dense reward, set task.threshold'
            )
        top = best[0]

        def succeeds(achieved: Array, desired: Array) -> NDArray[np.bool_]:
            flat = achieved.reshape(-1, achieved.shape[-1])
            pairs = flat, np.broadcast_to(desired, achieved.shape).reshape(flat.shape)
            return (np.asarray(compute(*pairs, {})) >= top).reshape(achieved.shape[:-1])

        near, far = 0.0, float(np.linalg.norm(width))
        direction = np.eye(len(width))[0]
        for _ in range(BISECTIONS):
            middle = 0.5 * (near + far)
            if succeeds(goals[0] + middle * direction, goals[0]):
                near = middle
            else:
                far = middle
        return succeeds, max(near, 1e-9)


def goal_env_class(
    name: str, make_env: MakeEnv, goal_map: GoalMap | None = None, episode_steps: int = 0
) -> type[GoalEnvTask]:
    """Return the task ``name`` for the envs of ``make_env``."""
    options = GoalEnvOptions(episode_steps=episode_steps or EPISODE_STEPS)
    return type(
        name,
        (GoalEnvTask,),
        {
            'make_env': staticmethod(make_env),
            'goal_map': staticmethod(goal_map) if goal_map is not None else None,
            'declared': {},
            'default_options': options,
            'summary': f'the Gymnasium GoalEnv {name}',
        },
    )


def task_from_entry(name: str, entry: Any) -> type[Task]:
    """
    Return the task of a registry entry.

    It is a Task, a GoalEnv class, a function that returns a GoalEnv, or a GoalEnv; its attribute
    ``achieved_goal_of(observation)``, if any, is the goal map.
    """
    if isinstance(entry, type) and issubclass(entry, Task):
        return entry
    spec = getattr(entry, 'spec', None)
    if isinstance(entry, gymnasium.Env):
        if spec is None:
            raise OptionError(f'{name}: give the class of the env, or a function that returns it')
        return gymnasium_task(spec.id)
    if not callable(entry):
        raise OptionError(
            f'{name}: expected a GoalEnv class, a function that returns a GoalEnv, or '
            f'module:Class; got {entry!r}'
        )
    return goal_env_class(name, entry, getattr(entry, 'achieved_goal_of', None))


def gymnasium_task(env_id: str) -> type[GoalEnvTask]:
    """Return the task of a Gymnasium env, such as FetchPush-v4."""
    spec = gymnasium.spec(env_id)

    def make_env() -> Any:
        # -1: no time limit, because the schedule sets the length of training episodes.
        return gymnasium.make(spec, max_episode_steps=-1, disable_env_checker=True)

    return goal_env_class(env_id, make_env, episode_steps=spec.max_episode_steps or 0)


def is_gymnasium_id(env_id: str) -> bool:
    """Return whether Gymnasium has the env; Gymnasium-Robotics is registered on demand."""
    if env_id.startswith(('Fetch', 'Hand', 'PointMaze', 'AntMaze', 'Adroit', 'FrankaKitchen')):
        try:
            gymnasium.register_envs(import_object('gymnasium_robotics:__name__'))
        except OptionError:
            return False
    return env_id in gymnasium.registry


def _check_spaces(name: str, env: Any) -> None:
    observation, action = env.observation_space, env.action_space
    if not isinstance(observation, spaces.Dict) or not set(KEYS) <= set(observation.spaces):
        raise OptionError(f'{name}: expected a Dict of {", ".join(KEYS)}, got {observation}')
    shapes = {key: observation[key].shape for key in KEYS}
    if any(shape is None or len(shape) != 1 for shape in shapes.values()) or (
        shapes['achieved_goal'] != shapes['desired_goal']
    ):
        raise OptionError(f'{name}: expected vectors, and goals of the same length, got {shapes}')
    if not isinstance(action, spaces.Box) or len(action.shape) != 1 or not action.is_bounded():
        raise OptionError(f'{name}: expected actions in a bounded Box (k,), got {action}')
    if not callable(getattr(env.unwrapped, 'compute_reward', None)):
        raise OptionError(f'{name}: expected compute_reward(achieved_goal, desired_goal, info)')


def _sample(env: Any) -> list[dict[str, Array]]:
    """Return observations of a few episodes with random actions."""
    rng = np.random.default_rng(0)
    samples = []
    for seed in range(SAMPLED_EPISODES):
        samples.append(env.reset(seed=seed)[0])
        for _ in range(SAMPLED_STEPS):
            action = rng.uniform(env.action_space.low, env.action_space.high)
            after, _, terminated, truncated, _ = env.step(action.astype(env.action_space.dtype))
            samples.append(after)
            if terminated or truncated:
                break
    return [{key: np.array(one[key], np.float64) for key in KEYS} for one in samples]


def _find_slice(states: Array, achieved: Array) -> int | None:
    """Return the first entry of the achieved goal in the observation; None if not found."""
    m = achieved.shape[1]
    for first in range(states.shape[1] - m + 1):
        if np.allclose(states[:, first : first + m], achieved, rtol=1e-5, atol=1e-6):
            return first
    return None


def _goal_box(env: Any, goals: Array) -> tuple[Array, Array]:
    space = env.observation_space['desired_goal']
    if space.is_bounded():
        return np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    low, high = goals.min(0), goals.max(0)
    # The box needs a width in every entry, because inputs are normalised by it.
    margin = MARGIN * np.where(high > low, high - low, max(float(np.max(high - low)), 1.0))
    return low - margin, high + margin
