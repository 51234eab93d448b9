"""Simulated arms that look like real ones from outside; no ROS."""
