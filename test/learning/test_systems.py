"""The rule of each system on hand-made batches: which rows, which goals, which targets."""

import dataclasses

from hand_made import batch_of, fixed_networks, FixedGoals, KnownDynamics
from mher_ros.learning.actor_loss import ImitationLoss, JointLoss
from mher_ros.learning.agent import Agent
from mher_ros.learning.batches import Batches, CuratedBatches, ImaginedBatches, RareEpisodeBatches
from mher_ros.learning.curriculum import GoalCurriculum
from mher_ros.learning.imagination import Imagination
from mher_ros.learning.model_replay import ImaginedTransitions, ModelReplay
from mher_ros.learning.networks import View
from mher_ros.learning.rarity import GaussianMixture, rarity_weights
from mher_ros.learning.relabel import NoisyGoals, RandomGoals
from mher_ros.learning.replay import Episode
from mher_ros.learning.systems import ALGORITHMS
from mher_ros.learning.targets import ExpandedTarget, OneStepTarget
from mher_ros.tasks import make
import numpy as np
import pytest
import torch


@pytest.fixture
def batches(counted_replay, interface):
    """Return a function that makes batches of 4 rows from the counted replay."""

    def build(kind=Batches, source=None, probability=0.8, **parts):
        return kind(
            replay=counted_replay,
            view=View(interface),
            interface=interface,
            source=source,
            probability=probability,
            size=4,
            **parts,
        )

    return build


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
    transitions = source.draw(rng)
    batch = source.relabelled(transitions, 0, rng)
    assert torch.equal(batch.goals, torch.from_numpy(transitions.goals))
    assert batch.relabelled.tolist() == [0.0] * 4
    # Goals lie at x = 1000 and more, no transition comes near: every reward is -1.
    assert batch.rewards.tolist() == [-1.0] * 4


def test_rewards_are_those_of_the_next_state_under_the_new_goal(batches, rng):
    source = batches(source=FixedGoals(0.0), probability=1.0)
    transitions = dataclasses.replace(
        source.draw(rng),
        next_observations=np.array(
            [[0.5, 0, 0], [0.51, 0, 0], [0.3, -0.4, 9], [0, 0, 0]], np.float32
        ),
    )
    batch = source.relabelled(transitions, 0, rng)
    # The threshold 0.5 counts: distances 0.5, 0.51, 0.5, 0.
    assert batch.rewards.tolist() == [0.0, -1.0, 0.0, 0.0]
    assert batch.relabelled.tolist() == [1.0] * 4


# mve -----------------------------------------------------------------------------------------


def expanded(interface, steps, value, ceiling=0.0):
    networks = fixed_networks(interface, torch.tensor([value]))
    imagination = Imagination(KnownDynamics(), right, interface)
    return ExpandedTarget(networks, 0.9, ceiling, imagination, interface, steps)


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
    usual = OneStepTarget(fixed_networks(interface, torch.tensor([-4.0])), 0.9, 0.0)
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
    imagination = Imagination(KnownDynamics(), right, interface)
    kind = ImaginedBatches
    return replay, batches(
        kind, source, 1.0, imagination=imagination, steps=steps, model_replay=replay
    )


def test_mbpo_learns_from_rollouts_that_branch_off_real_states(batches, interface, rng):
    replay, source = imagined(batches, interface)
    transitions = source.draw(rng)
    batch = source.relabelled(transitions, 0, rng)
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

    source.imagination = Imagination(KnownDynamics(), policy, interface)
    start = dataclasses.replace(source.draw(rng), observations=np.ones((4, 3), np.float32))
    batch = source.relabelled(start, 0, rng)
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
        return ImaginedTransitions(wide[0], wide[1] + 100, wide[2] + 200, wide[3] + 300)

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
    other.load_state(replay.state())
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
    monkeypatch.setattr(
        critic,
        'learn_actor',
        lambda batch, loss, updates: imitated.append((batch, loss)) or 0.0,
    )
    learn = critic.learn
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
    goals = RandomGoals(narrow).propose(counted_replay.sample(4000, rng), rng)
    assert goals.dtype == np.float32
    assert goals.min(0) == pytest.approx([-9.0, 2.0], abs=0.05)
    assert goals.max(0) == pytest.approx([9.0, 4.0], abs=0.05)
    assert goals.mean(0) == pytest.approx([0.0, 3.0], abs=0.3)


def test_noise_on_goals_has_its_deviation_and_no_mean(counted_replay, rng):
    batch = counted_replay.sample(20_000, rng)
    off = NoisyGoals(FixedGoals(2.0), 0.01).propose(batch, rng) - 2.0
    assert off.std(0) == pytest.approx([0.01, 0.01], rel=0.03)
    assert off.mean(0) == pytest.approx([0.0, 0.0], abs=0.0005)


# cher ----------------------------------------------------------------------------------------


def test_a_curriculum_first_takes_what_is_unlike_the_rest(rng):
    # Two goals in one place and one apart. Nearest neighbours are 0, 0 and 2 away: sigma = 2/3,
    # the pair's likeness to the third exp(-9). With no weight on closeness, whichever comes
    # first, the second pick is of the other place: it covers 1 or 2 more instead of nothing.
    goals = np.array([[0.0], [0.0], [2.0]], np.float32)
    for _ in range(20):
        picked = GoalCurriculum(0.0, 0.0).choose(goals, goals, 2, 0, rng)
        assert picked[0] in (0, 1)  # covers two of three
        assert picked[1] == 2


def test_a_curriculum_then_takes_what_is_close_to_the_desired_goal(rng):
    goals = np.array([[0.0], [0.0], [2.0]], np.float32)
    desired = np.array([[0.5], [0.1], [2.3]], np.float32)
    # The first pick gains at most 2 by what it covers; with lambda = 1000 the distances 0.5,
    # 0.1 and 0.3 alone decide.
    picked = GoalCurriculum(1000.0, 0.0).choose(goals, desired, 3, 0, rng)
    assert picked.tolist() == [1, 2, 0]


def test_the_gain_of_a_pick_weighs_cover_against_distance(rng):
    goals = np.array([[0.0], [0.0], [2.0]], np.float32)
    desired = np.array([[1.2], [1.2], [2.0]], np.float32)
    # First pick: a twin gains 2 + exp(-9) - lambda 1.2, the third 1 + 2 exp(-9) - 0.
    # lambda = 0.8: 1.040 > 1.0002, the twin; lambda = 0.9: 0.920 < 1.0002, the third.
    assert GoalCurriculum(0.8, 0.0).choose(goals, desired, 1, 0, rng)[0] in (0, 1)
    assert GoalCurriculum(0.9, 0.0).choose(goals, desired, 1, 0, rng)[0] == 2
    # 0.8 grows by a tenth an update: after two it is 0.968.
    assert GoalCurriculum(0.8, 0.1).weight(2) == pytest.approx(0.968)
    assert GoalCurriculum(0.8, 0.1).choose(goals, desired, 1, 2, rng)[0] == 2


def test_cher_picks_its_batch_from_more_candidates_each_once(batches, rng):
    source = batches(
        CuratedBatches,
        FixedGoals(5.0),
        curriculum=GoalCurriculum(1.0, 1e-4),
        candidates=10,
    )
    candidates = source.draw(rng)
    assert len(candidates.steps) == 10
    batch = source.relabelled(candidates, 0, rng)
    assert batch.goals.shape == (4, 2)
    new = (batch.goals == 5.0).all(1)
    assert torch.equal(new, batch.relabelled == 1.0)
    rows = {tuple(row) for row in np.hstack((candidates.observations, candidates.actions))}
    picked = torch.hstack((batch.observations, batch.actions)).tolist()
    assert all(tuple(np.float32(row)) in rows for row in picked)


# mep -----------------------------------------------------------------------------------------


def test_rare_paths_weigh_by_their_rank(rng):
    paths = rng.normal(size=(200, 4, 2))
    paths[8] = paths[9]
    weights = rarity_weights(paths, np.random.default_rng(1))
    # 199 different paths, ranked 0 to 198 by how unlikely they are; twins share a rank.
    flat = paths.reshape(200, 8)
    density = GaussianMixture(flat, 3, np.random.default_rng(1)).log_density(flat)
    assert np.array_equal(np.argsort(weights)[-5:], np.argsort(-density)[-5:])
    assert weights[8] == weights[9]
    ranks = 198 * weights / weights.max()
    assert np.unique(ranks) == pytest.approx(np.arange(199))
    assert weights.sum() == pytest.approx(1.0)


def test_paths_that_are_all_alike_weigh_the_same(rng):
    assert rarity_weights(np.ones((4, 5, 2)), rng) == pytest.approx([0.25] * 4)


def test_a_mixture_of_one_is_the_gaussian_of_the_values(rng):
    values = np.array([[-1.0], [1.0], [3.0]])
    mixture = GaussianMixture(values, 1, rng)
    # Mean 1, variance 8/3: log density at 1 is -0.5 ln(2 pi 8/3); at 3 it is 4 / (2 * 8/3) less.
    top = -0.5 * np.log(2 * np.pi * 8 / 3)
    assert mixture.log_density(np.array([[1.0], [3.0]])) == pytest.approx([top, top - 0.75])


def test_a_mixture_finds_two_clusters_and_their_shares(rng):
    values = np.concatenate((rng.normal(-5, 0.5, (300, 2)), rng.normal(5, 0.5, (100, 2))))
    density = GaussianMixture(values, 2, rng).log_density(np.array([[-5.0, -5], [5, 5], [0, 0]]))
    # At its centre a cluster has density share / (2 pi 0.25).
    expected = np.log(np.array([0.75, 0.25]) / (2 * np.pi * 0.25))
    assert density[:2] == pytest.approx(expected, abs=0.2)
    assert density[2] < density[1] - 20


def stay(replay, x):
    """Store an episode that stays at x."""
    path = np.stack((np.full(5, x), np.zeros(5), np.zeros(5)), 1)
    replay.add(Episode(path, np.zeros((4, 2), np.float32), np.zeros(2)))


def test_mep_draws_episodes_by_their_weights(batches, counted_replay, rng):
    source = batches(RareEpisodeBatches, seed=0)
    for x in (0.0, 1.0, 2.0):
        stay(counted_replay, x)
    source.size = 3000
    slots = source.draw(rng).slots
    paths = counted_replay.achieved_paths(source.interface)
    expected = rarity_weights(paths, np.random.default_rng([0, 5, 6]))
    assert np.bincount(slots, minlength=6) / 3000 == pytest.approx(expected, abs=0.04)
    assert len(set(expected)) > 1


def test_a_short_episode_stays_at_its_end_in_paths(counted_replay, interface):
    paths = counted_replay.achieved_paths(interface)
    assert paths.shape == (3, 5, 2)
    assert paths[2, :, 0].tolist() == [200, 201, 202, 202, 202]


def test_episodes_are_weighed_anew_when_one_was_stored(batches, counted_replay, rng):
    source = batches(RareEpisodeBatches, seed=0)
    source.draw(rng)
    stay(counted_replay, 500.0)
    source.size = 3000
    slots = source.draw(rng).slots
    paths = counted_replay.achieved_paths(source.interface)
    expected = rarity_weights(paths, np.random.default_rng([0, 5, 4]))
    assert np.bincount(slots, minlength=4) / 3000 == pytest.approx(expected, abs=0.04)


# all -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'goals', 'extra'),
    [
        ('mher', 'virtual', {'alpha': 3.0}),
        ('ddpg', 'none', {'alpha': 0.0}),
        ('her', 'future', {'alpha': 0.0}),
        ('cher', 'future', {'alpha': 0.0}),
        ('mep', 'future', {'alpha': 0.0, 'replay_rare': True}),
        ('gcsl', 'future', {'actor': 'imitation'}),
        ('mve3', 'none', {'alpha': 0.0, 'target_steps': 3}),
        ('mve5', 'none', {'alpha': 0.0, 'target_steps': 5}),
        ('mve7', 'none', {'alpha': 0.0, 'target_steps': 7}),
        ('mbpo3', 'none', {'alpha': 0.0, 'imagined_steps': 3}),
        ('mbpo5', 'none', {'alpha': 0.0, 'imagined_steps': 5}),
        ('mbpo7', 'none', {'alpha': 0.0, 'imagined_steps': 7}),
        ('mve_her', 'future', {'alpha': 0.0, 'target_steps': 5}),
        ('mbpo_her', 'future', {'alpha': 0.0, 'imagined_steps': 5}),
        ('no_sl', 'virtual', {'alpha': 0.0}),
        ('no_mbr', 'virtual', {'alpha': 0.0, 'actor': 'apart'}),
        ('random_relabel', 'random', {'alpha': 0.0}),
        ('goal_noise', 'future', {'alpha': 0.0}),
    ],
)
def test_what_a_system_is_made_of(tiny, name, goals, extra):
    config = tiny(name)
    assert config.relabel.goals == goals
    assert {key: getattr(config.agent, key) for key in extra} == extra
    rest = {'target_steps': 1, 'imagined_steps': 0, 'actor': 'joint', 'replay_rare': False}
    for key, value in rest.items():
        assert key in extra or getattr(config.agent, key) == value
    assert config.relabel.probability == (1.0 if name == 'gcsl' else 0.8)
    assert config.relabel.candidates == (128 if name == 'cher' else 0)
    assert config.relabel.goal_noise == (0.01 if name == 'goal_noise' else 0.0)


def test_every_system_is_in_the_table_above():
    marks = test_what_a_system_is_made_of.pytestmark[0]
    assert {row[0] for row in marks.args[1]} == set(ALGORITHMS) - {'plangan'}


@pytest.mark.parametrize('preset', ['paper', 'fast'])
@pytest.mark.parametrize('task', ['point2d_large', 'reacher'])
@pytest.mark.parametrize('name', [name for name in ALGORITHMS if name != 'plangan'])
def test_every_system_updates_on_tasks_with_and_without_the_goal_in_the_observation(
    name, task, preset
):
    from mher_ros.learning.config import make_config

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
    for _ in range(3):
        agent.update()
    assert all(np.isfinite(value) for value in agent.take_losses().values())
