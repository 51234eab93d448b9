"""Each part of an update against numbers worked out by hand."""

import dataclasses

from hand_made import batch_of, fixed_networks, FixedGoals, KnownDynamics
from mher_ros.learning.config import AgentConfig, ModelConfig
from mher_ros.learning.core.actor_critic import CriticTarget, JointLoss
from mher_ros.learning.core.networks import Actor, Critic, InputEncoder, Normaliser, Policy
from mher_ros.learning.model import Dynamics, ModelRollouts
from mher_ros.learning.relabel.strategies import (
    FutureGoals,
    MixedGoals,
    NoisyGoals,
    RandomGoals,
    relabel,
    substitute_goals,
    VirtualGoals,
)
from mher_ros.tasks import make
import numpy as np
import pytest
import torch


def test_target_discounts_the_next_value_and_is_clipped_to_what_is_possible(interface):
    networks = fixed_networks(interface, torch.tensor([-4.0, -50.0, 3.0]))
    batch = batch_of(3, rewards=torch.tensor([-1.0, -1.0, 0.0]), goals=torch.zeros(3, 2))
    # -1 + 0.9 * -4 = -4.6; -46 is below -1 / (1 - 0.9) = -10; 2.7 is above 0
    target = CriticTarget(networks, AgentConfig(gamma=0.9))(batch)
    assert target.tolist() == pytest.approx([-4.6, -10.0, 0.0])
    higher = CriticTarget(networks, AgentConfig(gamma=0.9, value_ceiling=100.0))
    assert higher(batch)[2] == pytest.approx(2.7)


def test_joint_loss_is_value_plus_penalty_plus_masked_supervision(interface):
    proposed = torch.tensor([[0.5, 0.0], [1.0, -1.0]])
    networks = fixed_networks(interface, torch.tensor([-2.0, -4.0]), proposed)
    batch = batch_of(
        2,
        actions=torch.tensor([[0.5, 1.0], [0.0, 0.0]]),
        relabelled=torch.tensor([1.0, 0.0]),
    )
    # value: 3; penalty: (0.25 + 0 + 1 + 1) / 4 = 0.5625; supervision of row 1 alone:
    # mean over entries (0 + 1) / 2 = 0.5, over both rows 0.25
    joint = JointLoss(networks, AgentConfig(alpha=3.0, action_penalty=1.0))
    assert float(joint(batch, updates=7)) == pytest.approx(3.0 + 0.5625 + 0.75)
    bare = JointLoss(networks, AgentConfig(alpha=0.0, action_penalty=0.0))
    assert float(bare(batch, updates=7)) == pytest.approx(3.0)
    fading = JointLoss(networks, AgentConfig(alpha_half_life=100.0, action_penalty=0.0))
    assert float(fading(batch, updates=0)) == pytest.approx(3.0 + 0.75)
    assert float(fading(batch, updates=200)) == pytest.approx(3.0 + 0.75 / 4)


def test_relabelling_replaces_the_masked_share_of_goals_and_no_others(counted_replay, rng):
    batch = counted_replay.sample(5000, rng)
    goals, mask = relabel(batch, FixedGoals(7.0), 0.8, rng)
    assert mask.mean() == pytest.approx(0.8, abs=0.02)
    assert (goals[mask] == 7.0).all()
    assert np.array_equal(goals[~mask], batch.goals[~mask])


def test_without_a_source_no_row_is_relabelled(counted_replay, rng):
    batch = counted_replay.sample(100, rng)
    goals, mask = relabel(batch, None, 0.8, rng)
    assert np.array_equal(goals, batch.goals)
    assert not mask.any()


def test_future_goals_are_achieved_later_in_the_episode(counted_replay, interface, rng):
    batch = counted_replay.sample(500, rng)
    goals = FutureGoals(counted_replay, interface).propose(batch, rng)
    assert goals.shape == (500, 2)
    assert (goals[:, 0] > batch.observations[:, 0]).all()
    assert np.array_equal(goals[:, 1], -goals[:, 0])


def test_mixed_goals_come_from_both_sources_in_proportion(counted_replay, rng):
    batch = counted_replay.sample(5000, rng)
    goals = MixedGoals(FixedGoals(1.0), FixedGoals(2.0), 0.3).propose(batch, rng)
    assert (goals == 1.0).all(1).mean() == pytest.approx(0.3, abs=0.02)
    assert np.isin(goals, (1.0, 2.0)).all()


def test_seen_goals_are_achieved_in_any_episode_at_any_step(counted_replay, interface, rng):
    batch = counted_replay.sample(3000, rng)
    goals = RandomGoals(counted_replay, interface).propose(batch, rng)
    # Every s_1 .. s_T of the three episodes, and no first state: none was achieved.
    assert set(goals[:, 0]) == {1, 2, 3, 4, 101, 102, 103, 104, 201, 202}
    assert np.array_equal(goals[:, 1], -goals[:, 0])
    same_episode = goals[:, 0] // 100 == batch.observations[:, 0] // 100
    assert same_episode.mean() == pytest.approx(1 / 3, abs=0.04)


def test_a_share_of_a_batch_heads_for_other_goals_and_is_otherwise_as_collected(
    counted_replay, rng
):
    batch = counted_replay.sample(5000, rng)
    headed = substitute_goals(batch, FixedGoals(7.0), 0.3, rng)
    other = (headed.goals == 7.0).all(1)
    assert other.mean() == pytest.approx(0.3, abs=0.02)
    assert np.array_equal(headed.goals[~other], batch.goals[~other])
    for name in ('observations', 'actions', 'next_observations', 'slots', 'steps'):
        assert np.array_equal(getattr(headed, name), getattr(batch, name))


def test_a_batch_that_heads_for_no_other_goals_draws_nothing(counted_replay, rng):
    batch = counted_replay.sample(10, rng)
    before = rng.bit_generator.state
    assert substitute_goals(batch, FixedGoals(7.0), 0.0, rng) is batch
    assert rng.bit_generator.state == before


def test_virtual_goals_lie_on_the_rollout_from_the_next_state(counted_replay, interface, rng):
    def policy(observations, goals):
        # Each row must be driven under its original goal, which tells its slot as its place does.
        assert torch.equal(goals[:, 0] - 1000.0, (-observations[:, 1] // 100.0))
        return torch.tensor([[1.0, 0.0]]).expand(len(goals), 2)

    batch = counted_replay.sample(2000, rng)
    source = VirtualGoals(ModelRollouts(KnownDynamics(), policy, interface), steps=3)
    goals = source.propose(batch, rng)
    ahead = goals[:, 0] - batch.next_observations[:, 0]
    # One of the real s_{t+1} and three virtual states, each as likely as another.
    assert np.bincount(ahead.astype(int)) / 2000 == pytest.approx([0.25] * 4, abs=0.04)
    assert np.array_equal(goals[:, 1], batch.next_observations[:, 1])


def test_a_rollout_takes_each_row_as_far_as_it_goes_and_no_further(interface):
    start = torch.tensor([[0.0, 0.0, 5.0], [1.0, 1.0, 0.0], [0.0, 8.0, 0.0], [3.0, 0.0, 0.0]])
    goals = torch.tensor([[4.0, 0.0], [1.0, 9.0], [0.0, 0.0], [0.0, 0.0]])
    asked = []

    def towards_the_goal(observations, goals):
        asked.append(len(goals))
        return (goals - observations[:, :2]).clamp(-1.0, 1.0)

    rollouts = ModelRollouts(KnownDynamics(), towards_the_goal, interface)
    lengths = np.array([1, 3, 0, 3])
    ends = rollouts.final_states(start, goals, lengths)
    assert asked == [3, 2, 2]
    states, _ = rollouts.run(start, goals, 3)
    assert torch.equal(ends, states[lengths, np.arange(4)])
    assert torch.equal(rollouts.final_states(start, goals, np.zeros(4, int)), start)


def test_what_is_wanted_decides_what_is_rolled_out_and_not_what_chance_brings(
    counted_replay, interface, rng
):
    batch = counted_replay.sample(200, rng)
    rolled_out = []

    def right(observations, goals):
        rolled_out.append(len(goals))
        return torch.tensor([[1.0, 0.0]]).expand(len(goals), 2)

    rollouts = ModelRollouts(KnownDynamics(), right, interface, noise=0.1)
    virtual = VirtualGoals(rollouts, steps=2)
    source = MixedGoals(NoisyGoals(virtual, 0.1), FixedGoals(7.0), 0.5)
    wanted = np.arange(200) < 50
    some, every = (
        source.propose(batch, np.random.default_rng(3), rows) for rows in (wanted, None)
    )
    assert np.array_equal(some[wanted], every[wanted])
    assert 0 < rolled_out[0] <= 50 < rolled_out[2]
    assert len(rolled_out) == 4


def test_only_the_rows_that_are_relabelled_are_asked_for(counted_replay, rng):
    batch = counted_replay.sample(200, rng)
    asked = []

    class Asked(FixedGoals):
        def propose(self, batch, rng, wanted=None):
            asked.append(wanted)
            return super().propose(batch, rng)

    goals, mask = relabel(batch, Asked(7.0), 0.5, rng)
    assert 50 < mask.sum() < 150
    assert np.array_equal(asked[0], mask)
    assert (goals[mask] == 7.0).all()
    assert np.array_equal(goals[~mask], batch.goals[~mask])


def test_a_rollout_starts_from_a_state_that_reads_as_under_its_goal(
    counted_replay, interface, rng
):
    repeating = dataclasses.replace(interface, goal_index=(1, 2))
    batch = substitute_goals(counted_replay.sample(50, rng), FixedGoals(7.0), 1.0, rng)
    seen = []

    def policy(observations, goals):
        seen.append(observations.clone())
        return torch.zeros(len(goals), 2)

    VirtualGoals(ModelRollouts(KnownDynamics(), policy, repeating), steps=1).propose(batch, rng)
    assert (seen[0][:, 1:] == 7.0).all()


def test_noise_in_the_rollout_keeps_actions_in_range(counted_replay, interface, rng):
    batch = counted_replay.sample(500, rng)
    policy = lambda o, g: torch.ones(len(o), 2)  # noqa: E731
    rollouts = ModelRollouts(KnownDynamics(), policy, interface, noise=0.5)
    source = VirtualGoals(rollouts, steps=1)
    ahead = source.propose(batch, rng) - batch.next_observations[:, :2]
    moved = ahead[(ahead != 0).any(1)]
    assert (moved <= 1.0).all()
    assert (moved < 1.0).any()


def test_imagination_begins_with_the_given_states_and_follows_the_model(interface):
    start = torch.tensor([[0.0, 0.0, 5.0], [1.0, 1.0, 0.0]])
    goals = torch.tensor([[4.0, 0.0], [1.0, 9.0]])

    def towards_the_goal(observations, goals):
        return (goals - observations[:, :2]).clamp(-1.0, 1.0)

    states, actions = ModelRollouts(KnownDynamics(), towards_the_goal, interface).run(
        start, goals, steps=2
    )
    assert states[:, 0].tolist() == [[0, 0, 5], [1, 0, 6], [2, 0, 7]]
    assert states[:, 1].tolist() == [[1, 1, 0], [1, 2, 1], [1, 3, 2]]
    assert actions.tolist() == [[[1, 0], [0, 1]]] * 2


def test_a_goal_that_observations_repeat_stays_the_same_in_imagination(interface):
    repeating = dataclasses.replace(interface, goal_index=(1, 2))
    goals = torch.tensor([[7.0, 8.0]])
    states, _ = ModelRollouts(KnownDynamics(), lambda o, g: torch.ones(1, 2), repeating).run(
        repeating.with_goal(torch.zeros(1, 3), goals), goals, steps=3
    )
    assert states[:, 0].tolist() == [[0, 7, 8], [1, 7, 8], [2, 7, 8], [3, 7, 8]]


def test_normaliser_has_the_mean_and_deviation_of_all_it_saw(rng):
    values = rng.normal((3.0, -1.0), (2.0, 0.5), (300, 2))
    normaliser = Normaliser(2)
    for part in np.split(values, 3):
        normaliser.update(torch.from_numpy(part.astype(np.float32)))
    assert normaliser.mean.numpy() == pytest.approx(values.mean(0), abs=1e-5)
    assert normaliser.std.numpy() == pytest.approx(values.std(0), abs=1e-5)
    raw = torch.from_numpy(values.astype(np.float32))
    expected = (values - values.mean(0)) / values.std(0)
    assert normaliser(raw).numpy() == pytest.approx(expected, abs=1e-4)


def test_a_pinned_entry_keeps_its_scale_whatever_is_seen():
    normaliser = Normaliser(3)
    normaliser.fix(slice(1, 2), torch.tensor([10.0]), torch.tensor([4.0]))
    assert normaliser(torch.tensor([[0.0, 12.0, 0.0]])).tolist() == [[0.0, 0.5, 0.0]]
    normaliser.update(torch.tensor([[0.0, 10.1, 1.0], [2.0, 10.2, 3.0]]))
    assert normaliser(torch.tensor([[3.0, 12.0, 2.0]])).tolist() == [[2.0, 0.5, 0.0]]


def test_positions_and_goals_are_told_in_widths_of_the_workspace_and_the_way_in_its_own():
    interface = make('reacher').interface
    middle = np.add(interface.goal_low, interface.goal_high) / 2.0
    width = np.subtract(interface.goal_high, interface.goal_low)
    view = InputEncoder(interface, AgentConfig(relative_goal=True, workspace_normalisation=True))
    seen = torch.zeros(2, len(interface.observation))
    seen[:, list(interface.achieved_index)] += torch.tensor([[0.001], [0.003]])
    goals = torch.from_numpy(np.stack((middle + width / 2, middle - width / 4))).float()
    view.update(seen, goals)
    features = view(interface.with_goal(seen, goals), goals)
    n, m = len(interface.observation), len(interface.goal)
    observation, goal, way = features.split((n, m, m), -1)
    halves = torch.tensor([[0.5] * m, [-0.25] * m])
    torch.testing.assert_close(goal, halves)
    torch.testing.assert_close(observation[:, list(interface.goal_index)], halves)
    positions = observation[:, list(interface.achieved_index)]
    expected = torch.from_numpy((np.array([[0.001], [0.003]]) - middle) / width).float()
    torch.testing.assert_close(positions, expected)
    torch.testing.assert_close(way, torch.tensor([[1.0] * m, [-1.0] * m]))


def test_normaliser_floors_a_constant_and_clips():
    normaliser = Normaliser(1, clip=5.0)
    normaliser.update(torch.full((10, 1), 2.0))
    assert float(normaliser.std) == pytest.approx(1e-4)
    assert float(normaliser(torch.tensor([[3.0]]))) == 5.0
    assert float(normaliser(torch.tensor([[2.0]]))) == 0.0


def test_an_entry_that_never_varied_is_hidden_if_asked():
    values = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    odd = torch.tensor([[1.0, 5.001]])
    for hide, expected in ((True, [-1.0, 0.0]), (False, [-1.0, 5.0])):
        normaliser = Normaliser(2, clip=5.0, mask_constant_inputs=hide)
        normaliser.update(values)
        assert normaliser(odd)[0].tolist() == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize('relative', [False, True])
def test_view_shows_normalised_observation_goal_and_way(interface, relative):
    view = InputEncoder(interface, AgentConfig(relative_goal=relative))
    observation = torch.tensor([[1.0, 2.0, 3.0]])
    goal = torch.tensor([[4.0, 4.0]])
    expected = [1, 2, 3, 4, 4] + ([3, 2] if relative else [])
    assert view(observation, goal).tolist() == [expected]
    assert view.size == len(expected)


def test_view_shows_waves_of_every_number_each_twice_as_fast_as_the_last(interface):
    view = InputEncoder(interface, AgentConfig(relative_goal=True, fourier_features=2))
    numbers = np.array([1, 2, 3, 4, 4, 3, 2])
    expected = [numbers, *(wave(k * numbers) for wave in (np.sin, np.cos) for k in (1.5, 3.0))]
    features = view(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[4.0, 4.0]]))
    assert features[0].tolist() == pytest.approx(np.concatenate(expected), abs=1e-5)
    assert view.size == 7 * 5


def test_view_cuts_raw_values_before_it_normalises(interface):
    view = InputEncoder(interface, AgentConfig())
    view.update(torch.tensor([[1e9, 0.0, 0.0]]), torch.tensor([[0.0, 0.0]]))
    assert float(view.observation.mean[0]) == 200.0


def test_networks_have_zero_biases_xavier_weights_and_the_right_shapes(interface):
    generator = torch.Generator().manual_seed(0)
    view = InputEncoder(interface, AgentConfig())
    actor = Actor(view.size, 2, (256, 256), generator)
    critic = Critic(view.size, 2, (256, 256), generator)
    policy = Policy(view, actor)
    action = policy(torch.zeros(7, 3), torch.zeros(7, 2))
    assert action.shape == (7, 2)
    assert (action.abs() <= 1).all()
    assert critic(view(torch.zeros(7, 3), torch.zeros(7, 2)), action).shape == (7,)
    weight = actor.layers[2].weight
    bound = (6 / 512) ** 0.5
    assert float(weight.detach().abs().max()) == pytest.approx(bound, rel=0.01)
    assert not actor.layers[2].bias.any()


class TestDynamics:
    def make(self, members, **changes):
        config = ModelConfig(hidden=(64, 64), members=members, **changes)
        return Dynamics(2, 1, config, torch.Generator().manual_seed(1))

    def data(self, rng, count=256):
        state = rng.normal(size=(count, 2)).astype(np.float32)
        action = rng.uniform(-1, 1, (count, 1)).astype(np.float32)
        following = state + 0.1 * np.concatenate((state[:, 1:], action), 1)
        return [torch.from_numpy(array) for array in (state, action, following)]

    def test_it_learns_a_linear_system(self, rng):
        dynamics = self.make(members=2)
        data = self.data(rng)
        dynamics.update_statistics(data[0], data[1])
        for index in range(400):
            dynamics.fit(*data, member=index % 2)
        state, action, following = self.data(rng)
        error = (dynamics.step(state, action) - following).abs().mean()
        change = (following - state).abs().mean()
        assert error < 0.2 * change

    def test_fitting_one_member_leaves_the_others_alone(self, rng):
        dynamics = self.make(members=3)
        before = [weight.clone() for weight, _ in dynamics._layers]
        dynamics.fit(*self.data(rng), member=1)
        for old, (new, _) in zip(before, dynamics._layers, strict=True):
            assert torch.equal(old[[0, 2]], new[[0, 2]])
            assert not torch.equal(old[1], new[1])

    def test_a_prediction_is_the_mean_of_the_members(self, rng):
        dynamics = self.make(members=3)
        state, action, _ = self.data(rng, 5)
        inputs = torch.cat((state, action), -1)
        changes = []
        for member in dynamics._members:
            hidden = inputs
            for index, (weight, bias) in enumerate(member):
                hidden = hidden @ weight + bias
                hidden = hidden.relu() if index < len(member) - 1 else hidden
            changes.append(hidden)
        expected = state + torch.stack(changes).mean(0)
        assert torch.allclose(dynamics.step(state, action), expected, atol=1e-6)

    def test_gradients_are_cut_tensor_by_tensor(self, rng):
        dynamics = self.make(members=1, gradient_limit=1e-3)
        state, action, following = self.data(rng)
        dynamics.fit(state, action, following + 100, member=0)
        norms = [float(tensor.grad.norm()) for layer in dynamics._members[0] for tensor in layer]
        assert max(norms) == pytest.approx(1e-3, rel=1e-3)

    def test_gradients_within_the_limit_are_left_as_they_are(self, rng):
        state, action, following = self.data(rng)
        free, limited = (self.make(members=1, gradient_limit=limit) for limit in (0.0, 1e3))
        for dynamics in (free, limited):
            dynamics.fit(state, action, following, member=0)
        for layer, other in zip(free._members[0], limited._members[0], strict=True):
            for one, another in zip(layer, other, strict=True):
                assert torch.equal(one.grad, another.grad)

    @pytest.mark.parametrize(('loss', 'expected'), [('absolute', 2.0), ('squared', 8.0)])
    def test_losses(self, loss, expected):
        # Both of two entries are off by 2: mean absolute error 2, squared norm 8.
        dynamics = self.make(members=1, loss=loss)
        for weight, _ in dynamics._layers:
            weight.zero_()
        state = torch.zeros(4, 2)
        assert dynamics.fit(state, torch.zeros(4, 1), state + 2.0, 0) == pytest.approx(expected)

    def test_errors_compare_with_real_sequences_at_every_horizon(self, rng):
        dynamics = self.make(members=1)
        for weight, _ in dynamics._layers:
            weight.zero_()
        # A model that predicts no change is off by 1, 2, 3 on a state that moves by 1.
        observations = np.arange(4, dtype=np.float32)[:, None, None] * np.ones((1, 5, 2))
        errors = dynamics.errors(observations.astype(np.float32), np.zeros((3, 5, 1), np.float32))
        assert errors == pytest.approx([1.0, 2.0, 3.0])
