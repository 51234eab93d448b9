"""Simulated arms with the interfaces of real ones; no ROS."""
