from mher_ros.experiments.jobs import attempt, Job
from mher_ros.experiments.provenance import code_digest
from mher_ros.experiments.recorders import RECORDERS
from mher_ros.learning.core.agent import Agent
from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.tasks import make
import numpy as np
import pytest
from tiny_experiment import bits, tiny_variant
import torch


def recorded(system, recorder, seed=1):
    result = attempt(Job(tiny_variant(system, recorder=recorder), seed), code_digest())
    assert isinstance(result, dict), result
    return result


@pytest.mark.parametrize('recorder', ['relabelled_goals', 'goal_distance', 'supervised_loss'])
def test_looking_changes_nothing_in_a_run(recorder):
    watched = recorded('mher', recorder)
    alone = attempt(Job(tiny_variant('mher'), 1), code_digest())
    assert watched['record']
    assert bits(watched)[0] == bits(alone)[0]
    assert watched['record'] == recorded('mher', recorder)['record']


def test_goals_of_her_lie_on_the_trajectory_and_those_of_mher_need_not():
    her = recorded('her', 'relabelled_goals')['record']
    mher = recorded('mher', 'relabelled_goals')['record']
    for look, steps in (('early', 20), ('late', 40)):
        assert her[look]['env_steps'] == steps
        assert len(her[look]['desired']) == 2
        assert _distance_to_path(her[look]).max() == 0.0
        assert _distance_to_path(mher[look]).max() > 0.0


def test_cher_relabels_with_the_goals_that_its_curriculum_picks():
    her = recorded('her', 'relabelled_goals')['record']['early']
    cher = recorded('cher', 'relabelled_goals')['record']['early']
    # Half of the candidates make a batch: half of the goals, and still real ones.
    assert len(cher['relabelled']) == len(her['relabelled']) / 2
    assert _distance_to_path(cher).max() == 0.0


def test_distances_and_losses_have_a_value_for_each_evaluation():
    distance = recorded('her', 'goal_distance')['record']
    assert distance['env_steps'] == [20, 30, 40]
    # Point2D's box has a half side of 5.
    assert 0.0 < min(distance['relabelled']) < max(distance['relabelled']) < 10 * 2**0.5
    loss = recorded('mher', 'supervised_loss')['record']
    assert loss['env_steps'] == [20, 30, 40]
    # Two action entries that differ by at most 2; 10 rewards of 0 or -1, discounted by 0.99.
    assert 0.0 < min(loss['loss']) < max(loss['loss']) < 8.0
    assert -(1 - 0.99**10) / 0.01 - 1e-9 <= min(loss['return']) <= 0.0


def test_the_distance_of_goals_is_the_mean_of_what_the_source_proposes(tiny_agent):
    recorder = RECORDERS['goal_distance'](tiny_agent.config)
    tiny_agent.goal_strategy = Source(lambda batch: batch.goals + np.float32([3.0, 4.0]))
    recorder.note(tiny_agent, np.random.default_rng(0), {'env_steps': 20})
    assert recorder.record['relabelled'] == [pytest.approx(5.0, abs=1e-5)]


def test_the_supervised_loss_is_the_mean_squared_distance_of_actions(tiny_agent):
    recorder = RECORDERS['supervised_loss'](tiny_agent.config)
    # The policy gives 0.6 and 0.8 for whatever it is shown; every stored action is 0.
    tiny_agent.__dict__['act'] = torch.tensor([[0.6, 0.8]])
    tiny_agent.replay._actions[:] = 0.0
    recorder.note(tiny_agent, np.random.default_rng(0), {'env_steps': 20})
    assert recorder.record['loss'] == [pytest.approx(1.0, abs=1e-5)]


class Source:
    def __init__(self, propose):
        self._propose = propose

    def propose(self, batch, rng, wanted=None):
        return self._propose(batch)


@pytest.fixture
def tiny_agent():
    """Return an agent with three episodes, whose policy can be told what to do."""
    config = Job(tiny_variant('mher'), 1).config
    task = make(config.task_name, config.task)

    class Told(Agent):
        act = torch.zeros(1, 2)

        @property
        def policy(self):
            return lambda observation, goal: self.act.expand(len(observation), 2)

    agent = Told(task.interface, config)
    agent.config = config
    for seed in range(3):
        start, _ = task.reset(seed=seed)
        path = np.tile(start['observation'], (11, 1))
        agent.store(Episode(path, np.zeros((10, 2), np.float32), start['desired_goal']))
    return agent


def _distance_to_path(look):
    goals, path = np.array(look['relabelled']), np.array(look['path'])
    return np.linalg.norm(goals[:, None] - path, axis=-1).min(axis=1)
