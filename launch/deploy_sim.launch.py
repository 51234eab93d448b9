"""Move a simulated arm to goals with a learnt policy; ``--show-args`` lists the arguments."""

from mher_ros.ros.bringup.launch_files import launch_description


def generate_launch_description():
    return launch_description('deploy_sim', __file__)
