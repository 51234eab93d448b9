"""Which parts an agent is made of, by its configuration."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from mher_ros.interface import TaskInterface
from mher_ros.learning.actor_critic import ActorCritic
from mher_ros.learning.actor_loss import ActorLoss, ImitationLoss, JointLoss
from mher_ros.learning.batches import (
    Batches,
    CuratedBatches,
    ImaginedBatches,
    RareEpisodeBatches,
)
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.curriculum import GoalCurriculum
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.imagination import Imagination
from mher_ros.learning.model_replay import ModelReplay
from mher_ros.learning.networks import Actor, Critic, Networks, View
from mher_ros.learning.relabel import FutureGoals, GoalSource, MixedGoals, NoisyGoals, RandomGoals
from mher_ros.learning.replay import EpisodeReplay
from mher_ros.learning.targets import CriticTarget, ExpandedTarget, OneStepTarget
from mher_ros.learning.virtual_goals import VirtualGoals
import torch
from torch import nn

__all__ = ['Parts']

Network = TypeVar('Network', bound=nn.Module)


class Parts:
    """The parts, made in an order that fixes which random numbers each begins with."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        agent = config.agent
        n, m, k = (len(v) for v in (interface.observation, interface.goal, interface.action))
        weights = torch.Generator().manual_seed(config.seed)
        self._interface, self._config = interface, config
        self.networks = _networks(interface, config, weights)
        self.replay = EpisodeReplay(agent.replay, config.schedule.episode_steps, n, k, m)
        self.dynamics = Dynamics(n, k, config.model, weights) if config.needs_model else None
        self.model_replay = ModelReplay(agent.replay, n, k, m) if agent.imagined_steps else None
        self._imagination: Imagination | None = None
        if self.dynamics is not None:
            noise = config.relabel.rollout_noise
            policy = self.networks.target_action
            self._imagination = Imagination(self.dynamics, policy, interface, noise)
        self.goal_source = self._make_goal_source()
        self.batches = self._make_batches()
        self.actor_critic = ActorCritic(
            self.networks,
            None if agent.actor == 'imitation' else self._make_target(),
            self._make_actor_loss(),
            agent.actor_learning_rate,
            agent.critic_learning_rate,
        )

    def _make_goal_source(self) -> GoalSource | None:
        settings = self._config.relabel
        if settings.goals == 'none':
            return None
        source: GoalSource
        if settings.goals == 'random':
            source = RandomGoals(self._interface)
        else:
            source = FutureGoals(self.replay, self._interface)
        if settings.goals in ('virtual', 'mixed'):
            assert self._imagination is not None
            virtual = VirtualGoals(self._imagination, self._interface, settings.steps)
            mixed = MixedGoals(virtual, source, settings.virtual_share)
            source = virtual if settings.goals == 'virtual' else mixed
        return NoisyGoals(source, settings.goal_noise) if settings.goal_noise else source

    def _make_batches(self) -> Batches:
        agent, relabel = self._config.agent, self._config.relabel
        common: dict[str, Any] = {
            'replay': self.replay,
            'view': self.networks.view,
            'interface': self._interface,
            'source': self.goal_source,
            'probability': relabel.probability,
            'size': agent.batch,
        }
        if self.model_replay is not None:
            assert self._imagination is not None
            return ImaginedBatches(
                **common,
                imagination=self._imagination,
                steps=agent.imagined_steps,
                model_replay=self.model_replay,
            )
        if relabel.candidates > 1:
            curriculum = GoalCurriculum(relabel.closeness, relabel.closeness_growth)
            return CuratedBatches(**common, curriculum=curriculum, candidates=relabel.candidates)
        if agent.replay_rare:
            return RareEpisodeBatches(**common, seed=self._config.seed)
        return Batches(**common)

    def _make_target(self) -> CriticTarget:
        agent = self._config.agent
        if agent.target_steps == 1:
            return OneStepTarget(self.networks, agent.gamma, agent.value_ceiling)
        assert self._imagination is not None
        return ExpandedTarget(
            self.networks,
            agent.gamma,
            agent.value_ceiling,
            self._imagination,
            self._interface,
            agent.target_steps,
        )

    def _make_actor_loss(self) -> ActorLoss:
        agent = self._config.agent
        if agent.actor == 'imitation':
            return ImitationLoss(self.networks)
        return JointLoss(self.networks, agent.alpha, agent.alpha_half_life, agent.action_penalty)


def _networks(interface: TaskInterface, config: TrainConfig, weights: torch.Generator) -> Networks:
    settings, actions = config.agent, len(interface.action)
    view = View(
        interface,
        settings.relative_goal,
        settings.hide_still,
        settings.waves,
        settings.workspace_units,
    )
    actor = Actor(view.size, actions, settings.hidden, weights)
    critic = Critic(view.size, actions, settings.hidden, weights)
    return Networks(view, actor, critic, _slow_copy(actor), _slow_copy(critic))


def _slow_copy(network: Network) -> Network:
    return copy.deepcopy(network).requires_grad_(False)
