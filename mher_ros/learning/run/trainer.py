"""The training loop: episodes, updates, evaluations, checkpoints."""

from collections.abc import Callable, Sequence
import dataclasses
import enum
import json
import math
from pathlib import Path
import time
from typing import Any

from mher_ros.control.fit import check_same_arm, FitError
from mher_ros.errors import ArmError, EpisodeLostError, MherError, StopRequested, TRIES
from mher_ros.files import CHECKPOINT, EPISODES
from mher_ros.interface import TaskInterface, TrainedArm
from mher_ros.learning.baselines.plangan import PlanGanAgent
from mher_ros.learning.config import RngStream, TrainConfig
from mher_ros.learning.core.agent import Agent
from mher_ros.learning.core.learner import check_same_structure, Learner
from mher_ros.learning.core.replay_buffer import Episode, Floats
from mher_ros.learning.run.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from mher_ros.learning.run.episodes import EpisodeRecorder, EpisodesError
from mher_ros.learning.run.progress import Progress, Row, WALL_TIME
from mher_ros.learning.run.threshold_curriculum import ThresholdCurriculum
from mher_ros.options import OptionError
from mher_ros.tasks.rollouts import episode_seed, Evaluation, PolicyFunction
from mher_ros.tasks.task import Array
import numpy as np

STATE_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Exceptions that loading a state of a different structure raises."""
BUDGETS = {'schedule.steps', 'schedule.until', 'schedule.max_minutes'}
"""Options that may change when a run is resumed."""

Evaluate = Callable[[PolicyFunction, Sequence[int]], Evaluation]


class StopReason(enum.Enum):
    SUCCESS = 'the success rate is reached'
    STEPS = 'the environment steps are used up'
    TIME = 'the time is used up'
    REQUESTED = 'it was asked to stop'


class Trainer:
    """
    One training run; without a folder, nothing is written.

    ``env`` has ``interface``, ``joint_names``, and the methods of a ``Task``. ``evaluate``
    tests a policy from reset seeds. Both may raise StopRequested: the run then stops as if the
    current episode or evaluation had not started. A checkpoint is written after each evaluation
    and at the end; a resumed run gives the same results as one without a pause. A lost episode is
    repeated with the same random numbers; any other ArmError ends the run after a checkpoint.
    """

    def __init__(
        self,
        config: TrainConfig,
        env: Any,
        evaluate: Evaluate,
        folder: Path | None,
        progress: Sequence[Progress] = (),
    ) -> None:
        self._config, self._env, self._evaluate = config, env, evaluate
        self._folder, self._progress = folder, progress
        for listener in progress:
            listener.trainer = self
        self.agent = make_learner(env.interface, config)
        schedule = config.schedule
        self._curriculum = ThresholdCurriculum(
            env.interface, schedule.threshold_start, schedule.threshold_episodes
        )
        self.agent.threshold_factor = self._curriculum.factor
        self._recorder = EpisodeRecorder(env.interface, env.joint_names)
        self.rows: list[Row] = []
        self.best: dict[str, Any] | None = None  # ``state_dict`` of the policy, evaluation, counts
        self.env_steps = 0
        self.episodes = 0
        self._training_successes: list[bool] = []
        self._updates_left: int | None = None  # after the last episode; None: all are done
        self._asked_to_stop: Callable[[], bool] = lambda: False
        self._seconds_before = 0.0
        self._started = time.monotonic()

    @property
    def updates_complete(self) -> bool:
        """Whether all updates that follow the last episode are done."""
        return self._updates_left is None

    def resume(self) -> None:
        assert self._folder is not None
        path = self._folder / CHECKPOINT
        state = load_checkpoint(path)
        try:
            saved = json.loads(state['config'])
            for key, value in json.loads(json.dumps(_fixed_options(self._config))).items():
                if (found := saved.get(key, value)) != value:  # it may be older than an option
                    raise CheckpointError(
                        f'the checkpoint {path} is of a run whose {key} was {found}, not {value}'
                    )
            self._check_arm(state)
            self._load_state_dict(state)
        except MherError:
            raise
        except STATE_ERRORS as error:
            reason = f'{type(error).__name__}: {error}'.splitlines()[0]
            raise CheckpointError(
                f'the checkpoint {path} holds no state of this run: {reason[:400]}'
            ) from error
        self._report('resume', self.rows)
        try:
            steps = self._config.schedule.episode_steps
            self._recorder.resume(self._folder / EPISODES, self.episodes, steps)
        except EpisodesError as error:
            self._report('warning', f'earlier episodes cannot be displayed: {error}')

    def _check_arm(self, state: dict[str, Any]) -> None:
        """Refuse an arm whose robot file has changed: the contract of the policy would not say."""
        there, here = json.loads(state.get('arm', 'null')), self._arm
        if there is None or here is None:  # a task's own arm, or an older checkpoint
            return
        names = {'joints': tuple(there['joints']), 'tool_samples': there['tool_samples']}
        try:
            check_same_arm(TrainedArm(**{**there, **names}), here)
        except FitError as error:
            raise CheckpointError(f'the checkpoint is of a run on another arm: {error}') from None

    @property
    def _arm(self) -> TrainedArm | None:
        return getattr(self._env.interface, 'arm', None)

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``save`` wrote; any other state raises one of ``STATE_ERRORS``."""
        self.agent.load_state_dict(state['agent'])
        self.rows = [_checked_row(row) for row in state['rows']]
        if any(row.keys() != self.rows[0].keys() for row in self.rows):
            raise ValueError('rows: expected the same keys in all rows')
        self.best = self._checked_best(state['best'])
        self.env_steps, self.episodes = state['env_steps'], state['episodes']
        if (self.episodes, type(self.env_steps)) != (self.agent.replay.episodes_stored, int):
            raise ValueError(f'episodes: expected as many as in the replay, got {self.episodes}')
        self._training_successes = list(map(bool, state['training_successes']))
        if (saved := state.get('threshold_curriculum')) is not None:
            self._curriculum.factor, self._curriculum.reached = float(saved[0]), int(saved[1])
        if not 1.0 <= self._curriculum.factor <= self._config.schedule.threshold_start:
            raise ValueError(f'threshold_curriculum: expected a factor from 1 on, got {saved}')
        self.agent.threshold_factor = self._curriculum.factor
        left = state.get('updates_left')
        self._updates_left = None if left is None else int(left)
        self._seconds_before = float(state['seconds'])
        if not 0.0 <= self._seconds_before < math.inf or self.env_steps < 0:
            raise ValueError('env_steps, seconds: expected non-negative numbers')

    def save(self) -> None:
        """Write first the recorded episodes, then the checkpoint."""
        # In this order: episodes that are later than the checkpoint are removed on resume.
        if self._folder is None:
            return
        try:
            self._recorder.save(self._folder / EPISODES)
        except OSError as error:
            # Recorded episodes are for display only.
            self._report('warning', f'cannot write {self._folder / EPISODES}: {error.strerror}')
        state = {
            'config': json.dumps(_fixed_options(self._config)),
            'arm': json.dumps(self._arm and dataclasses.asdict(self._arm)),
            'agent': self.agent.state_dict(),
            'rows': self.rows,
            'best': self.best,
            'env_steps': self.env_steps,
            'episodes': self.episodes,
            'training_successes': self._training_successes,
            'threshold_curriculum': [self._curriculum.factor, self._curriculum.reached],
            'updates_left': self._updates_left,
            'seconds': self._seconds(),
        }
        save_checkpoint(self._folder / CHECKPOINT, state)

    def run(
        self,
        asked_to_stop: Callable[[], bool] = lambda: False,
        asked_to_save: Callable[[], bool] = lambda: False,
    ) -> StopReason:
        """Train until a limit of the schedule, or until asked to stop; write a checkpoint."""
        # ``asked_to_stop`` is called often, also during planning, model fitting and evaluations.
        # ``asked_to_save`` is called between episodes and resets its own request.
        self._started = time.monotonic()
        self._asked_to_stop = asked_to_stop
        self.agent.interrupt = self._stop_if_asked
        try:
            reason = self._run(asked_to_save)
        except StopRequested:
            reason = StopReason.REQUESTED
        except ArmError:
            self.save()
            raise
        self.save()
        return reason

    def _stop_if_asked(self) -> None:
        if self._asked_to_stop():
            raise StopRequested('stopped during an episode, an update or an evaluation')

    def _run(self, asked_to_save: Callable[[], bool]) -> StopReason:
        schedule = self._config.schedule
        while True:
            if self._updates_left is not None:
                self._learn(self._updates_left)
            since_warmup = self.episodes - schedule.warmup_episodes
            if since_warmup > 0 and since_warmup % schedule.episodes_per_epoch == 0:
                self._evaluate_if_due()
            reason = self._stop_reason()
            if reason is not None:
                break
            self._stop_if_asked()
            if asked_to_save():
                self.save()
                self._report('notice', f'checkpoint written after {self.env_steps} steps')
            self._collect_and_learn()
        if self.agent.updates:
            self._evaluate_if_due()
        return self._stop_reason() or reason

    def _stop_reason(self) -> StopReason | None:
        schedule = self._config.schedule
        rates = [float(row['success_rate'] or 0.0) for row in self.rows[-2:]]
        if schedule.until and len(rates) == 2 and min(rates) >= schedule.until:
            return StopReason.SUCCESS
        if self.env_steps >= schedule.steps:
            return StopReason.STEPS
        if schedule.max_minutes and self._seconds() >= 60.0 * schedule.max_minutes:
            return StopReason.TIME
        return None

    def _collect_and_learn(self) -> None:
        schedule = self._config.schedule
        is_warmup = self.episodes < schedule.warmup_episodes
        self._report_activity('warm-up' if is_warmup else 'collecting')
        episode, joints = self._collect(is_warmup)
        self.agent.store(episode)
        success = self._recorder.add(self.episodes, self.env_steps, episode, joints)
        self.env_steps += len(episode)
        self.episodes += 1
        if self.episodes < schedule.warmup_episodes:
            return
        if not is_warmup:
            self._training_successes.append(success)
            self._curriculum.take(episode)
            self.agent.threshold_factor = self._curriculum.factor
        self._learn(schedule.warmup_updates if is_warmup else schedule.updates_per_episode)

    def _learn(self, updates: int) -> None:
        """Do the updates that follow an episode, or the rest of them after an interruption."""
        self._updates_left = updates
        if self.episodes == self._config.schedule.warmup_episodes:
            self._report_activity('model')
            self.agent.warm_up_model()
        for index in range(updates):
            if index % 10 == 0:
                self._report_activity('learning')
            self._stop_if_asked()
            self.agent.update()
            self._updates_left -= 1
        self._updates_left = None
        self._recorder.record_goal_offsets(self.agent.goal_offsets)

    def _collect(self, is_random: bool) -> tuple[Episode, Array]:
        """Return an episode and its joint positions (T + 1, q)."""
        generator, lost = self.agent.rng.bit_generator, 0
        rng_state = generator.state
        while True:
            try:
                return self._try_episode(is_random)
            except (ArmError, StopRequested) as error:
                generator.state = rng_state
                lost += 1
                if not isinstance(error, EpisodeLostError) or lost == TRIES:
                    raise
                self._report('warning', f'an episode was dropped and is done again: {error}')

    def _try_episode(self, is_random: bool) -> tuple[Episode, Array]:
        steps, agent = self._config.schedule.episode_steps, self.agent
        seed = episode_seed(self._config.seed, RngStream.TRAINING, self.episodes)
        # Stored observations: a resumed run has them, too.
        options = self._env.start_options(agent.replay.last_observation)
        start, _ = self._env.reset(seed=seed, options=options)
        goal = start['desired_goal']
        observations = np.empty((steps + 1, len(start['observation'])))
        actions = np.empty((steps, len(self._env.interface.action)), np.float32)
        joints = np.empty((steps + 1, len(self._env.joint_names)))
        observations[0], joints[0] = start['observation'], self._env.joint_state()[0]
        for step in range(steps):
            self._stop_if_asked()
            now = observations[step]
            actions[step] = agent.random_action() if is_random else agent.act(now, goal)
            observations[step + 1] = self._env.step(actions[step])[0]['observation']
            joints[step + 1] = self._env.joint_state()[0]
        return Episode(observations, actions, goal), joints

    def _evaluate_if_due(self) -> None:
        """Evaluate the policy, unless the last row is of the same number of steps."""
        if self.rows and self.rows[-1]['env_steps'] == self.env_steps:
            return
        self._report_activity('evaluating')
        key = self._config.seed, RngStream.TEST, self.episodes
        goals = range(self._config.schedule.evaluation_goals)
        policy = self.agent.policy_function()

        def interruptible(observations: Array, goals: Array) -> Floats:
            self._stop_if_asked()
            return policy(observations, goals)

        evaluation = self._evaluate(interruptible, [episode_seed(*key, goal) for goal in goals])
        self._keep_best(evaluation)
        row = self._row(evaluation)
        self._training_successes = []
        self.rows.append(row)
        self.save()
        self._report('row', row)

    def _checked_best(self, best: Any) -> dict[str, Any] | None:
        """Return ``best`` of a checkpoint; one of ``STATE_ERRORS`` if it does not fit."""
        if best is None:
            return None
        policy = self.agent.policy
        expected = {} if policy is None else dict(policy.state_dict())
        check_same_structure('best', best['policy'], expected)
        float(best['evaluation']['success_rate'])
        if not all(type(best[key]) is int for key in ('env_steps', 'episodes', 'updates')):
            raise ValueError('best: expected counts')
        return dict(best)

    def _keep_best(self, evaluation: Evaluation) -> None:
        """Keep the policy unless an earlier one had a higher success rate."""
        policy = self.agent.policy
        rate = self.best['evaluation']['success_rate'] if self.best else 0.0
        if policy is None or rate > evaluation.success_rate:
            return
        self.best = {
            'policy': {name: value.clone() for name, value in policy.state_dict().items()},
            'evaluation': evaluation.summary(),
            **self.counts(),
        }

    def counts(self) -> dict[str, int]:
        """Return environment steps, episodes and updates so far."""
        updates = self.agent.updates
        return {'env_steps': self.env_steps, 'episodes': self.episodes, 'updates': updates}

    def _row(self, evaluation: Evaluation) -> Row:
        agent, successes = self.agent, self._training_successes
        losses = agent.take_losses()
        return {
            **self.counts(),
            'success_rate': evaluation.success_rate,
            'final_error': evaluation.final_error,
            'training_success_rate': float(np.mean(successes)) if successes else None,
            **{f'model_error_{step}': error for step, error in enumerate(agent.model_errors(), 1)},
            **{name: losses.get(name) for name in agent.loss_names},
            WALL_TIME: round(self._seconds(), 3),
        }

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _report(self, event: str, *arguments: Any) -> None:
        """Call the method ``event`` of each ``Progress``."""
        for progress in self._progress:
            getattr(progress, event)(*arguments)

    def _report_activity(self, activity: str) -> None:
        self._report('activity', activity, self.env_steps, self.agent.updates)


def _checked_row(row: Any) -> Row:
    """Return one row of a checkpoint; one of ``STATE_ERRORS`` if it is not a row."""
    for key, value in row.items():
        if type(value) not in (int, float, type(None)) or not math.isfinite(value or 0.0):
            raise ValueError(f'rows: expected finite numbers, {key} is {value!r}')
    for key in ('env_steps', 'success_rate', 'final_error'):
        float(row[key])
    return dict(row)


def _fixed_options(config: TrainConfig) -> dict[str, Any]:
    """Return the options that must not change when a run is resumed."""
    head = {name: getattr(config, name) for name in ('task_name', 'algorithm', 'seed')}
    return head | {key: value for key, value in config.values().items() if key not in BUDGETS}


def make_learner(interface: TaskInterface, config: TrainConfig) -> Learner:
    if config.needs_model and not getattr(interface, 'has_goal_map', True):
        raise OptionError(
            f'{config.algorithm} needs the achieved goal of predicted observations, and the '
            f'observations of {interface.task} do not contain it. Declare goal_map '
            '(mher_ros.register_task), or use her'
        )
    if config.schedule.threshold_start > 1.0 and getattr(interface, 'succeeds', None):
        raise OptionError(
            f'schedule.threshold_start needs a threshold; the reward function of {interface.task} '
            'decides about success. Set task.threshold'
        )
    return (PlanGanAgent if config.agent.actor == 'plan' else Agent)(interface, config)
