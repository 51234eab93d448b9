"""What decides how an arm moves, without ROS: kinematics, and the checks on every command."""
