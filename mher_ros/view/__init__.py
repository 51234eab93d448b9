"""The page in a browser: what it draws and who may open it. Knows no ROS."""
