"""What decides how an arm moves, without ROS: so far, its kinematics."""
