"""A task whose arm is simulated by sim_node, for programs: benchmarks, tests, notebooks."""

from collections.abc import Iterator
import contextlib
import os

from mher_ros.ros.bringup.node_spec import loopback_profile
from mher_ros.ros.common.node_process import node_process
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.train.arm_env import ArmEnv
from mher_ros.ros.train.lockstep_link import LockstepLink
from mher_ros.tasks import make
from mher_ros.tasks.task import TaskOptions
import rclpy
from rclpy.context import Context


@contextlib.contextmanager
def sim_node_env(
    task: str, options: TaskOptions | None = None, *, namespace: str = ''
) -> Iterator[tuple[ArmEnv, int]]:
    """
    Start sim_node; yield an env over its topics, and the number of its process.

    ``namespace``, such as ``/left``, is the namespace of both, for several arms.
    """
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.update(loopback_profile(os.environ))
    parameters = {'task': task, 'stepping': 'lockstep'}
    with node_process('sim_node', parameters, namespace=namespace) as simulation:
        context = Context()
        try:
            rclpy.init(args=[], context=context)
            node = rclpy.create_node('arm_env', context=context, namespace=namespace)
            with spinning(node):
                made = make(task, options)
                env = ArmEnv(made, LockstepLink(node, made))
                yield env, simulation.pid
                env.close()
        finally:
            context.try_shutdown()
