"""What decides how an arm moves, without ROS: kinematics, and actions as commands."""
