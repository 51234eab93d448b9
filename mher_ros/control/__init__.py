"""The command path from goals and actions to an arm's commands; no ROS."""
