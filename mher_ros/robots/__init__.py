"""Arms as data: robot file, model (URDF or MJCF), kinematics, workspace, command outputs."""
