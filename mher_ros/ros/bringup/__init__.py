"""
Systems of nodes, each described once and started in two ways.

``system.py`` says what a description is, ``train_sim.py`` is one. ``launch_files.py`` hands it to
``ros2 launch``; ``processes.py`` starts the same nodes where there is no ROS installation.
"""
