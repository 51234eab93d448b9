"""One agent, whose parts (rows, goals, critic target, actor loss, model) make it any system."""

from __future__ import annotations

from mher_ros.interface import TaskInterface
from mher_ros.learning.actor_loss import ImitationLoss
from mher_ros.learning.assembly import Parts
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.learner import Learner
from mher_ros.learning.model_replay import ModelReplay
from mher_ros.learning.networks import Policy, policy_function
from mher_ros.learning.relabel import FutureGoals, head_for, relabel, SeenGoals
from mher_ros.learning.replay import Episode, EpisodeReplay
from mher_ros.tasks.rollouts import PolicyFunction
import numpy as np
from numpy.typing import NDArray
import torch

__all__ = ['Agent']


class Agent(Learner):
    """Learns an actor, with a critic and a model where its system has them."""

    def __init__(self, interface: TaskInterface, config: TrainConfig) -> None:
        super().__init__(interface, config)
        parts = Parts(interface, config)
        self.networks, self.replay, self.dynamics = parts.networks, parts.replay, parts.dynamics
        self.goal_source = parts.goal_source
        self._seen = SeenGoals(parts.replay, interface)
        self._model_replay = parts.model_replay
        self._batches, self._actor_critic = parts.batches, parts.actor_critic
        self._imitation = ImitationLoss(parts.networks) if config.agent.actor == 'apart' else None
        self.loss_names = (
            *(('critic_loss',) if config.agent.actor != 'imitation' else ()),
            'actor_loss',
            *(('imitation_loss',) if config.agent.actor == 'apart' else ()),
            *(('model_loss',) if parts.dynamics is not None else ()),
        )

    @property
    def policy(self) -> Policy:
        """The actor, or its slowly moving copy, with what it sees."""
        networks = self.networks
        average = self._config.agent.deploy_average
        return Policy(networks.view, networks.target_actor if average else networks.actor)

    def policy_function(self) -> PolicyFunction:
        """Return the policy as a function of arrays."""
        return policy_function(self.policy)

    def store(self, episode: Episode) -> None:
        """Keep an episode and take it into the running statistics."""
        self.replay.add(episode)
        seen = self.replay.sample_latest(self._rng)
        goals = seen.goals
        if self._config.relabel.goals != 'none':
            future = FutureGoals(self.replay, self.interface)
            goals, _ = relabel(seen, future, self._config.relabel.probability, self._rng)
        observations = self.interface.with_goal(seen.observations, goals)
        self.networks.view.update(torch.from_numpy(observations), torch.from_numpy(goals))
        if self.dynamics is not None:
            self.dynamics.see(torch.from_numpy(seen.observations), torch.from_numpy(seen.actions))

    def update(self) -> None:
        """Do one update of model, critic and actor on one batch."""
        settings = self._config.agent
        transitions = self._batches.draw(self._rng)
        if self.dynamics is not None:
            for _ in range(self._config.model.fits_per_update):
                self._fit_model(transitions)
        elsewhere = self._config.relabel.elsewhere
        transitions = head_for(transitions, self._seen, elsewhere, self._rng)
        batch = self._batches.relabelled(transitions, self.updates, self._rng)
        if self._imitation is not None:
            loss = self._actor_critic.learn_actor(batch, self._imitation, self.updates)
            self._note_loss('imitation_loss', loss)
            batch = self._batches.original(transitions)
        for name, loss in self._actor_critic.learn(batch, self.updates).items():
            self._note_loss(name, loss)
        self.updates += 1
        if self.updates % settings.target_every == 0:
            self.networks.move_targets(1.0 - settings.target_keep)

    @property
    def virtual_offsets(self) -> NDArray[np.float32] | None:
        """From goals of the last batch to those of model, hindsight or chance (k, m)."""
        return self._batches.made_offsets

    @torch.no_grad()
    def _best_action(
        self, observation: NDArray[np.float64], goal: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        features = self.networks.view(
            torch.from_numpy(observation[None].astype(np.float32)),
            torch.from_numpy(goal[None].astype(np.float32)),
        )
        action: NDArray[np.float32] = self.networks.actor(features)[0].numpy()
        return action

    def _modules(self) -> dict[str, torch.nn.Module]:
        modules = self.networks.modules()
        return modules if self.dynamics is None else {**modules, 'dynamics': self.dynamics}

    def _optimisers(self) -> list[torch.optim.Optimizer]:
        models = [] if self.dynamics is None else self.dynamics.optimisers
        return [*self._actor_critic.optimisers, *models]

    def _replays(self) -> dict[str, EpisodeReplay | ModelReplay]:
        imagined = {} if self._model_replay is None else {'model_replay': self._model_replay}
        return {**super()._replays(), **imagined}
