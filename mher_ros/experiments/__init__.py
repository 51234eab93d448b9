"""Comparisons over seeds: runs, tables."""
