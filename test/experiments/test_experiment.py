from mher_ros.experiments.experiment import narrow, with_changes
from mher_ros.experiments.jobs import Job
from mher_ros.options import OptionError
import pytest
from tiny_experiment import tiny_experiment, tiny_variant

GRID = tiny_experiment(
    *(
        tiny_variant(system, task=task)
        for task in ('point2d_large', 'reacher')
        for system in ('mher', 'her', 'ddpg')
    ),
    algorithms=('mher', 'her'),
    tasks=('reacher',),
)


def chosen(experiment):
    return [(variant.task, variant.name) for variant in experiment.variants]


def test_unless_asked_the_default_algorithms_and_tasks_are_run():
    assert chosen(narrow(GRID)) == [('reacher', 'mher'), ('reacher', 'her')]


def test_algorithms_and_tasks_can_be_narrowed_and_widened():
    one = narrow(GRID, ('point2d_large', 'reacher'), ('ddpg',))
    assert chosen(one) == [('point2d_large', 'ddpg'), ('reacher', 'ddpg')]
    assert len(narrow(GRID, ('all',), ('all',)).variants) == 6


def test_an_algorithm_or_task_that_it_does_not_have_is_refused():
    with pytest.raises(OptionError, match="no algorithm 'alchemy'.*mher, her, ddpg"):
        narrow(GRID, None, ('alchemy',))
    with pytest.raises(OptionError, match="no task 'moon'"):
        narrow(GRID, ('moon',))


def test_a_change_holds_for_every_algorithm_and_is_noted():
    changed = with_changes(GRID, {'agent.batch': '7', 'schedule.evaluation_goals': '3'})
    for variant in changed.variants:
        config = Job(variant, 1).config
        assert (config.agent.batch, config.schedule.evaluation_goals) == (7, 3)
    assert 'agent.batch=7, schedule.evaluation_goals=3' in changed.notes[-1]
    assert with_changes(GRID, {}) == GRID
