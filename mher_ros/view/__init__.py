"""The page in a browser, without ROS."""
