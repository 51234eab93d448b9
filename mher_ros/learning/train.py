"""The training loop: episodes, updates, evaluations, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import enum
import json
import math
from pathlib import Path
import time
from typing import Any

from mher_ros.errors import ArmError, EpisodeLostError, MherError, StopAsked, TRIES
from mher_ros.learning import streams
from mher_ros.learning.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.episodes import EpisodeRecorder, EPISODES, EpisodesError
from mher_ros.learning.learners import make_learner
from mher_ros.learning.progress import Progress, Row, WALL_TIME
from mher_ros.learning.replay import Episode
from mher_ros.options import describe
from mher_ros.tasks.rollouts import episode_seed, Evaluation, PolicyFunction
import numpy as np
from numpy.typing import NDArray

__all__ = ['Ending', 'Evaluate', 'Trainer']

CHECKPOINT = 'checkpoint'
BUILT_IN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a state of something else raises where it is put in."""
BUDGETS = {'schedule.steps', 'schedule.until', 'schedule.max_minutes'}

Evaluate = Callable[[PolicyFunction, Sequence[int]], Evaluation]


class Ending(enum.Enum):
    """Why a run stopped."""

    SUCCESS = 'the success rate holds'
    STEPS = 'the environment steps are used up'
    TIME = 'the time is used up'
    ASKED = 'it was asked to stop'


class Trainer:
    """
    One run in one folder, or in none: then nothing of it is kept.

    ``env`` is a Gymnasium GoalEnv with an ``interface``, ``joint_names`` and a ``joint_state``;
    ``evaluate`` tries a policy from given reset seeds. A checkpoint is written after every
    evaluation and when the run stops; a run that goes on from it does exactly what it would have
    done without the pause. Either may raise ``StopAsked`` at any time: the run then stops as if
    the episode or evaluation under way had not begun. Updates that are left are done when the run
    goes on. An episode that the env declares lost is
    done again, from the same seed and with the same chance; any other trouble with the arm ends
    the run, with a checkpoint.
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
        self.agent = make_learner(env.interface, config)
        self._recorder = EpisodeRecorder(env.interface, env.joint_names)
        self.rows: list[Row] = []
        self.best: dict[str, Any] | None = None
        """The policy (its ``state_dict``) that did best, its evaluation, and when that was."""
        self.env_steps = 0
        self.episodes = 0
        self._training_successes: list[bool] = []
        self._updates_left: int | None = None
        """Of those that follow the last episode; None: all that follows it is done."""
        self._asked_to_stop: Callable[[], bool] = lambda: False
        self._seconds_before = 0.0
        self._started = time.monotonic()

    @property
    def has_learnt(self) -> bool:
        """Whether all is done that follows the episodes so far."""
        return self._updates_left is None

    def resume(self) -> None:
        """Go on from the folder's checkpoint."""
        assert self._folder is not None
        path = self._folder / CHECKPOINT
        state = load_checkpoint(path)
        try:
            self._check_config(path, json.loads(state['config']))
            self._restore(state)
        except MherError:
            raise
        except BUILT_IN as error:
            reason = f'{type(error).__name__}: {error}'.splitlines()[0]
            raise CheckpointError(
                f'the checkpoint {path} holds no state of this run: {reason[:400]}'
            ) from error
        for progress in self._progress:
            progress.resume(self.rows)
        try:
            steps = self._config.schedule.episode_steps
            self._recorder.resume(self._folder / EPISODES, self.episodes, steps)
        except EpisodesError as error:
            self._warn(f'the episodes so far will not be shown: {error}')

    def _check_config(self, path: Path, began_with: dict[str, Any]) -> None:
        for key, value in json.loads(json.dumps(_lasting(self._config))).items():
            # An option that did not exist then was what it is unless it is chosen.
            if began_with.get(key, value) != value:
                raise CheckpointError(
                    f'the checkpoint {path} is of a run whose {key} was {began_with[key]}, '
                    f'not {value}'
                )

    def _restore(self, state: dict[str, Any]) -> None:
        """Take up what ``save`` wrote; what is no such state raises one of ``BUILT_IN``."""
        self.agent.load_state(state['agent'])
        self.rows = [_checked_row(row) for row in state['rows']]
        if any(row.keys() != self.rows[0].keys() for row in self.rows):
            raise ValueError('rows: the same figures are expected in each')
        self.best = self._checked_best(state['best'])
        self.env_steps, self.episodes = state['env_steps'], state['episodes']
        if (self.episodes, type(self.env_steps)) != (self.agent.replay.episodes_stored, int):
            raise ValueError(f'episodes: those of the replay are expected, got {self.episodes}')
        self._training_successes = list(map(bool, state['training_successes']))
        left = state.get('updates_left')
        self._updates_left = None if left is None else int(left)
        self._seconds_before = float(state['seconds'])
        if not 0.0 <= self._seconds_before < math.inf or self.env_steps < 0:
            raise ValueError('env_steps and seconds: counts are expected')

    def save(self) -> None:
        """Write the checkpoint, and before it the episodes: later ones are dropped on resume."""
        if self._folder is None:
            return
        try:
            self._recorder.save(self._folder / EPISODES)
        except OSError as error:
            # It is for the eye alone, and not worth a run.
            self._warn(f'cannot write {self._folder / EPISODES}: {error.strerror}')
        state = {
            'config': json.dumps(_lasting(self._config)),
            'agent': self.agent.state(),
            'rows': self.rows,
            'best': self.best,
            'env_steps': self.env_steps,
            'episodes': self.episodes,
            'training_successes': self._training_successes,
            'updates_left': self._updates_left,
            'seconds': self._seconds(),
        }
        save_checkpoint(self._folder / CHECKPOINT, state)

    def run(
        self,
        asked_to_stop: Callable[[], bool] = lambda: False,
        asked_to_save: Callable[[], bool] = lambda: False,
    ) -> Ending:
        """
        Train until a budget is used up; leaves a checkpoint, also when asked to stop.

        ``asked_to_stop`` is called again and again, also while an action is planned, a network
        fitted or a policy evaluated; ``asked_to_save`` between episodes, and forgets its wish.
        """
        self._started = time.monotonic()
        self._asked_to_stop = asked_to_stop
        self.agent.interrupt = self._stop_if_asked
        try:
            ending = self._run_until_an_end(asked_to_save)
        except StopAsked:
            ending = Ending.ASKED
        except ArmError:
            self.save()
            raise
        self.save()
        return ending

    def _stop_if_asked(self) -> None:
        if self._asked_to_stop():
            raise StopAsked('stopped in the middle of an episode, an update or an evaluation')

    def _run_until_an_end(self, asked_to_save: Callable[[], bool]) -> Ending:
        while True:
            if self._updates_left is not None:
                self._learn(self._updates_left)
            if self._epoch_is_over() and self._rows_behind():
                self._close_epoch()
            ending = self._ending()
            if ending is not None:
                break
            self._stop_if_asked()
            if asked_to_save():
                self.save()
                for progress in self._progress:
                    progress.notice(f'checkpoint written after {self.env_steps} steps')
            self._cycle()
        if self.agent.updates and self._rows_behind():
            self._close_epoch()
            ending = self._ending() or ending
        return ending

    def _epoch_is_over(self) -> bool:
        schedule = self._config.schedule
        since_warmup = self.episodes - schedule.warmup_episodes
        return since_warmup > 0 and since_warmup % schedule.episodes_per_epoch == 0

    def _rows_behind(self) -> bool:
        return not self.rows or self.rows[-1]['env_steps'] != self.env_steps

    def _ending(self) -> Ending | None:
        schedule = self._config.schedule
        if schedule.until and len(self.rows) >= 2:
            rates = [float(row['success_rate'] or 0.0) for row in self.rows[-2:]]
            if min(rates) >= schedule.until:
                return Ending.SUCCESS
        if self.env_steps >= schedule.steps:
            return Ending.STEPS
        if schedule.max_minutes and self._seconds() >= 60.0 * schedule.max_minutes:
            return Ending.TIME
        return None

    def _cycle(self) -> None:
        """Do an episode, and the updates that follow it once the warm-up is over."""
        schedule, agent = self._config.schedule, self.agent
        warming_up = self.episodes < schedule.warmup_episodes
        self._tell('warm-up' if warming_up else 'collecting')
        episode, joints = self._collect(random=warming_up)
        agent.store(episode)
        self._recorder.add(self.episodes, self.env_steps, episode, joints)
        self.env_steps += len(episode)
        self.episodes += 1
        if self.episodes < schedule.warmup_episodes:
            return
        if not warming_up:
            interface = self._env.interface
            achieved = interface.achieved_goal(episode.observations[-1])
            self._training_successes.append(bool(interface.reward(achieved, episode.goal) == 0.0))
        self._learn(schedule.warmup_updates if warming_up else schedule.updates_per_episode)

    def _learn(self, updates: int) -> None:
        """Do the updates that follow an episode, or what is left of them after a stop."""
        self._updates_left = updates
        if self.episodes == self._config.schedule.warmup_episodes:
            self._tell('model')
            self.agent.warm_up_model()
        for index in range(updates):
            if index % 10 == 0:
                self._tell('learning')
            self._stop_if_asked()
            self.agent.update()
            self._updates_left -= 1
        self._updates_left = None
        self._recorder.note_virtual_offsets(self.agent.virtual_offsets)

    def _collect(self, random: bool) -> tuple[Episode, NDArray[np.float64]]:
        """Return an episode and the joints' positions (T + 1, q) in it."""
        chance, lost = self.agent.chance, 0
        while True:
            try:
                return self._try_episode(random)
            except (ArmError, StopAsked) as error:
                self.agent.chance = chance
                lost += 1
                if not isinstance(error, EpisodeLostError) or lost == TRIES:
                    raise
                self._warn(f'an episode was dropped and is done again: {error}')

    def _try_episode(self, random: bool) -> tuple[Episode, NDArray[np.float64]]:
        steps = self._config.schedule.episode_steps
        seed = episode_seed(self._config.seed, streams.TRAINING, self.episodes)
        start, _ = self._env.reset(seed=seed)
        goal = start['desired_goal']
        observations = np.empty((steps + 1, len(start['observation'])))
        actions = np.empty((steps, len(self._env.interface.action)), np.float32)
        joints = np.empty((steps + 1, len(self._env.joint_names)))
        observations[0], joints[0] = start['observation'], self._env.joint_state()[0]
        for step in range(steps):
            self._stop_if_asked()
            actions[step] = (
                self.agent.random_action() if random else self.agent.act(observations[step], goal)
            )
            observations[step + 1] = self._env.step(actions[step])[0]['observation']
            joints[step + 1] = self._env.joint_state()[0]
        return Episode(observations, actions, goal), joints

    def _close_epoch(self) -> None:
        """Evaluate, report and save."""
        self._tell('evaluating')
        seeds = [
            episode_seed(self._config.seed, streams.TEST, self.episodes, index)
            for index in range(self._config.schedule.evaluation_goals)
        ]
        evaluation = self._evaluate(self._interruptible(self.agent.policy_function()), seeds)
        self._keep_best(evaluation)
        row = self._row(evaluation)
        self._training_successes = []
        self.rows.append(row)
        self.save()
        for progress in self._progress:
            progress.row(row)

    def _interruptible(self, policy: PolicyFunction) -> PolicyFunction:
        def act(
            observations: NDArray[np.float64], goals: NDArray[np.float64]
        ) -> NDArray[np.float32]:
            self._stop_if_asked()
            return policy(observations, goals)

        return act

    def _checked_best(self, best: Any) -> dict[str, Any] | None:
        """Return what ``_keep_best`` keeps, or an error if it is of another policy."""
        if best is None:
            return None
        policy, found = self.agent.policy, best['policy']
        expected = {} if policy is None else policy.state_dict()
        if {key: value.shape for key, value in found.items()} != {
            key: value.shape for key, value in expected.items()
        }:
            raise ValueError('best: a policy of the same networks is expected')
        if not all(bool(value.isfinite().all()) for value in found.values()):
            raise ValueError('best: finite numbers are expected')
        float(best['evaluation']['success_rate'])
        if not all(type(best[key]) is int for key in ('env_steps', 'episodes', 'updates')):
            raise ValueError('best: counts are expected')
        return dict(best)

    def _keep_best(self, evaluation: Evaluation) -> None:
        """Keep the policy if none did better: of two that did equally well, the later one."""
        policy = self.agent.policy
        if policy is None:
            return
        if self.best and self.best['evaluation']['success_rate'] > evaluation.success_rate:
            return
        self.best = {
            'policy': {name: value.clone() for name, value in policy.state_dict().items()},
            'evaluation': evaluation.summary(),
            'env_steps': self.env_steps,
            'episodes': self.episodes,
            'updates': self.agent.updates,
        }

    def _row(self, evaluation: Evaluation) -> Row:
        agent = self.agent
        row: Row = {
            'env_steps': self.env_steps,
            'episodes': self.episodes,
            'updates': agent.updates,
            'success_rate': evaluation.success_rate,
            'final_error': evaluation.final_error,
            'training_success_rate': (
                float(np.mean(self._training_successes)) if self._training_successes else None
            ),
        }
        losses = agent.take_losses()
        for index, error in enumerate(agent.model_errors()):
            row[f'model_error_{index + 1}'] = error
        row.update({name: losses.get(name) for name in agent.loss_names})
        row[WALL_TIME] = round(self._seconds(), 3)
        return row

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    def _tell(self, activity: str) -> None:
        for progress in self._progress:
            progress.activity(activity, self.env_steps, self.agent.updates)

    def _warn(self, text: str) -> None:
        for progress in self._progress:
            progress.warning(text)


def _checked_row(row: Any) -> Row:
    """Return one row of figures; TypeError, ValueError or KeyError if it is none."""
    for key, value in row.items():
        if type(value) not in (int, float, type(None)) or not math.isfinite(value or 0.0):
            raise ValueError(f'rows: finite numbers are expected, {key} is {value!r}')
    for key in ('env_steps', 'success_rate', 'final_error'):
        float(row[key])
    return dict(row)


def _lasting(config: TrainConfig) -> dict[str, Any]:
    """Return every choice of a run but its budgets, which may change when it goes on."""
    head = {name: getattr(config, name) for name in ('task_name', 'algorithm', 'seed')}
    options = {key: value for key, value, _ in describe(config) if key not in BUDGETS}
    return {**head, **options}
