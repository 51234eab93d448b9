"""Benchmarks of speed and cost, each against a baseline in the same run."""
