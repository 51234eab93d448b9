"""Experiments: comparisons of algorithms over tasks and seeds, with tables, figures and a page."""
