"""The actor-critic agent; the configuration chooses its parts."""

from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.core import actor_critic
from mher_ros.learning.core.learner import Learner
from mher_ros.learning.core.networks import Networks, Policy, tensor32
from mher_ros.learning.core.replay_buffer import Floats, ModelReplay
from mher_ros.learning.model import Dynamics, ModelRollouts
from mher_ros.learning.relabel import RELABELLING, samplers, strategies
from mher_ros.tasks.rollouts import PolicyFunction
from mher_ros.tasks.task import Array
import torch


class Agent(Learner):
    """Learns an actor, and a critic and a dynamics model if the algorithm has them."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        super().__init__(interface, config)
        agent = config.agent
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        # The order of construction determines the initial weights of each network.
        weights = torch.Generator().manual_seed(config.seed)
        self.networks = networks = Networks.build(interface, agent, weights)
        self.encoder = networks.encoder
        self._modules, self._optimisers = networks.modules(), []
        self._rollouts: ModelRollouts | None = None
        if config.needs_model:
            self.dynamics = Dynamics(n, k, config.model, weights)
            self._modules['dynamics'] = self.dynamics
            self._optimisers += self.dynamics.optimisers
            noise = config.relabel.rollout_noise
            policy = Policy(networks.encoder, networks.target_actor)
            self._rollouts = ModelRollouts(self.dynamics, policy, interface, noise)
        if agent.model_batch_steps:
            self._replays['model_replay'] = ModelReplay(agent.replay, n, k, m)
        self.goal_strategy = self._make_goal_strategy()
        self._random = strategies.RandomGoals(self.replay, interface)
        self._sampler = self._make_sampler()
        imitation = actor_critic.ImitationLoss(networks)
        has_critic = agent.actor != 'imitation'
        target = actor_critic.CriticTarget(networks, agent, self._rollouts)
        self._actor_critic = actor_critic.ActorCritic(
            networks,
            target if has_critic else None,
            actor_critic.JointLoss(networks, agent) if has_critic else imitation,
            agent.actor_learning_rate,
            agent.critic_learning_rate,
        )
        self._optimisers = [*self._actor_critic.optimisers, *self._optimisers]
        self._imitation = imitation if agent.actor == 'separate' else None
        losses = {
            'critic_loss': has_critic,
            'actor_loss': True,
            'imitation_loss': self._imitation,
            'model_loss': self.dynamics,
        }
        self.loss_names = tuple(name for name, part in losses.items() if part)

    @property
    def policy(self) -> Policy:
        networks, is_target = self.networks, self._config.agent.export_target_actor
        return Policy(networks.encoder, networks.target_actor if is_target else networks.actor)

    def policy_function(self) -> PolicyFunction:
        policy = self.policy

        @torch.inference_mode()
        def act(observations: Array, goals: Array) -> Floats:
            return policy(tensor32(observations), tensor32(goals)).numpy()

        return act

    def update(self) -> None:
        settings, share = self._config.agent, self._config.relabel.random_share
        transitions = self._sampler.sample(self.rng)
        if self.dynamics is not None:
            for _ in range(self._config.model.fits_per_update):
                self._fit_model(transitions)
        transitions = strategies.substitute_goals(transitions, self._random, share, self.rng)
        self._sampler.threshold_factor = self.threshold_factor
        batch = self._sampler.relabel(transitions, self.updates, self.rng)
        self.goal_offsets = self._sampler.goal_offsets
        if self._imitation is not None:
            loss = self._actor_critic.learn_actor(batch, self._imitation, self.updates)
            self._record_loss('imitation_loss', loss)
            batch = self._sampler.original(transitions)
        for name, loss in self._actor_critic.learn(batch, self.updates).items():
            self._record_loss(name, loss)
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self.networks.update_targets(settings.tau)

    @torch.no_grad()
    def _greedy_action(self, observation: Array, goal: Array) -> Floats:
        features = self.networks.encoder(tensor32(observation[None]), tensor32(goal[None]))
        return self.networks.actor(features)[0].numpy()

    def _make_goal_strategy(self) -> strategies.GoalStrategy | None:
        settings = self._config.relabel
        if settings.goals == 'none':
            return None
        kind = RELABELLING[settings.goals]
        strategy: strategies.GoalStrategy = kind.from_context(
            strategies.RelabelContext(self.replay, self.interface, settings, self._rollouts)
        )
        if settings.goal_noise:
            strategy = strategies.NoisyGoals(strategy, settings.goal_noise)
        return strategy

    def _make_sampler(self) -> samplers.BatchSampler:
        agent, settings = self._config.agent, self._config.relabel
        common: dict[str, Any] = {
            'replay': self.replay,
            'encoder': self.networks.encoder,
            'interface': self.interface,
            'source': self.goal_strategy,
            'probability': settings.probability,
            'size': agent.batch,
        }
        if agent.model_batch_steps:
            common |= {'rollouts': self._rollouts, 'steps': agent.model_batch_steps}
            common['model_replay'] = self._replays['model_replay']
            return samplers.ModelSampler(**common)
        if settings.candidates > 1:
            weights = settings.closeness, settings.closeness_growth
            common['curriculum'] = samplers.GoalCurriculum(*weights)
            return samplers.CurriculumSampler(**common, candidates=settings.candidates)
        if agent.replay_rare:
            return samplers.RareEpisodeSampler(**common, seed=self._config.seed)
        return samplers.BatchSampler(**common)
