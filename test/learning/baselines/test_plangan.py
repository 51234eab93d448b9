"""PlanGAN: hindsight sequences, losses, the scores of first actions, and the whole agent."""

import copy
import dataclasses
import math

from mher_ros.learning.baselines.plangan import (
    best_action,
    PlanGanAgent,
    Planner,
    PlanNoise,
    sample_steps,
    weighted_action,
)
from mher_ros.learning.baselines.plangan_networks import (
    critic_loss,
    GanCritics,
    GanEncoder,
    Gans,
    generator_loss,
    Generators,
    Steps,
)
from mher_ros.learning.config import AgentConfig, make_config, ModelConfig, PlanConfig
from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.learning.model import Dynamics
from mher_ros.learning.presets import CHEAP_PLAN
from mher_ros.options import OptionError, override
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
import pytest
import torch

SMALL = {
    'hidden': (16,),
    'latent': 3,
    'gans': 2,
    'batch': 16,
    'sequence': 2,
    'fits_per_update': 2,
    'warmup_fits': 3,
    'first_actions': 4,
    'trajectories': 3,
    'steps': 3,
}


def small(**changes):
    return override(PlanConfig(), {**SMALL, **changes})


def linear(**changes):
    """Return a plan whose networks have no hidden layer, to be set by hand."""
    values = {'gans': 1, 'latent': 1, **changes}
    return dataclasses.replace(small(), hidden=(), **values)


def obedient_dynamics():
    """Return a model in which actions add to x and y and speed stays."""
    dynamics = Dynamics(3, 2, ModelConfig(hidden=(), members=1), torch.Generator())
    weight = dynamics.get_buffer('weight0')
    weight.zero_()
    weight[0, 3, 0] = weight[0, 4, 1] = 1.0
    return dynamics


def set_generator(generators, member, *, action=0.0, by_latent=0.0, change=0.0):
    """Make a generator move along x: by an action, by its latent's sign, by a claimed change."""
    with torch.no_grad():
        weight, bias = generators.weights[0][member], generators.biases[0][member]
        weight.zero_()
        bias.zero_()
        bias[0, 0], bias[0, 2] = math.atanh(action), change
        weight[-1, 0] = by_latent


def scores(interface, plan, first_actions, goal, latent=None, setting=()):
    """Score first actions along x from the origin under generators set by hand."""
    encoder = GanEncoder(interface, AgentConfig())
    generators = Generators(encoder, plan, torch.Generator())
    for member, values in enumerate(setting):
        set_generator(generators, member, **values)
    planner = Planner(encoder, generators, obedient_dynamics(), plan)
    noise = PlanNoise.sample(plan, np.random.default_rng(0))
    if latent is not None:
        noise = dataclasses.replace(noise, latent=torch.tensor(latent))
    actions = torch.tensor([[[x, 0.0]] for x in first_actions])
    found = planner.score(torch.zeros(1, 3), torch.tensor([[goal, 0.0]]), actions, noise)
    return found[:, 0].tolist()


def test_a_first_action_is_scored_by_the_share_of_imagined_time_at_the_goal(interface):
    plan = linear(first_actions=4, trajectories=5, steps=4)
    # Later actions move by 0.5; the goal is at 2.2 and reaches 0.5 far.
    # 1: x = 1, 1.5, 2, 2.5: two of four.  -1: never.  0.5: 0.5, 1, 1.5, 2: one of four.
    # 2.5: there at once, but not for long.
    found = scores(interface, plan, (1.0, -1.0, 0.5, 2.5), 2.2, setting=[{'action': 0.5}])
    assert found == pytest.approx([0.5, 0.0, 0.25, 0.25])


def test_the_generators_own_next_states_may_be_believed_after_the_first(interface):
    plan = linear(first_actions=2, trajectories=5, steps=4, next_state='generator')
    # The model leads to 1 or 0.2, from there the generator claims steps of 1 whatever it does:
    # x = 1, 2, 3, 4 is there once, and x = 0.2, 1.2, 2.2, 3.2 once, too.
    setting = [{'action': -0.5, 'change': 1.0}]
    assert scores(interface, plan, (1.0, 0.2), 2.2, setting=setting) == pytest.approx([0.25, 0.25])
    obeying = dataclasses.replace(plan, next_state='model')
    assert scores(interface, obeying, (1.0, 0.2), 2.2, setting=setting) == pytest.approx(
        [0.0, 0.0]
    )


def test_trajectories_of_a_first_action_differ_by_their_latent(interface):
    plan = linear(first_actions=2, trajectories=4, steps=2)
    # From 1, three of four trajectories go on to 2 and one back to 0: 3 of 8 states are there.
    # From -1, none gets beyond 0.
    latent = [[[9.0], [-9.0], [9.0], [9.0]]]
    found = scores(interface, plan, (1.0, -1.0), 2.0, latent, [{'by_latent': 5.0}])
    assert found == pytest.approx([3 / 8, 0.0])


@pytest.mark.parametrize(('trajectories', 'forward'), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_trajectories_are_dealt_evenly_to_generators(interface, trajectories, forward):
    plan = linear(gans=2, first_actions=1, trajectories=trajectories, steps=2)
    # The first generator moves on from 1 to 1.9, the second back to 0.1.
    setting = [{'action': 0.9}, {'action': -0.9}]
    found = scores(interface, plan, (1.0,), 2.0, setting=setting)
    assert found == pytest.approx([forward / (2 * trajectories)])


def test_a_trajectory_is_led_by_changing_generators():
    order = PlanNoise.sample(small(trajectories=6, steps=20), np.random.default_rng(0)).order
    assert order.shape == (19, 6)
    assert torch.equal(order.sort(1).values, torch.arange(6).expand(19, 6))
    assert len({tuple(row) for row in order.tolist()}) > 10


def test_states_planned_for_together_get_the_plans_they_get_alone(interface):
    plan = small(first_actions=6, trajectories=7, steps=5)
    rng = torch.Generator().manual_seed(3)
    encoder = GanEncoder(interface, AgentConfig())
    planner = Planner(encoder, Generators(encoder, plan, rng), obedient_dynamics(), plan)
    noise = PlanNoise.sample(plan, np.random.default_rng(1))
    # More states than are moved at once.
    states, goals = torch.randn(200, 3, generator=rng), torch.randn(200, 2, generator=rng)
    together = planner.plan(states, goals, noise)
    for row in (0, 117, 118, 119, 120, 199):
        alone = planner.plan(states[row : row + 1], goals[row : row + 1], noise)
        assert together[row].tolist() == pytest.approx(alone[0].tolist(), abs=1e-5)


def test_the_best_first_action_is_taken_or_a_mean_by_exponential_weights():
    actions = torch.tensor([[[-1.0], [0.2]], [[1.0], [0.6]]])  # (Q, B, k) = (2, 2, 1)
    found = torch.tensor([[0.1, 0.4], [0.3, 0.2]])
    assert best_action(actions, found).tolist() == [[1.0], pytest.approx([0.2])]
    # Both pairs of scores lie one standard deviation (0.1) either side of their mean, so
    # weights are as exp(2 * sharpness) to 1: with sharpness ln(3) / 2, three to one.
    mean = weighted_action(actions, found, math.log(3.0) / 2.0)
    assert mean[:, 0].tolist() == pytest.approx([0.5, 0.3], abs=1e-3)
    tied = weighted_action(actions, torch.zeros(2, 2), 5.0)
    assert tied[:, 0].tolist() == pytest.approx([0.0, 0.4])


def test_critics_learn_to_score_real_steps_above_imagined_ones():
    real = torch.tensor([[[3.0, 1.0]], [[0.0, 1.0]]])  # means 2 and 0.5 of two critics
    imagined = torch.tensor([[[0.0, 1.0]], [[2.0, 2.0]]])  # means 0.5 and 2
    assert float(critic_loss(real, imagined)) == pytest.approx((0.5 - 2.0) + (2.0 - 0.5))
    assert float(critic_loss(real[:1], imagined[:1])) == pytest.approx(-1.5)


def test_generators_learn_to_look_real_and_to_agree_with_the_model():
    score = torch.tensor([[[1.0, 2.0]]])
    error = torch.tensor([[[[1.0, -2.0], [0.0, 3.0]]]])  # squares 1, 4, 0, 9: mean 3.5
    assert float(generator_loss(score, error, 30.0)) == pytest.approx(30.0 * 3.5 - 1.5)
    assert float(generator_loss(score, error, 0.0)) == pytest.approx(-1.5)


def test_disagreement_with_the_model_counts_in_deviations_of_a_change(interface):
    gans = Gans(GanEncoder(interface, AgentConfig()), small(gans=1), torch.Generator())
    # Changes of 0 and 4 in x have deviation 2, of 0 and 1 in y deviation 0.5, in speed 1.
    changes = torch.tensor([[0.0, 0.0, 1.0], [4.0, 1.0, 3.0]])
    gans.encoder.update_statistics(torch.zeros(2, 3), changes, torch.zeros(2, 2))
    steps = Steps(
        observations=torch.tensor([1.0, 1.0, 0.0]).view(1, 1, 1, 3),
        actions=torch.tensor([0.5, -1.0]).view(1, 1, 1, 2),
        next_observations=torch.tensor([2.0, 1.0, 0.5]).view(1, 1, 1, 3),
        goals=torch.zeros(1, 1, 1, 2),
    )
    # The model leads to (1.5, 0, 0).
    error = gans.model_difference(steps, obedient_dynamics())
    assert error.flatten().tolist() == pytest.approx([0.5 / 2.0, 1.0 / 0.5, 0.5 / 1.0])


def test_hidden_layers_of_critics_stretch_nothing_beyond_its_length(interface):
    critics = GanCritics(
        GanEncoder(interface, AgentConfig()), small(gans=1, hidden=(2,)), torch.Generator()
    )
    with torch.no_grad():
        critics.weights[0].zero_()
        critics.weights[0][0, 0, 0], critics.weights[0][0, 1, 1] = 4.0, 2.0
        critics.weights[1].fill_(1.0)
    for _ in range(60):
        critics.update_singular_vectors()
    # Divided by the largest singular value 4: 3 * 4 / 4 = 3, and -8 * 2 / 4 = -4, which leaks
    # a hundredth.
    features = torch.tensor([3.0, -8.0, 0.0, 0.0, 0.0]).view(1, 1, 1, 5)
    score = critics(features, torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 3))
    assert score.item() == pytest.approx(3.0 - 0.04, abs=1e-4)


def test_imagined_sequences_go_on_where_they_led(interface):
    gans = Gans(GanEncoder(interface, AgentConfig()), linear(gans=2), torch.Generator())
    set_generator(gans.generators, 0, action=0.5, change=1.0)
    set_generator(gans.generators, 1, action=-0.5, change=-2.0)
    start = torch.tensor([5.0, 1.0, 0.0]).expand(2, 1, 3)
    steps = gans.generate(start, torch.zeros(2, 3, 1, 2), torch.zeros(2, 3, 1, 1))
    assert steps.observations[:, :, 0, 0].tolist() == [[5.0, 6.0, 7.0], [5.0, 3.0, 1.0]]
    assert steps.next_observations[:, :, 0, 0].tolist() == [[6.0, 7.0, 8.0], [3.0, 1.0, -1.0]]
    assert steps.actions[:, 0, 0, 0].tolist() == pytest.approx([0.5, -0.5])


def test_plans_are_made_with_the_slow_mean_of_the_generators(tiny):
    agent = trained(tiny(), small(ema_decay=0.75, fits_per_update=1))
    slow = [p.clone() for p in agent.gans.average_generators.parameters()]
    agent.update()
    for old, mean, new in zip(
        slow,
        agent.gans.average_generators.parameters(),
        agent.gans.generators.parameters(),
        strict=True,
    ):
        assert torch.allclose(mean, 0.75 * old + 0.25 * new, atol=1e-6)
    asked = np.zeros((1, 2)), np.full((1, 2), 3.0)
    before = agent.policy_function()(*asked)
    with torch.no_grad():
        for parameter in agent.gans.generators.parameters():
            parameter.zero_()
    assert np.array_equal(agent.policy_function()(*asked), before)


def test_sequences_follow_an_episode_and_their_goals_lie_ahead_in_it(interface, counted_replay):
    steps, own = sample_steps(counted_replay, interface, (2, 3, 300), np.random.default_rng(0))
    x, following = steps.observations[..., 0], steps.next_observations[..., 0]
    goal = steps.goals[..., 0]
    episode = torch.div(x, 100, rounding_mode='floor')
    # Two GANs, three steps, 300 sequences; the third episode has but two steps.
    assert x.shape == (2, 3, 300)
    assert np.array_equal(own[..., 0], 1000.0 + episode[:, :1])
    assert torch.equal(following, x + 1)
    assert torch.equal(steps.actions[..., 0], x)
    whole = episode[:, 0] < 2
    assert torch.equal((x[:, 1:] - x[:, :-1]).transpose(1, 2)[whole].unique(), torch.ones(1))
    assert torch.equal(torch.div(goal, 100, rounding_mode='floor'), episode)
    # A goal stays the first step's until the sequence has come past it.
    assert torch.equal(goal, torch.maximum(goal[:, :1], following))
    # From the first step of a long episode, all four later states are goals, equally often.
    ahead = (goal - x)[:, 0][whole & (x[:, 0] % 100 == 0)]
    assert torch.bincount(ahead.long(), minlength=5)[1:] / len(ahead) == pytest.approx(
        torch.full((4,), 0.25), abs=0.08
    )


def test_the_goal_inside_an_observation_is_rewritten(tiny):
    agent = trained(tiny(task='reacher'), small(), 'reacher')
    shape = (2, 2, 16)
    steps, _ = sample_steps(agent.replay, agent.interface, shape, np.random.default_rng(0))
    imagined = agent.gans.generate(steps.observations[:, 0], steps.goals, torch.zeros(*shape, 3))
    for each in (steps, imagined):
        assert torch.equal(each.observations[..., 4:6], each.goals)
        assert torch.equal(each.next_observations[..., 4:6], each.goals)
    assert agent.policy_function()(np.zeros((3, 11)), np.zeros((3, 2))).shape == (3, 2)


def trained(config, plan, task_name='point2d_large', updates=2):
    task = make(task_name, config.task)
    agent = PlanGanAgent(task.interface, dataclasses.replace(config, plan=plan))
    for seed in range(3):
        agent.store(episode(task, lambda *_: agent.random_action(), seed))
    agent.warm_up_model()
    for _ in range(updates):
        agent.update()
    return agent


def episode(task, act, seed, steps=20):
    start, _ = task.reset(seed=seed)
    observations, actions = [start['observation']], []
    for _ in range(steps):
        actions.append(act(observations[-1], start['desired_goal']))
        observations.append(task.step(actions[-1])[0]['observation'])
    return Episode(np.array(observations), np.array(actions), start['desired_goal'])


def fingerprint(agent):
    values = [*agent.gans.state_dict().values(), *agent.dynamics.state_dict().values()]
    return torch.cat([value.double().flatten() for value in values])


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tiny):
    first = trained(tiny(seed=1), small())
    again = trained(tiny(seed=1), small())
    other = trained(tiny(seed=2), small())
    assert torch.equal(fingerprint(first), fingerprint(again))
    assert not torch.equal(fingerprint(first), fingerprint(other))
    asked = np.zeros(2), np.full(2, 3.0)
    assert np.array_equal(first.act(*asked), again.act(*asked))
    assert first.take_losses() == again.take_losses()


def test_a_restored_agent_goes_on_as_if_nothing_had_happened(tiny):
    agent = trained(tiny(), small())
    task = make('point2d_large', tiny().task)
    other = PlanGanAgent(task.interface, dataclasses.replace(tiny(), plan=small()))
    other.load_state_dict(copy.deepcopy(agent.state_dict()))
    for each in (agent, other):
        each.store(episode(task, each.act, seed=7))
        for _ in range(3):
            each.update()
    assert torch.equal(fingerprint(agent), fingerprint(other))
    assert agent.rng.bit_generator.state == other.rng.bit_generator.state
    assert agent.take_losses() == other.take_losses()
    assert agent.model_errors() == other.model_errors()


def test_chance_set_back_repeats_the_plan(tiny):
    agent = trained(tiny(agent__explore_random=0.0), small())
    rng_state, asked = agent.rng.bit_generator.state, (np.zeros(2), np.full(2, 3.0))
    first = agent.act(*asked)
    assert not np.array_equal(agent.act(*asked), first)
    agent.rng.bit_generator.state = rng_state
    assert np.array_equal(agent.act(*asked), first)


def test_evaluating_a_plan_changes_nothing_and_gives_the_same_answer_again(tiny):
    agent = trained(tiny(), small())
    chance = agent.rng.bit_generator.state
    policy, observations = agent.policy_function(), np.linspace(-4.0, 4.0, 10).reshape(5, 2)
    actions = policy(observations, observations[::-1])
    assert actions.shape == (5, 2)
    assert actions.dtype == np.float32
    policy(observations[::-1], observations)
    assert np.array_equal(policy(observations, observations[::-1]), actions)
    assert agent.rng.bit_generator.state == chance
    agent.update()
    assert not np.array_equal(agent.policy_function()(observations, observations[::-1]), actions)


def test_losses_and_model_errors_are_told(tiny):
    agent = trained(tiny(), small())
    assert set(agent.take_losses()) == {'critic_loss', 'generator_loss', 'model_loss'}
    assert agent.take_losses() == {}
    assert len(agent.model_errors()) == 5


@pytest.mark.parametrize(
    ('key', 'value'),
    [('gans', 0), ('steps', 0), ('choice', 'worst'), ('ema_decay', 1.5), ('consistency', -1.0)],
)
def test_values_out_of_range_are_refused(key, value):
    with pytest.raises(OptionError, match=key):
        override(PlanConfig(), {key: value})


def test_the_planner_is_by_default_the_one_that_the_paper_compares_with():
    plan = PlanConfig()
    assert (plan.first_actions, plan.trajectories, plan.steps) == (20, 50, 50)
    assert (plan.next_state, plan.choice) == ('model', 'best')


@pytest.mark.slow
def test_planning_after_random_episodes_alone_beats_acting_at_random():
    changes = {'model.hidden': (64, 64), 'agent.relative_goal': True}
    config = make_config('point2d_large', preset='paper', changes=changes)
    plan = override(PlanConfig(), {**CHEAP_PLAN, 'warmup_fits': 1000})
    task = make('point2d_large', config.task)
    agent = PlanGanAgent(task.interface, dataclasses.replace(config, plan=plan))
    for seed in range(20):
        agent.store(episode(task, lambda *_: agent.random_action(), seed, steps=100))
    agent.warm_up_model()
    rng = np.random.default_rng(0)
    evaluate = Evaluator('point2d_large', config.task, workers=1).run
    planned = evaluate(agent.policy_function(), range(25)).success_rate
    by_chance = evaluate(lambda o, _: rng.uniform(-1, 1, o.shape), range(25)).success_rate
    assert by_chance < 0.2
    assert planned > by_chance + 0.4
