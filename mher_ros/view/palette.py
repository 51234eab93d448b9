"""Colours of what is drawn besides arms (red, green, blue, opacity), each from 0 to 1."""

GOAL, GOAL_CENTRE = (0.1, 0.8, 0.2, 0.3), (0.9, 0.1, 0.1, 1.0)
AHEAD, REACHED = (1.0, 0.6, 0.0, 0.6), (0.1, 0.8, 0.2, 0.6)
WORKSPACE, BOX = (0.6, 0.6, 0.6, 0.6), (0.9, 0.1, 0.1, 0.6)
TRAIL, MOTION = (1.0, 0.6, 0.0, 0.9), (0.1, 0.4, 0.9, 0.9)
VIRTUAL = (0.6, 0.2, 0.8, 0.8)
