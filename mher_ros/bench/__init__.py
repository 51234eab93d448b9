"""Speed and cost, each against a rival in the same run."""
