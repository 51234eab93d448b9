"""What policies of the task ``reach`` do that a straight line cannot: in one process."""

from collections.abc import Mapping, Sequence
import dataclasses
from pathlib import Path
import tempfile
from typing import Any

from mher_ros.bench import skill_scenes, skill_trials
from mher_ros.bench.kept import KeptResults
from mher_ros.bench.policies import trained_policy
from mher_ros.bench.result import Result
from mher_ros.bench.skill_scenes import draw_goals, scene_file, SCENES, SHIFT, STREAM, TASK
from mher_ros.bench.skill_trials import Motion, move_all, summary
from mher_ros.bench.timing import log_progress
from mher_ros.experiments.tables import Table
from mher_ros.learning.config import make_config, TrainConfig
from mher_ros.options import OptionError, read_changes
from mher_ros.policy.onnx_policy import load, OnnxPolicy
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.reach import Reach
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed, Evaluator
import numpy as np

PARTS = (*SCENES, 'rest', 'randomised')
PRESETS = {'rest': 'precise'}  # others: fast
SPACING = 1000  # environment steps between two evaluations in training
SHIFTS = {'as trained': 0.0, '3 cm nearer': -SHIFT, '3 cm farther': SHIFT}
"""Displacement of the obstacles along x after training [m]."""
RANDOMISE = 1.0  # factor of the robot's ranges from which plants are drawn
LINE = 'straight_line'
NOTE = (
    'Motions from home to goals of the task, by a policy and straight, through the command path '
    'of deployment, which finishes straight within the threshold. Behind: obstacles are on the '
    'line from the tool to the goal, and on this line at the height of the goal. Reached: within '
    "the task's threshold at rest, with no obstacle between tool and goal. Motion at the goal: "
    'that of the tool in the last second, if it reached the goal. Contacts are those deeper than '
    '1 mm that MuJoCo finds. A motion takes at most '
    f'{skill_trials.LONGEST:g} s. The filter knows where the obstacles are, also after they were '
    'moved; the policy does not.'
)


def measure(
    robot: str,
    parts: Sequence[str],
    goals: int,
    steps: int,
    seed: int,
    policy: str | None = None,
    set: Sequence[str] = (),  # noqa: A002  (the name of the flag)
    code: str = '',
    folder: Path | None = None,
) -> Result:
    """
    Train one policy for each part, and compare it with a straight line.

    ``goals``: number of goals of each controller, in scenes half of them behind obstacles.
    ``steps`` of training; ``set``: changes of its options; ``policy``: a file instead, for one
    part. ``folder`` keeps policies and motions; those of the same settings and ``code`` (empty:
    the source files) are used again.
    """
    for part in parts:
        if part not in PARTS:
            raise OptionError(f'unknown part {part!r}; known: {", ".join(PARTS)}')
    if policy and len(parts) != 1:
        raise OptionError(f'policy is for one part; got the parts {", ".join(parts)}')
    figures: dict[str, Any] = {'robot': load_robot(robot).name, 'interrupted': False}
    with tempfile.TemporaryDirectory() as temporary:
        trials = _Trials(
            folder or Path(temporary), goals, steps, seed, policy, read_changes(set, '--set'), code
        )
        try:
            for part in dict.fromkeys(parts):
                figures[part] = _measure(trials, robot, part)
        except KeyboardInterrupt:
            if not any(part in figures for part in parts):
                raise
            figures['interrupted'] = True
            log_progress('interrupted: the result is of finished parts only')
    usual = robot == 'fetch' and tuple(parts) == PARTS
    variant = '' if usual else '-'.join(('', figures['robot'], *parts))
    rows = tuple(row for part in PARTS if part in figures for row in _rows(part, figures[part]))
    table = Table(figures['robot'], HEADER, rows, NOTE)
    return Result(figures, (table,), {'policies': trials.policies}, variant=variant)


@dataclasses.dataclass
class _Trials:
    """What all parts have in common; finished motions and policies are kept in ``folder``."""

    folder: Path
    goals: int
    steps: int
    seed: int
    given_policy: str | None
    changes: Mapping[str, str]
    code: str

    def __post_init__(self) -> None:
        sources = (__file__, skill_scenes.__file__, skill_trials.__file__)
        self._kept = KeptResults(self.folder, self.code, sources)
        self.policies: dict[str, str] = {}

    def task(self, robot_file: str | Path, **changes: Any) -> Reach:
        task = make(TASK, self._config(robot_file, 'fast', changes).task)
        assert isinstance(task, Reach)
        return task

    def policy(self, robot_file: str | Path, name: str, preset: str, **changes: Any) -> OnnxPolicy:
        """Return the policy for a robot file, which is trained unless it is given or kept."""
        path = Path(self.given_policy) if self.given_policy else None
        if path is None:
            config = self._config(robot_file, preset, changes)
            facts = [
                config.to_dict(),
                repr(dataclasses.replace(load_robot(robot_file), folder=Path())),
            ]
            target = self._kept.path(f'policy-{name}', facts, '')
            given = self._all_changes(robot_file, preset, changes)
            path = trained_policy(TASK, preset, self.seed, target, given)
        self.policies[name] = str(path)
        return load(path)

    def motions(
        self,
        robot_file: str | Path,
        goals: Sequence[Any],
        task: Reach,
        policy: OnnxPolicy | None,
        randomise: float = 0.0,
    ) -> list[Motion]:
        """Return motions to goals, those of an earlier call if they are kept."""
        interface = policy.interface if policy else task.interface
        name = f'motions-{task.robot.name}-{"policy" if policy else LINE}'
        facts = {
            'robot': _content(robot_file),
            'policy': policy.sha256 if policy else '',
            'goals': np.asarray(goals).tolist(),
            'interface': repr(dataclasses.replace(interface, arm=None)),
            'randomise': randomise,
            'seed': self.seed,
        }
        found = self._kept.read(name, facts)
        if found is None:
            plants = [episode_seed(self.seed, STREAM + 1, index) for index in range(len(goals))]
            found = move_all(robot_file, interface, goals, policy, randomise, plants)
            self._kept.write(name, facts, found)
        else:
            log_progress(f'{name}: as an earlier call found')
        return [Motion(*one) for one in found]

    def _config(
        self, robot_file: str | Path, preset: str, changes: Mapping[str, Any]
    ) -> TrainConfig:
        given = self._all_changes(robot_file, preset, changes)
        return make_config(TASK, preset=preset, seed=self.seed, changes=given)

    def _all_changes(
        self, robot_file: str | Path, preset: str, changes: Mapping[str, Any]
    ) -> dict[str, Any]:
        given = {'schedule.steps': self.steps, 'schedule.until': 0.0, **self.changes}
        given |= {'task.robot': str(robot_file)}
        given |= {f'task.{key}': value for key, value in changes.items()}
        if 'schedule.episodes_per_epoch' not in given:
            episode = make_config(TASK, preset=preset, changes=given).schedule.episode_steps
            given['schedule.episodes_per_epoch'] = max(1, SPACING // episode)
        return given


def _content(robot_file: str | Path) -> str:
    """Return the content of a robot file as one text."""
    return repr(dataclasses.replace(load_robot(robot_file), folder=Path()))


def _measure(trials: _Trials, robot: str, part: str) -> dict[str, Any]:
    if part == 'rest':
        return _at_rest(trials, robot)
    return _randomised(trials, robot) if part == 'randomised' else _scene(trials, robot, part)


def _scene(trials: _Trials, robot: str, scene: str) -> dict[str, Any]:
    """Move to goals behind obstacles, and to others, also after the obstacles were moved."""
    files = {
        title: scene_file(robot, scene, trials.folder / 'robots', shift)
        for title, shift in SHIFTS.items()
    }
    [trained, *_] = files.values()
    policy = trials.policy(trained, trained.stem, PRESETS.get(scene, 'fast'))
    half = trials.goals // 2
    figures: dict[str, Any] = {}
    for title, file in files.items():
        task = trials.task(file)
        behind, others = draw_goals(task, trials.seed, trials.goals - half, half)
        goals = [*behind, *others]
        figures[title] = {}
        found = {}
        for name, chosen in (('policy', policy), (LINE, None)):
            found[name] = motions = trials.motions(file, goals, task, chosen)
            figures[title][name] = {
                'behind': summary(motions[: len(behind)]),
                'others': summary(motions[len(behind) :]),
            }
        pairs = zip(found['policy'], found[LINE], strict=True)
        missed = [ours for ours, line in pairs if not line.reached]
        figures[title]['policy']['missed_by_the_line'] = summary(missed)
    return figures


def _at_rest(trials: _Trials, robot: str) -> dict[str, Any]:
    """Measure the rest at goals in free space, with the straight finish and without."""
    policy = trials.policy(robot, f'{robot}-rest', PRESETS['rest'])
    task = trials.task(robot)
    _, goals = draw_goals(task, trials.seed, 0, trials.goals)
    seeds = [episode_seed(trials.seed, STREAM, index) for index in range(trials.goals)]
    # In the task the policy alone moves the arm, for one episode.
    alone = Evaluator(TASK, task.options).run(policy, seeds)
    errors, motions_mm = 1e3 * alone.final_errors, 1e3 * alone.motions_at_goal
    return {
        'policy': summary(trials.motions(robot, list(goals), task, policy)),
        LINE: summary(trials.motions(robot, list(goals), task, None)),
        'policy without the straight finish': {
            'goals': len(seeds),
            'reached': int(alone.successes.sum()),
            'share': alone.success_rate,
            'median_error_mm': float(np.median(errors)),
            'p95_error_mm': float(np.percentile(errors, 95)),
            'p95_motion_at_goal_mm': float(np.percentile(motions_mm, 95)),
            'worst_motion_at_goal_mm': float(motions_mm.max()),
        },
    }


def _randomised(trials: _Trials, robot: str) -> dict[str, Any]:
    """Move on randomised plants that nobody was trained on."""
    task = trials.task(robot)
    _, goals = draw_goals(task, trials.seed, 0, trials.goals)
    controllers: dict[str, OnnxPolicy | None] = {
        'policy': trials.policy(robot, f'{robot}-randomised', 'fast', randomise=RANDOMISE)
    }
    if not trials.given_policy:
        controllers['nominal policy'] = trials.policy(robot, f'{robot}-nominal', 'fast')
    controllers[LINE] = None
    return {
        name: summary(trials.motions(robot, list(goals), task, policy, RANDOMISE))
        for name, policy in controllers.items()
    }


HEADER = (
    *('part', 'controller', 'goals', 'reached', 'share'),
    *('contacts', 'median error [mm]', 'motion at the goal: 95 % below, largest [mm]'),
)


def _rows(part: str, figures: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a part, from its figures."""
    if part not in SCENES:
        return [_row(part, name, one) for name, one in figures.items()]
    return [
        _row(f'{part}, {title}: {kind.replace("_", " ")}', name, one)
        for title, by_controller in figures.items()
        for name, kinds in by_controller.items()
        for kind, one in kinds.items()
    ]


def _row(what: str, name: str, one: Mapping[str, Any]) -> tuple[str, ...]:
    share, contacts = one['share'], one.get('contacts')
    error, motion = one.get('median_error_mm'), one.get('p95_motion_at_goal_mm')
    return (
        *(what, name.replace('_', ' '), str(one['goals']), str(one['reached'])),
        '' if share is None else f'{100.0 * share:.0f} %',
        '' if contacts is None else str(contacts),
        '' if error is None else f'{error:.2f}',
        '' if motion is None else f'{motion:.2f}, {one["worst_motion_at_goal_mm"]:.2f}',
    )
