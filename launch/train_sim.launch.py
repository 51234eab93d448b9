"""Learn a policy on a simulated arm; ``--show-args`` lists the arguments."""

from mher_ros.ros.bringup.launch_files import launch_description


def generate_launch_description():
    return launch_description('train_sim', __file__)
