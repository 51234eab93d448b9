"""Runs that end before their time and go on as if nothing had happened."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from killed_runs import run_until_killed
from mher_ros.files import CHECKPOINT
from mher_ros.learning.config import load_config, make_config
from mher_ros.learning.model import Dynamics
from mher_ros.learning.run.checkpoint import CheckpointError
from mher_ros.learning.run.session import export_run
from mher_ros.learning.run.trainer import StopReason
from mher_ros.options import OptionError, override
from mher_ros.robots.robot import load_robot
import pytest
from tiny_runs import TINY
from training_runs import (
    rows,
    run,
    same_episodes,
    same_policy,
    stop_after,
    StopAtCall,
    tensorboard_errors,
)


@pytest.mark.parametrize('cycles', range(8))
def test_a_run_stopped_after_any_episode_and_resumed_is_the_same_run(whole, tmp_path, cycles):
    folder = tmp_path / 'run'
    _, ending = run(folder, whole[1], asked_to_stop=stop_after(cycles))
    assert ending is StopReason.REQUESTED
    _, ending = run(folder, whole[1], resume=True)
    assert ending is StopReason.STEPS
    assert rows(folder) == rows(whole[0])
    assert same_policy(folder, whole[0])


@pytest.mark.parametrize('number', [1, 2, 30, 61, 100, 130, 190, 250])
def test_a_run_stopped_at_any_moment_and_resumed_is_the_same_run(whole, tmp_path, number):
    folder = tmp_path / 'run'
    _, ending = run(folder, whole[1], asked_to_stop=StopAtCall(number))
    assert ending is StopReason.REQUESTED
    _, ending = run(folder, whole[1], resume=True)
    assert ending is StopReason.STEPS
    assert rows(folder) == rows(whole[0])
    assert same_policy(folder, whole[0])
    assert same_episodes(folder, whole[0])


@pytest.mark.parametrize('cycles', [2, 4, 6])
def test_a_larger_threshold_goes_on_where_it_was(tiny, tmp_path, cycles):
    # A threshold of 30 on a square of 10 is always reached: it shrinks with every second episode.
    config = tiny(schedule__threshold_start=30.0, schedule__threshold_episodes=2)
    whole, parted = tmp_path / 'whole', tmp_path / 'parted'
    trainer, _ = run(whole, config)
    # 6 episodes after the warm-up
    assert trainer.agent.threshold_factor == pytest.approx(30.0 * 0.7**3)
    run(parted, config, asked_to_stop=stop_after(cycles))
    resumed, _ = run(parted, config, resume=True)
    assert resumed.agent.threshold_factor == trainer.agent.threshold_factor
    assert rows(parted) == rows(whole)
    assert same_policy(parted, whole)


def test_a_run_is_not_resumed_or_exported_with_other_obstacles_than_it_had(tiny, tmp_path):
    # What the policy was trained with would be said wrongly.
    robot, folder = tmp_path / 'mine.yaml', tmp_path / 'run'
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    robot.write_text(source)
    config = tiny(task='reach', task__robot=str(robot))
    run(folder, config, asked_to_stop=stop_after(1))
    wall = '{shape: box, position: [0.5, 0.0, 0.1], size: [0.05, 0.2, 0.2]}'
    robot.write_text(f'{source}\nscene: {{wall: {wall}}}\n')
    for use in (lambda: run(folder, config, resume=True), lambda: export_run(folder)):
        with pytest.raises(CheckpointError, match='another arm: .*no obstacles there, obstacles'):
            use()
    robot.write_text(source)
    run(folder, config, resume=True, asked_to_stop=stop_after(0))


PLANNING = {
    'plan__hidden': (8,),
    'plan__first_actions': 3,
    'plan__trajectories': 2,
    'plan__steps': 4,
    'plan__warmup_fits': 5,
    'plan__fits_per_update': 3,
    'schedule__steps': 100,
}


def test_planning_and_fitting_are_stopped_at_any_moment_and_go_on_exactly(tiny, tmp_path):
    config = tiny('plangan', **PLANNING)
    whole, parted = tmp_path / 'whole', tmp_path / 'parted'
    run(whole, config)
    stops = 0
    ending = run(parted, config, asked_to_stop=StopAtCall(1))[1]
    while ending is StopReason.REQUESTED:
        stops += 1
        ending = run(parted, config, resume=True, asked_to_stop=StopAtCall(83))[1]
    assert stops > 4
    assert ending is StopReason.STEPS
    assert rows(parted) == rows(whole)
    assert same_policy(parted, whole)
    assert same_episodes(parted, whole)
    assert not (whole / 'policy.onnx').exists()
    with pytest.raises(OptionError, match='plangan'):
        export_run(whole)


@pytest.mark.parametrize(
    ('call', 'number'),
    [
        ('mher_ros.learning.core.agent:Agent.update', 1),
        ('mher_ros.learning.core.agent:Agent.update', 14),
        ('mher_ros.learning.core.agent:Agent.act', 50),
        ('mher_ros.tasks.rollouts:Evaluator.run', 2),
        # config, first episodes, first checkpoint, first row: inside the second of each file
        ('os:replace', 5),
        ('os:replace', 6),
        ('mher_ros.learning.run.progress:CsvProgress.row', 2),
        ('mher_ros.learning.run.progress:TensorBoardProgress.row', 2),
    ],
)
def test_a_run_killed_anywhere_and_resumed_is_the_same_run(whole, tmp_path, call, number):
    folder = tmp_path / 'run'
    assert run_until_killed(folder, whole[1], call, number) == -signal.SIGKILL
    _, ending = run(folder, whole[1], resume=True)
    assert ending is StopReason.STEPS
    assert rows(folder) == rows(whole[0])
    assert tensorboard_errors(folder) == tensorboard_errors(whole[0])
    assert same_policy(folder, whole[0])
    assert not list(folder.glob('.*'))


@pytest.mark.slow
def test_a_fast_run_with_a_real_arm_resumes_exactly(tmp_path):
    config = make_config(
        'fetch_reach', changes={'schedule.steps': 175, 'schedule.evaluation_goals': 4}
    )
    run(tmp_path / 'whole', config)
    run(tmp_path / 'parted', config, asked_to_stop=stop_after(4))
    run(tmp_path / 'parted', config, resume=True)
    assert rows(tmp_path / 'parted') == rows(tmp_path / 'whole')
    assert same_policy(tmp_path / 'parted', tmp_path / 'whole')


def test_rows_after_the_checkpoint_are_taken_back_on_resume(whole, tmp_path):
    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(5))
    with (folder / 'progress.csv').open('a') as file:
        file.write('9999' + ',0' * (len(rows(folder)[0])) + '\n')
    run(folder, whole[1], resume=True)
    assert rows(folder) == rows(whole[0])


def test_a_damaged_checkpoint_stops_the_resume_and_is_kept(whole, tmp_path):
    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(4))
    checkpoint = folder / CHECKPOINT
    damaged = checkpoint.read_bytes()[:-1]
    checkpoint.write_bytes(damaged)
    with pytest.raises(CheckpointError, match='is damaged'):
        run(folder, whole[1], resume=True)
    assert checkpoint.read_bytes() == damaged


def test_a_checkpoint_of_other_choices_is_refused(whole, tmp_path):
    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(4))
    other = override(whole[1], {'agent.batch': 32})
    with pytest.raises(CheckpointError, match=r'agent\.batch was 64, not 32'):
        run(folder, other, resume=True)
    assert load_config(folder) == whole[1]


def test_a_second_process_is_kept_out_of_the_folder(whole, tmp_path):
    folder = tmp_path / 'run'

    def try_again():
        with pytest.raises(OptionError, match='another process is training in'):
            run(folder, whole[1], resume=True)
        return True

    run(folder, whole[1], asked_to_stop=try_again)


def test_what_a_killed_writer_left_behind_is_removed(whole, tmp_path):
    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(1))
    (folder / f'.{CHECKPOINT}.x1y2').write_bytes(b'half')
    run(folder, whole[1], resume=True, asked_to_stop=stop_after(0))
    assert not list(folder.glob('.*'))


def test_a_full_disk_ends_the_run_with_a_sentence_and_keeps_the_checkpoint(whole, tmp_path):
    import resource

    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(4))
    before = (folder / CHECKPOINT).read_bytes()
    command = [sys.executable, '-m', 'mher_ros', 'train', 'point2d_large', '--resume', '--out']
    limit = len(before) // 2
    run_again = subprocess.run(
        [*command, str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(Path(__file__).parents[3])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert run_again.returncode == 2
    assert 'cannot write the checkpoint' in run_again.stderr
    assert 'Traceback' not in run_again.stderr
    assert (folder / CHECKPOINT).read_bytes() == before


def test_a_long_plan_is_given_up_at_its_next_step(tmp_path, monkeypatch):
    predict, predicted = Dynamics.step, []

    def count(*arguments):
        predicted.append(time.process_time())
        return predict(*arguments)

    monkeypatch.setattr(Dynamics, 'step', count)
    sizes = {'plan.steps': 1000, 'plan.next_state': 'model', 'plan.warmup_fits': 0}
    config = make_config('point2d_large', 'plangan', changes={**TINY, **sizes})
    _, ending = run(tmp_path / 'run', config, asked_to_stop=lambda: len(predicted) >= 20)
    assert ending is StopReason.REQUESTED
    assert len(predicted) == 20
    assert time.process_time() - predicted[-1] < 2.0
    assert (tmp_path / 'run' / CHECKPOINT).exists()
