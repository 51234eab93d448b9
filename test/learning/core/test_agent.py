import copy

from mher_ros.learning.core.agent import Agent
from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.learning.presets import ALGORITHMS
from mher_ros.learning.run.trainer import make_learner
from mher_ros.tasks import make
import numpy as np
import pytest
import torch

NETWORKED = [name for name in ALGORITHMS if name != 'plangan']


def random_episode(task, agent, seed, steps=20):
    observation, _ = task.reset(seed=seed)
    observations, actions = [observation['observation']], []
    for _ in range(steps):
        actions.append(agent.random_action())
        observations.append(task.step(actions[-1])[0]['observation'])
    return Episode(np.array(observations), np.array(actions), observation['desired_goal'])


def trained(config, updates=6, task_name='point2d_large'):
    task = make(task_name, config.task)
    agent = Agent(task.interface, config)
    for seed in range(3):
        agent.store(random_episode(task, agent, seed))
    agent.warm_up_model()
    for _ in range(updates):
        agent.update()
    return agent


UNRELABELLED = ('ddpg', 'mve3', 'mve5', 'mve7', 'mbpo3', 'mbpo5', 'mbpo7')


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_a_learner_tells_where_the_new_goals_of_its_last_batch_lie(tiny, algorithm):
    config = tiny(algorithm)
    task = make('point2d_large', config.task)
    agent = make_learner(task.interface, config)
    assert agent.goal_offsets is None
    for seed in range(3):
        agent.store(random_episode(task, agent, seed))
    agent.update()
    made = agent.goal_offsets
    if algorithm in UNRELABELLED:
        assert made is None
        return
    assert made.shape[0] > 10 and made.shape[1:] == (2,)
    assert not (made == 0.0).all(-1).any()
    agent.update()
    assert not np.array_equal(agent.goal_offsets[: len(made)], made)


@pytest.mark.parametrize('algorithm', ['her', 'cher', 'plangan'])
def test_offsets_lead_from_the_goal_of_an_episode_to_what_it_achieved(tiny, algorithm):
    config = tiny(algorithm)
    task = make('point2d_large', config.task)
    agent = make_learner(task.interface, config)
    achieved = []
    for seed in range(3):
        episode = random_episode(task, agent, seed)
        agent.store(episode)
        seen = task.interface.achieved_goal(episode.observations)
        achieved.append((seen - episode.goal).astype(np.float32))
    agent.update()
    possible = np.concatenate(achieved)
    for offset in agent.goal_offsets:
        assert np.isclose(possible, offset, atol=1e-5).all(-1).any()


def weights(agent):
    return torch.cat([p.detach().flatten() for p in agent.networks.actor.parameters()])


@pytest.mark.parametrize('algorithm', NETWORKED)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tiny, algorithm):
    first = weights(trained(tiny(algorithm, seed=1)))
    assert torch.equal(first, weights(trained(tiny(algorithm, seed=1))))
    assert not torch.equal(first, weights(trained(tiny(algorithm, seed=2))))


def test_who_needs_a_model_has_one(tiny):
    with_model = {name for name in NETWORKED if tiny(name).needs_model}
    assert {'mher', 'no_sl', 'no_mbr', 'mve3', 'mbpo7', 'mve_her', 'mbpo_her'} < with_model
    assert not with_model & {'ddpg', 'her', 'cher', 'mep', 'gcsl', 'random_relabel', 'goal_noise'}
    for name in NETWORKED:
        assert (trained(tiny(name)).dynamics is not None) == (name in with_model)


def test_targets_move_only_when_it_is_time_and_by_their_share(tiny):
    config = tiny('ddpg', agent__target_every=3, agent__tau=0.25)
    agent = trained(config, updates=2)
    start = [p.clone() for p in agent.networks.target_actor.parameters()]
    agent.update()
    for old, target, online in zip(
        start,
        agent.networks.target_actor.parameters(),
        agent.networks.actor.parameters(),
        strict=True,
    ):
        assert torch.allclose(target, 0.75 * old + 0.25 * online, atol=1e-6)
    moved = [p.clone() for p in agent.networks.target_actor.parameters()]
    agent.update()
    for old, target in zip(moved, agent.networks.target_actor.parameters(), strict=True):
        assert torch.equal(old, target)


def test_exploration_is_uniform_now_and_then_and_noisy_otherwise(tiny):
    quiet = trained(tiny(agent__explore_noise=0.0, agent__explore_random=0.0))
    observation, goal = np.zeros(2), np.ones(2)
    assert np.array_equal(quiet.act(observation, goal), quiet.act(observation, goal))
    wild = trained(tiny(agent__explore_random=1.0))
    drawn = np.array([wild.act(observation, goal) for _ in range(400)])
    assert drawn.std(0) == pytest.approx([3**-0.5] * 2, abs=0.06)
    noisy = trained(tiny(agent__explore_noise=0.5, agent__explore_random=0.0))
    drawn = np.array([noisy.act(observation, goal) for _ in range(50)])
    assert len(np.unique(drawn[:, 0])) > 10
    assert (np.abs(drawn) <= 1.0).all()


def test_what_is_deployed_is_the_averaged_actor_if_asked(tiny):
    online, average = trained(tiny()), trained(tiny(agent__export_target_actor=True))
    assert online.policy.actor is online.networks.actor
    assert average.policy.actor is average.networks.target_actor


def test_statistics_come_from_relabelled_goals_but_not_for_ddpg(tiny):
    task = make('point2d_large')
    her, ddpg = trained(tiny('her')), trained(tiny('ddpg'))
    # Unrelabelled, three episodes have three goals; relabelled, many.
    goals = [task.reset(seed=seed)[0]['desired_goal'] for seed in range(3)]
    assert ddpg.networks.encoder.goal.mean.numpy() == pytest.approx(np.mean(goals, 0), abs=1e-4)
    assert her.networks.encoder.goal.mean.numpy() != pytest.approx(np.mean(goals, 0), abs=1e-2)
    assert float(her.networks.encoder.goal.count) == float(ddpg.networks.encoder.goal.count) == 60


def test_the_goal_inside_an_observation_is_rewritten_before_learning(tiny, monkeypatch):
    agent = trained(tiny('her', task='reacher'), updates=0, task_name='reacher')
    seen = []
    original = agent.networks.encoder.forward

    def record(observation, goal):
        seen.append((observation.clone(), goal.clone()))
        return original(observation, goal)

    monkeypatch.setattr(agent.networks.encoder, 'forward', record)
    agent.update()
    assert len(seen) == 2
    for observation, goal in seen:
        assert torch.equal(observation[:, 4:6], goal)


def test_model_errors_are_given_for_every_horizon_and_change_nothing(tiny):
    agent = trained(tiny())
    before = agent.state_dict()['rng']
    assert len(agent.model_errors()) == 5
    assert agent.state_dict()['rng'] == before
    assert trained(tiny('her')).model_errors() == []


@pytest.mark.parametrize('algorithm', NETWORKED)
def test_a_restored_agent_goes_on_as_if_nothing_had_happened(tiny, algorithm):
    agent = trained(tiny(algorithm))
    task = make('point2d_large', tiny().task)
    other = Agent(task.interface, tiny(algorithm))
    other.load_state_dict(copy.deepcopy(agent.state_dict()))
    for _ in range(5):
        agent.update()
        other.update()
    assert torch.equal(weights(agent), weights(other))
    assert agent.take_losses() == other.take_losses()


def test_the_model_is_fitted_before_goals_are_proposed_by_the_slow_actor(tiny, monkeypatch):
    agent = trained(tiny(), updates=0)
    order = []
    fit, step = agent.dynamics.fit, agent.dynamics.step

    def recording_fit(*arguments, **named):
        order.append('fit')
        return fit(*arguments, **named)

    def recording_step(observations, actions):
        order.append('step')
        return step(observations, actions)

    slow, online = agent.networks.target_actor, agent.networks.actor
    monkeypatch.setattr(agent.dynamics, 'fit', recording_fit)
    monkeypatch.setattr(agent.dynamics, 'step', recording_step)
    for name, actor in (('slow', slow), ('online', online)):
        actor.register_forward_hook(lambda *_, name=name: order.append(name))
    agent.update()
    # Two fits, a rollout of five steps, the slow actor for the target, the actor for its loss.
    assert order[:12] == ['fit'] * 2 + ['slow', 'step'] * 5
    assert sorted(order[12:]) == ['online', 'slow']


def test_rows_that_head_elsewhere_are_no_examples_and_rollouts_follow_them(tiny, monkeypatch):
    agent = trained(tiny(relabel__random_share=1.0, relabel__probability=0.5), updates=0)
    own = {tuple(goal) for goal in agent.replay.sample(500, np.random.default_rng()).goals}
    led, learnt = [], []
    propose, learn = agent.goal_strategy.propose, agent._actor_critic.learn
    monkeypatch.setattr(
        agent.goal_strategy,
        'propose',
        lambda batch, rng, wanted: led.append(batch) or propose(batch, rng, wanted),
    )
    monkeypatch.setattr(
        agent._actor_critic,
        'learn',
        lambda batch, updates: learnt.append(batch) or learn(batch, updates),
    )
    agent.update()
    assert own.isdisjoint(map(tuple, led[0].goals))
    kept = learnt[0].relabelled == 0
    assert 0 < kept.sum() < len(kept)
    assert torch.equal(learnt[0].goals[kept], torch.from_numpy(led[0].goals)[kept])


def test_entries_that_never_varied_do_not_move_a_policy_that_hides_them(tiny):
    config = tiny('her', task='reacher', agent__mask_constant_inputs=True)
    policy = trained(config, task_name='reacher').policy
    observation, goal = torch.rand(5, 11, generator=torch.Generator()), torch.zeros(5, 2)
    observation[:, 10] = 0.0  # the height above the goal, which is always zero
    odd = observation.clone()
    odd[:, 10] = 0.3
    assert torch.equal(policy(observation, goal), policy(odd, goal))
    shown = trained(tiny('her', task='reacher'), task_name='reacher').policy
    assert not torch.equal(shown(observation, goal), shown(odd, goal))
