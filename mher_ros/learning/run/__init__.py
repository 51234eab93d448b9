"""One run: training loop, progress, recorded episodes, start and resume."""
