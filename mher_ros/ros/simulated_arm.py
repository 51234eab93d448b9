"""An arm in a process of its own, for programs that step it: benchmarks, tests, notebooks."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os

from mher_ros.ros.arm_env import ArmEnv
from mher_ros.ros.links import LINKS
from mher_ros.ros.loopback import loopback_profile
from mher_ros.ros.node_process import node_process
from mher_ros.ros.spinning import spinning
from mher_ros.tasks import make
from mher_ros.tasks.task import TaskOptions
import rclpy
from rclpy.context import Context

__all__ = ['simulated_arm']


@contextlib.contextmanager
def simulated_arm(
    task: str,
    options: TaskOptions | None = None,
    *,
    stepping: str = 'lockstep',
    domain: int | None = None,
) -> Iterator[tuple[ArmEnv, int]]:
    """
    Start sim_node and yield its arm as an env, and its process's number.

    The env knows the arm through topics alone.
    ``domain`` is the ROS domain for both (default: ROS_DOMAIN_ID).
    """
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.update(loopback_profile(os.environ))
    with node_process('sim_node', {'task': task, 'stepping': stepping}, domain) as simulation:
        context = Context()
        try:
            rclpy.init(args=[], context=context, domain_id=domain)
            node = rclpy.create_node('arm_env', context=context)
            with spinning(node):
                seen = make(task, options)
                env = ArmEnv(seen, LINKS[stepping](node, seen))
                yield env, simulation.pid
                env.close()
        finally:
            context.try_shutdown()
