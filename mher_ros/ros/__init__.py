"""ROS 2: messages and arrays, the nodes, the arm behind topics as a Gymnasium env."""
