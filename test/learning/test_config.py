import dataclasses
import itertools
import re

from mher_ros.learning.config import config_from_dict, make_config
from mher_ros.learning.presets import ALGORITHMS, PRESETS
from mher_ros.options import OptionError
from mher_ros.tasks import TASKS
import pytest


@pytest.mark.parametrize('task', TASKS)
def test_every_combination_is_valid_and_survives_json(task):
    for algorithm, preset in itertools.product(ALGORITHMS, PRESETS):
        config = make_config(task, algorithm, preset, seed=3)
        assert config_from_dict(config.to_dict()) == config


def test_the_paper_preset_is_the_authors_schedule():
    config = make_config('fetch_reach', preset='paper')
    assert config.schedule.steps == (20 + 30 * 5) * 100
    assert config.agent.batch == 64
    assert config.schedule.updates_per_episode == 5
    assert config.relabel.goals == 'virtual'
    assert config.model.members == 3
    assert config.agent.value_ceiling == 100.0
    assert make_config('point2d_large', preset='paper').schedule.steps == 5000
    assert make_config('reacher', preset='paper').schedule.episodes_per_epoch == 15


@pytest.mark.parametrize(('task', 'threshold'), [('fetch_reach', 0.02), ('sawyer_reach', 0.024)])
def test_the_precise_preset_is_the_fast_one_with_a_tighter_goal(task, threshold):
    precise = make_config(task, preset='precise')
    assert precise.task.threshold == threshold
    assert precise == dataclasses.replace(
        make_config(task, preset='fast', changes={'task.threshold': threshold}), preset='precise'
    )
    chosen = make_config(task, preset='precise', changes={'task.threshold': 0.01})
    assert chosen.task.threshold == 0.01


def test_presets_for_deployment_leave_out_goals_that_cannot_be_reached():
    for preset, reachable in (('fast', True), ('precise', True), ('paper', False)):
        assert make_config('fetch_reach', preset=preset).task.reachable_goals == reachable
    chosen = make_config('fetch_reach', changes={'task.reachable_goals': False})
    assert not chosen.task.reachable_goals


def test_a_run_that_began_before_a_task_had_an_option_goes_on_without_it():
    values = make_config('fetch_reach').to_dict()
    del values['task']['reachable_goals']
    assert not config_from_dict(values).task.reachable_goals


def test_changes_go_over_the_preset_and_reach_the_task():
    config = make_config('point2d_large', changes={'task.box': '4', 'agent.alpha': '2.5'})
    assert config.task.box == 4.0
    assert config.agent.alpha == 2.5


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'task': 'juggle'}, "unknown task 'juggle'; there are point2d_large"),
        ({'algorithm': 'ppo'}, "unknown algorithm 'ppo'; there are mher, ddpg, her, cher"),
        ({'preset': 'slow'}, "unknown preset 'slow'; there are"),
        ({'seed': -1}, 'seed must be a whole number'),
        ({'seed': 2**63}, 'seed must be a whole number'),
        ({'seed': '1'}, 'seed must be a whole number'),
        ({'changes': {'agent.beta': 1}}, "unknown key 'agent.beta'; the keys are"),
        ({'changes': {'task.box': 4.0}}, "unknown key 'task.box'"),
        ({'changes': {'agent.gamma': '1.5'}}, 'agent.gamma must be at least 0.0 and at most'),
        ({'changes': {'schedule.steps': '10'}}, 'schedule.steps must be at least'),
    ],
)
def test_a_wrong_choice_is_named(arguments, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        make_config(**{'task': 'fetch_reach', **arguments})


@pytest.mark.parametrize(
    ('algorithm', 'changes', 'message'),
    [
        ('cher', {'agent.replay_rare': True}, 'relabel.candidates=2'),
        ('mbpo5', {'relabel.candidates': 2}, 'agent.model_batch_steps=5, relabel.candidates=2'),
        ('gcsl', {'relabel.goals': 'none'}, 'agent.actor=imitation excludes relabel.goals=none'),
        ('gcsl', {'agent.model_batch_steps': 3}, 'excludes agent.model_batch_steps=3'),
        ('no_mbr', {'agent.model_batch_steps': 3}, 'excludes agent.model_batch_steps=3'),
        ('no_mbr', {'relabel.candidates': 2}, 'excludes relabel.candidates=2'),
        (
            'plangan',
            {'agent.fourier_features': 2},
            'agent.actor=plan excludes agent.fourier_features=2',
        ),
        (
            'plangan',
            {'agent.workspace_normalisation': True},
            'agent.workspace_normalisation=True',
        ),
    ],
)
def test_choices_that_do_not_go_together_are_refused(algorithm, changes, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        make_config('point2d_large', algorithm, 'paper', changes=changes)


def test_a_run_from_before_an_option_existed_can_be_read():
    values = make_config('point2d_large', preset='paper').to_dict()
    del values['plan'], values['agent']['fourier_features'], values['relabel']['random_share']
    assert config_from_dict(values) == make_config('point2d_large', preset='paper')


def test_an_option_that_a_preset_got_later_is_off_in_a_run_from_before():
    config = make_config('point2d_large', preset='fast')
    values = config.to_dict()
    assert config.agent.workspace_normalisation and config.schedule.warmup_updates
    del values['agent']['workspace_normalisation'], values['schedule']['warmup_updates']
    read = config_from_dict(values)
    assert not read.agent.workspace_normalisation and not read.schedule.warmup_updates
    assert read.agent.hidden == config.agent.hidden


def test_a_file_that_is_no_configuration_is_refused():
    with pytest.raises(OptionError, match='not the configuration of a run'):
        config_from_dict({'task_name': 'fetch_reach'})
