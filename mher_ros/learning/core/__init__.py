"""The agent: networks, losses, replay buffer."""
