"""The learner: replay, relabelling, dynamics model, actor-critic, training loop."""
