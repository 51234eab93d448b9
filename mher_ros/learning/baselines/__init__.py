"""Baselines with parts of their own."""
