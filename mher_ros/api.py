"""The Python API: ``import mher_ros``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
from pathlib import Path
from typing import Any, TYPE_CHECKING

from mher_ros.errors import explaining_missing_extras
from mher_ros.files import POLICY
from mher_ros.options import OptionError
from mher_ros.policy import load as load
from mher_ros.policy import OnnxPolicy
from mher_ros.registry import trust
from mher_ros.robots.robot import Robot as Robot
from mher_ros.tasks import make_registered, TASKS

if TYPE_CHECKING:
    from mher_ros.learning.relabel.strategies import GoalStrategy
    from mher_ros.learning.run.progress import Progress
    from mher_ros.tasks.task import Array


make = make_registered


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """The result of ``train``."""

    folder: Path
    """Contains configuration, progress, checkpoint and policy."""
    policy: Path | None
    """The exported policy; None if there is none, as with an algorithm without actor."""
    stop_reason: str
    """``success``, ``steps``, ``time`` or ``requested``."""
    env_steps: int
    progress: tuple[dict[str, Any], ...]
    """One row per evaluation, as in ``progress.csv``."""

    @property
    def success_rate(self) -> float | None:
        """Success rate of the last evaluation, from 0 to 1."""
        return self.progress[-1]['success_rate'] if self.progress else None


def train(
    env: Any,
    algorithm: str = 'mher',
    preset: str = 'fast',
    *,
    seed: int = 0,
    steps: int | None = None,
    until: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    goal_map: Callable[[Array], Array] | None = None,
    options: dict[str, Any] | None = None,
    displays: Sequence[Progress] = (),
) -> TrainedRun:
    """
    Learn a goal-conditioned policy and export it to ``policy.onnx``.

    ``env`` is a task name as for ``make``, a GoalEnv class, or a function that returns a GoalEnv.
    The run stops after ``steps`` environment steps, or when two successive evaluations reach the
    success rate ``until``; the defaults are those of the preset. ``out`` is the folder of the run
    (default: a new one in ``runs/``). ``goal_map`` maps observations (..., n) to achieved goals
    (..., m) if the achieved goal is not part of the observation. ``options`` are those of
    ``mher options``. A wrong argument raises OptionError.
    """
    with explaining_missing_extras():
        from mher_ros.learning.run.session import plan_run, start_training

    name = env if isinstance(env, str) else _registered(env, goal_map)
    if isinstance(env, str) and goal_map is not None:
        raise OptionError('goal_map needs a class or a function as env, or use register_task')
    limits = {'schedule.steps': steps, 'schedule.until': until}
    changes = (options or {}) | {key: value for key, value in limits.items() if value is not None}
    config, folder = plan_run(
        name,
        algorithm=algorithm,
        preset=preset,
        seed=seed,
        changes=changes,
        folder=None if out is None else Path(out),
        resume=resume,
    )
    trainer, reason = start_training(folder, config, displays, resume=resume)
    policy = folder / POLICY if (folder / POLICY).exists() else None
    rows = tuple(dict(row) for row in trainer.rows)
    return TrainedRun(folder, policy, reason.name.lower(), trainer.env_steps, rows)


def evaluate(
    policy: OnnxPolicy | str | Path, env: Any = None, *, episodes: int = 100, seed: int = 0
) -> dict[str, Any]:
    """
    Test a policy on random goals and return success rate and errors.

    ``env`` is needed for a policy of your own env if it is not registered in this process: a
    policy file never imports a module.
    """
    from mher_ros.policy.evaluation import evaluate_policy

    loaded = policy if isinstance(policy, OnnxPolicy) else load(policy)
    if env is not None:
        name = env if isinstance(env, str) else _registered(env, None)
        trust(name)
        if name != loaded.interface.task:
            raise OptionError(f'the policy is for {loaded.interface.task}, not for {name}')
    return evaluate_policy(loaded, episodes, seed)


def register_task(name: str, env: Any, goal_map: Callable[[Array], Array] | None = None) -> None:
    """
    Register a task for ``train``, ``make`` and the command line.

    ``env`` is a Task or GoalEnv class, a function that returns a GoalEnv, or ``'module:Class'``.
    """
    if goal_map is not None:
        from mher_ros.tasks.goal_env import goal_env_class

        env = goal_env_class(name, env, goal_map)
    TASKS.register(name, env)


def register_algorithm(name: str, summary: str, changes: dict[str, Any]) -> None:
    """Register an algorithm: changes of a preset, dotted option key to value."""
    from mher_ros.learning.presets import Algorithm, ALGORITHMS

    ALGORITHMS.register(name, Algorithm(summary, changes))


def register_relabelling(name: str, strategy: type[GoalStrategy] | str) -> None:
    """Register a relabelling strategy for the option ``relabel.goals``."""
    from mher_ros.learning.relabel import RELABELLING

    RELABELLING.register(name, strategy)


def _registered(env: Any, goal_map: Callable[[Array], Array] | None) -> str:
    """Return the name of a class or function; register it on first use."""
    name = getattr(env, '__name__', type(env).__name__)
    if name not in TASKS:
        register_task(name, env, goal_map)
    elif TASKS[name] is not env and goal_map is None:
        raise OptionError(f'another task is named {name}: use register_task with a new name')
    return name
