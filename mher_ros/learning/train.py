"""The training loop: episodes, updates, evaluations, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import enum
import json
from pathlib import Path
import time
from typing import Any

from mher_ros.errors import ArmError, EpisodeLostError, StopAsked, TRIES
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
    the episode or evaluation under way had not begun. An episode that the env declares lost is
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
        self.evaluation: dict[str, Any] = {}
        self.env_steps = 0
        self.episodes = 0
        self._training_successes: list[bool] = []
        self._seconds_before = 0.0
        self._started = time.monotonic()

    def resume(self) -> None:
        """Go on from the folder's checkpoint."""
        assert self._folder is not None
        path = self._folder / CHECKPOINT
        state = load_checkpoint(path)
        began_with, goes_on_with = json.loads(state['config']), _lasting(self._config)
        for key, value in json.loads(json.dumps(goes_on_with)).items():
            # An option that did not exist then was what it is unless it is chosen.
            if key in began_with and began_with[key] != value:
                raise CheckpointError(
                    f'the checkpoint {path} is of a run whose {key} was {began_with[key]}, '
                    f'not {value}'
                )
        self.agent.load_state(state['agent'])
        self.rows = list(state['rows'])
        self.evaluation = dict(state['evaluation'])
        self.env_steps, self.episodes = state['env_steps'], state['episodes']
        self._training_successes = list(state['training_successes'])
        self._seconds_before = state['seconds']
        for progress in self._progress:
            progress.resume(self.rows)
        try:
            self._recorder.resume(self._folder / EPISODES, self.episodes)
        except EpisodesError as error:
            self._warn(f'the episodes so far will not be shown: {error}')

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
            'evaluation': self.evaluation,
            'env_steps': self.env_steps,
            'episodes': self.episodes,
            'training_successes': self._training_successes,
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

        Both wishes are looked at between episodes; ``asked_to_save`` forgets its own.
        """
        self._started = time.monotonic()
        try:
            ending = self._run_until_an_end(asked_to_stop, asked_to_save)
        except StopAsked:
            ending = Ending.ASKED
        except ArmError:
            self.save()
            raise
        self.save()
        return ending

    def _run_until_an_end(
        self, asked_to_stop: Callable[[], bool], asked_to_save: Callable[[], bool]
    ) -> Ending:
        while True:
            if self._epoch_is_over() and self._rows_behind():
                self._close_epoch()
            ending = self._ending()
            if ending is None and asked_to_stop():
                return Ending.ASKED
            if ending is not None:
                break
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
        number, before = self.episodes, self.env_steps
        self.env_steps += len(episode)
        self.episodes += 1
        if warming_up:
            if self.episodes == schedule.warmup_episodes:
                self._tell('model')
                agent.warm_up_model()
                self._update(schedule.warmup_updates)
            self._recorder.add(number, before, episode, joints, agent.virtual_offsets)
            return
        interface = self._env.interface
        achieved = interface.achieved_goal(episode.observations[-1])
        self._training_successes.append(bool(interface.reward(achieved, episode.goal) == 0.0))
        self._update(schedule.updates_per_episode)
        self._recorder.add(number, before, episode, joints, agent.virtual_offsets)

    def _update(self, count: int) -> None:
        for index in range(count):
            if index % 10 == 0:
                self._tell('learning')
            self.agent.update()

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
        evaluation = self._evaluate(self.agent.policy_function(), seeds)
        self.evaluation = {**evaluation.summary(), 'updates': self.agent.updates}
        row = self._row(evaluation)
        self._training_successes = []
        self.rows.append(row)
        self.save()
        for progress in self._progress:
            progress.row(row)

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


def _lasting(config: TrainConfig) -> dict[str, Any]:
    """Return every choice of a run but its budgets, which may change when it goes on."""
    head = {name: getattr(config, name) for name in ('task_name', 'algorithm', 'seed')}
    options = {key: value for key, value, _ in describe(config) if key not in BUDGETS}
    return {**head, **options}
