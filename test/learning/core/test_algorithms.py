"""The rule of each system on hand-made batches: which rows, which goals, which targets."""

import dataclasses

from hand_made import batch_of, fixed_networks, FixedGoals, KnownDynamics
from mher_ros.learning.config import AgentConfig, make_config
from mher_ros.learning.core.actor_critic import CriticTarget, ImitationLoss, JointLoss
from mher_ros.learning.core.agent import Agent
from mher_ros.learning.core.replay_buffer import Episode, ModelReplay, ModelTransitions
from mher_ros.learning.model import ModelRollouts
from mher_ros.learning.presets import ALGORITHMS
from mher_ros.learning.relabel.samplers import ModelSampler
from mher_ros.learning.relabel.strategies import NoisyGoals, UniformGoals
from mher_ros.tasks import make
import numpy as np
import pytest
import torch


def right(observations, goals):
    """Move along x by one."""
    return torch.tensor([[1.0, 0.0]]).expand(len(observations), 2)


def agent_of(config, episodes=3):
    task = make('point2d_large', config.task)
    agent = Agent(task.interface, config)
    for seed in range(episodes):
        start, _ = task.reset(seed=seed)
        actions = np.stack([agent.random_action() for _ in range(20)])
        path = [start['observation']]
        path += [task.step(action)[0]['observation'] for action in actions]
        agent.store(Episode(np.array(path), actions, start['desired_goal']))
    return agent


# ddpg ----------------------------------------------------------------------------------------


def test_ddpg_learns_under_the_goals_of_the_replay_and_relabels_no_row(batches, rng):
    source = batches()
    transitions = source.sample(rng)
    batch = source.relabel(transitions, 0, rng)
    assert torch.equal(batch.goals, torch.from_numpy(transitions.goals))
    assert batch.relabelled.tolist() == [0.0] * 4
    # Goals lie at x = 1000 and more, no transition comes near: every reward is -1.
    assert batch.rewards.tolist() == [-1.0] * 4


def test_rewards_are_those_of_the_next_state_under_the_new_goal(batches, rng):
    source = batches(source=FixedGoals(0.0), probability=1.0)
    transitions = dataclasses.replace(
        source.sample(rng),
        next_observations=np.array(
            [[0.5, 0, 0], [0.51, 0, 0], [0.3, -0.4, 9], [0, 0, 0]], np.float32
        ),
    )
    batch = source.relabel(transitions, 0, rng)
    # The threshold 0.5 counts: distances 0.5, 0.51, 0.5, 0.
    assert batch.rewards.tolist() == [0.0, -1.0, 0.0, 0.0]
    assert batch.relabelled.tolist() == [1.0] * 4


# mve -----------------------------------------------------------------------------------------


def expanded(interface, steps, value, ceiling=0.0):
    networks = fixed_networks(interface, torch.tensor([value]))
    rollouts = ModelRollouts(KnownDynamics(), right, interface)
    config = AgentConfig(gamma=0.9, value_ceiling=ceiling, target_steps=steps)
    return CriticTarget(networks, config, rollouts)


def test_value_expansion_adds_h_rewards_before_the_value(interface):
    # s_{t+1} = (0, 0); the goal lies at x = 2, so of the states x = 0, 1, 2 the last is there.
    batch = batch_of(
        1,
        rewards=torch.tensor([-1.0]),
        next_observations=torch.zeros(1, 3),
        goals=torch.tensor([[2.0, 0.0]]),
    )
    # H = 3: rewards -1 at s_{t+1}, -1 at x = 1, 0 at x = 2, then 0.9^3 * -4
    target = expanded(interface, 3, value=-4.0)(batch)
    assert float(target) == pytest.approx(-1.0 - 0.9 - 0.0 - 0.729 * 4.0)
    # H = 2 ends at x = 1: -1 - 0.9 - 0.81 * 4
    assert float(expanded(interface, 2, value=-4.0)(batch)) == pytest.approx(-1.9 - 3.24)


def test_value_expansion_of_one_step_is_the_usual_target(interface):
    batch = batch_of(
        1,
        rewards=torch.tensor([-1.0]),
        next_observations=torch.zeros(1, 3),
        goals=torch.tensor([[2.0, 0.0]]),
    )
    usual = CriticTarget(fixed_networks(interface, torch.tensor([-4.0])), AgentConfig(gamma=0.9))
    assert torch.equal(expanded(interface, 1, value=-4.0)(batch), usual(batch))


def test_an_expanded_target_is_cut_to_what_is_possible(interface):
    batch = batch_of(
        1,
        rewards=torch.tensor([0.0]),
        next_observations=torch.zeros(1, 3),
        goals=torch.tensor([[0.0, 0.0]]),
    )
    assert float(expanded(interface, 3, value=-500.0)(batch)) == pytest.approx(-10.0)
    # Rewards 0, -1, -1 and 0.729 * 50 are above 0.
    assert float(expanded(interface, 3, value=50.0)(batch)) == 0.0


# mbpo ----------------------------------------------------------------------------------------


def imagined(batches, interface, source=None, steps=3):
    replay = ModelReplay(100, 3, 2, 2)
    rollouts = ModelRollouts(KnownDynamics(), right, interface)
    kind = ModelSampler
    return replay, batches(kind, source, 1.0, rollouts=rollouts, steps=steps, model_replay=replay)


def test_mbpo_learns_from_rollouts_that_branch_off_real_states(batches, interface, rng):
    replay, source = imagined(batches, interface)
    transitions = source.sample(rng)
    batch = source.relabel(transitions, 0, rng)
    assert len(replay) == 4 * 3
    everything = replay.sample(500, rng)
    # Steps 0, 1 and 2 from s_t: x grows by 1 a step, and the third entry counts them.
    begun = everything.observations[:, 2]
    assert set(begun) == {0.0, 1.0, 2.0}
    starts = everything.observations[:, 0] - begun
    assert set(starts) <= set(transitions.observations[:, 0])
    moved = everything.next_observations - everything.observations
    assert (moved == (1.0, 0.0, 1.0)).all()
    assert (everything.actions == (1.0, 0.0)).all()
    assert batch.relabelled.tolist() == [0.0] * 4
    assert set(batch.goals[:, 0].tolist()) <= set(transitions.goals[:, 0])


def test_mbpo_with_her_imagines_under_the_new_goals_and_judges_by_them(batches, interface, rng):
    replay, source = imagined(batches, interface, FixedGoals(3.0))
    seen = []

    def policy(observations, goals):
        seen.append(goals.clone())
        return torch.ones(len(goals), 2)

    source.rollouts = ModelRollouts(KnownDynamics(), policy, interface)
    start = dataclasses.replace(source.sample(rng), observations=np.ones((4, 3), np.float32))
    batch = source.relabel(start, 0, rng)
    assert all((goals == 3.0).all() for goals in seen)
    assert (batch.goals == 3.0).all()
    # From (1, 1) by (1, 1) a step: only the second step ends at the goal (3, 3).
    expected = [0.0 if float(x) == 2.0 else -1.0 for x in batch.observations[:, 0]]
    assert batch.rewards.tolist() == expected


def test_the_model_replay_forgets_the_oldest_and_keeps_its_parts_apart(rng):
    replay = ModelReplay(5, 2, 1, 3)

    def some(first, count):
        rows = np.arange(first, first + count, dtype=np.float32)[:, None]
        wide = [rows + np.zeros((1, width), np.float32) for width in (2, 1, 2, 3)]
        return ModelTransitions(wide[0], wide[1] + 100, wide[2] + 200, wide[3] + 300)

    replay.add(some(0, 4))
    replay.add(some(4, 3))
    assert len(replay) == 5
    drawn = replay.sample(200, rng)
    assert set(drawn.observations[:, 0]) == {2.0, 3.0, 4.0, 5.0, 6.0}
    assert np.array_equal(drawn.actions[:, 0], drawn.observations[:, 0] + 100)
    assert np.array_equal(drawn.next_observations[:, 1], drawn.observations[:, 0] + 200)
    assert np.array_equal(drawn.goals[:, 2], drawn.observations[:, 0] + 300)
    replay.add(some(10, 12))
    assert set(replay.sample(200, rng).observations[:, 0]) == {17.0, 18.0, 19.0, 20.0, 21.0}
    other = ModelReplay(5, 2, 1, 3)
    other.load_state_dict(replay.state_dict())
    again = [r.sample(9, np.random.default_rng(1)).goals for r in (replay, other)]
    assert np.array_equal(*again)


# gcsl ----------------------------------------------------------------------------------------


def test_imitation_is_the_squared_error_of_the_relabelled_rows_alone(interface):
    proposed = torch.tensor([[0.5, 0.0], [1.0, -1.0], [0.0, 0.0]])
    networks = fixed_networks(interface, torch.zeros(3), proposed)
    batch = batch_of(
        3,
        actions=torch.tensor([[0.5, 1.0], [0.0, 0.0], [0.2, 0.4]]),
        relabelled=torch.tensor([1.0, 0.0, 1.0]),
    )
    # Row 1: (0 + 1) / 2; row 3: (0.04 + 0.16) / 2; their mean, row 2 left out.
    assert float(ImitationLoss(networks)(batch, 0)) == pytest.approx((0.5 + 0.1) / 2)
    none = dataclasses.replace(batch, relabelled=torch.zeros(3))
    assert float(ImitationLoss(networks)(none, 0)) == 0.0


def test_gcsl_learns_an_actor_and_no_critic(tiny):
    agent = agent_of(tiny('gcsl'))
    before = {
        name: [p.clone() for p in network.parameters()]
        for name, network in agent.networks.modules().items()
    }
    agent.update()
    pairs = zip(before['critic'], agent.networks.critic.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    pairs = zip(before['actor'], agent.networks.actor.parameters(), strict=True)
    assert not all(torch.equal(*pair) for pair in pairs)
    assert set(agent.take_losses()) == {'actor_loss'}


# no_mbr --------------------------------------------------------------------------------------


def test_no_mbr_imitates_under_virtual_goals_and_learns_values_under_original_ones(
    tiny, monkeypatch
):
    agent = agent_of(tiny('no_mbr'))
    imitated, learnt = [], []
    critic = agent._actor_critic
    learn, learn_actor = critic.learn, critic.learn_actor

    def imitate(batch, loss, updates):
        before = float(loss(batch, updates).detach())
        assert learn_actor(batch, loss, updates) == before
        # It is the actor that moves, towards the actions of the relabelled rows.
        assert float(loss(batch, updates).detach()) < before
        imitated.append((batch, loss))
        return before

    monkeypatch.setattr(critic, 'learn_actor', imitate)
    monkeypatch.setattr(
        critic, 'learn', lambda batch, updates: learnt.append(batch) or learn(batch, updates)
    )
    agent.update()
    (aside, loss), batch = imitated[0], learnt[0]
    assert isinstance(loss, ImitationLoss)
    assert 0.0 < float(aside.relabelled.mean()) < 1.0
    assert not batch.relabelled.any()
    kept = aside.relabelled == 0.0
    assert torch.equal(aside.goals[kept], batch.goals[kept])
    assert not torch.equal(aside.goals[~kept], batch.goals[~kept])
    assert torch.equal(aside.actions, batch.actions)


# no_sl ---------------------------------------------------------------------------------------


def test_no_sl_is_mher_without_the_third_term(tiny):
    mher, no_sl = tiny('mher'), tiny('no_sl')
    assert dataclasses.replace(mher.agent, alpha=0.0) == no_sl.agent
    assert (mher.relabel, mher.model) == (no_sl.relabel, no_sl.model)
    assert isinstance(agent_of(no_sl)._actor_critic._loss, JointLoss)


# random_relabel and goal_noise ---------------------------------------------------------------


def test_random_goals_fill_the_goal_space_evenly(counted_replay, interface, rng):
    narrow = dataclasses.replace(interface, goal_low=(-9.0, 2.0), goal_high=(9.0, 4.0))
    goals = UniformGoals(counted_replay, narrow).propose(counted_replay.sample(4000, rng), rng)
    assert goals.dtype == np.float32
    assert goals.min(0) == pytest.approx([-9.0, 2.0], abs=0.05)
    assert goals.max(0) == pytest.approx([9.0, 4.0], abs=0.05)
    assert goals.mean(0) == pytest.approx([0.0, 3.0], abs=0.3)


def test_noise_on_goals_has_its_deviation_and_no_mean(counted_replay, rng):
    batch = counted_replay.sample(20_000, rng)
    off = NoisyGoals(FixedGoals(2.0), 0.01).propose(batch, rng) - 2.0
    assert off.std(0) == pytest.approx([0.01, 0.01], rel=0.03)
    assert off.mean(0) == pytest.approx([0.0, 0.0], abs=0.0005)


# all -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('preset', ['paper', 'fast', 'rooms'])
@pytest.mark.parametrize('task', ['point2d_large', 'reacher'])
@pytest.mark.parametrize('name', [name for name in ALGORITHMS if name != 'plangan'])
def test_every_system_updates_on_tasks_with_and_without_the_goal_in_the_observation(
    name, task, preset
):
    small = {'agent.hidden': (16,), 'model.hidden': (16,), 'schedule.episode_steps': 20}
    config = make_config(task, name, preset, 0, small)
    env = make(task, config.task)
    agent = Agent(env.interface, config)
    for seed in range(3):
        start, _ = env.reset(seed=seed)
        actions = np.stack([agent.random_action() for _ in range(20)])
        path = [start['observation']] + [env.step(a)[0]['observation'] for a in actions]
        agent.store(Episode(np.array(path), actions, start['desired_goal']))
    agent.warm_up_model()
    before = [p.clone() for p in agent.networks.actor.parameters()]
    for _ in range(3):
        agent.update()
    after = agent.networks.actor.parameters()
    assert not any(torch.equal(*pair) for pair in zip(before, after, strict=True))
    losses = agent.take_losses()
    assert set(losses) == set(agent.loss_names)
    assert all(np.isfinite(value) for value in losses.values())
