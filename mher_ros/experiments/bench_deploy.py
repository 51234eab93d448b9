"""A policy on an arm, from outside: goals in, the simulator's word on where it went."""

from __future__ import annotations

from collections import deque
import os
from pathlib import Path
import sys
import time
from typing import Any

from geometry_msgs.msg import PoseStamped
from mher_ros.control.robot import load_robot
from mher_ros.control.workspace import Workspace
from mher_ros.errors import ArmError
from mher_ros.learning.run import plan_run, POLICY, start_training
from mher_ros.policy.run import load
from mher_ros.ros.goal_client import GoalClient
from mher_ros.ros.node_process import node_process
from mher_ros.tasks import task_class
import numpy as np
from numpy.typing import NDArray
import rclpy
from rclpy.context import Context

__all__ = ['bench_deploy', 'deploy_lines', 'deployed_policy', 'reach_goals']

RATE = 100.0
"""Poses of the tool in a second."""
TIMEOUT = 8.0
"""Time after which a goal is given up [s]."""
SETTLE = 2.0
"""Time at the goal before it is judged [s]; motion is that of the last second."""
POLICIES = Path('runs') / 'deploy'
"""Where policies are kept that were trained for this."""


def bench_deploy(
    robot: str, goals: int, seed: int, policy: str | None = None, output: str = 'robot'
) -> dict[str, Any]:
    """
    Send a simulated arm to random goals of the workspace that its policy was trained in.

    sim_node, policy_node and this process know each other by topics alone. A goal counts as
    reached if the tool is within the task's own threshold of it ``SETTLE`` seconds after it first
    was. Without ``policy`` one is trained with the preset ``precise`` and this seed, and kept.
    """
    path = Path(policy) if policy else deployed_policy(robot, seed)
    interface = load(path).interface
    config = load_robot(robot)
    space = Workspace(
        interface.goal_low, interface.goal_high, config.workspace.origin, config.workspace.scale
    )
    wanted = np.random.default_rng(seed).uniform(space.low, space.high, (goals, 3))
    threshold = task_class(interface.task).default_options.threshold * space.scale
    results = reach_goals(robot, path, wanted, threshold, output)
    errors, motions, seconds = (np.array(column) for column in zip(*results, strict=True))
    reached = errors <= threshold
    in_time = seconds[np.isfinite(seconds)]
    return {
        'robot': robot,
        'policy': str(path),
        'goals': goals,
        'reached': int(reached.sum()),
        'threshold_mm': 1000.0 * threshold,
        'median_error_mm': float(1000.0 * np.median(errors)),
        'p95_error_mm': float(1000.0 * np.percentile(errors, 95)),
        'motion_at_goal_mm': float(1000.0 * np.median(motions)),
        'p95_motion_at_goal_mm': float(1000.0 * np.percentile(motions, 95)),
        'worst_motion_at_goal_mm': float(1000.0 * motions.max()),
        'median_seconds': float(np.median(in_time)) if in_time.size else None,
    }


def deploy_lines(result: dict[str, Any]) -> list[str]:
    """Return the figures of ``bench_deploy`` as lines for people."""
    seconds = result['median_seconds']
    return [
        f'{result["robot"]} with {result["policy"]}',
        f'goals reached within {result["threshold_mm"]:.0f} mm  {result["reached"]} of '
        f'{result["goals"]}',
        f'error at the goal            median {result["median_error_mm"]:.1f} mm, '
        f'95 % below {result["p95_error_mm"]:.1f} mm',
        f'motion at the goal           median {result["motion_at_goal_mm"]:.2f} mm, '
        f'95 % below {result["p95_motion_at_goal_mm"]:.2f} mm (peak to peak, last second)',
        f'time until it is there       median '
        f'{"-" if seconds is None else format(seconds, ".2f")} s',
    ]


def deployed_policy(robot: str, seed: int) -> Path:
    """Return the policy for a robot: of its own task, or Fetch's; trained if there is none yet."""
    task = load_robot(robot).simulation_task or 'fetch_reach'
    folder = POLICIES / f'{task}-seed{seed}'
    if not (folder / POLICY).exists():
        print(f'training a policy for {task} into {folder}', file=sys.stderr, flush=True)
        resume = (folder / 'config.json').exists()
        config, _ = plan_run(task, preset='precise', seed=seed, folder=folder, resume=resume)
        start_training(folder, config, resume=resume)
    return folder / POLICY


def reach_goals(
    robot: str, policy: Path, goals: NDArray[np.float64], threshold: float, output: str = 'robot'
) -> list[tuple[float, float, float]]:
    """
    Send a simulated arm to ``goals`` (g, 3) [m] one after the other.

    Returns for each the final error [m], the motion over the last second, peak to peak [m], and
    the time until the tool first was within ``threshold`` [s] (infinite if it never was).
    """
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    simulated: dict[str, str | float] = {'robot': robot, 'view_rate': RATE}
    deployed: dict[str, str] = {
        'robot': robot,
        'policy': str(policy),
        'output': output,
        # Goals that the arm's box cuts off: the nearest point is the best one can do.
        'outside': 'project',
    }
    context = Context()
    with (
        node_process('sim_node', simulated) as arm,
        node_process('policy_node', deployed) as node,
    ):
        rclpy.init(args=[], context=context)
        client: GoalClient | None = None
        try:
            frame = load_robot(robot).base_frame
            client = GoalClient(frame, rclpy.create_node('bench_deploy', context=context))
            client.wait_until_ready(60.0)
            watch = _Watch(client)
            results = []
            for number, goal in enumerate(goals, 1):
                for name, process in (('sim_node', arm), ('policy_node', node)):
                    if process.poll() is not None:
                        raise ArmError(f'{name} has ended with code {process.returncode}')
                results.append(watch.follow(goal, threshold))
                error, _, seconds = results[-1]
                print(
                    f'{number} of {len(goals)}: {1000.0 * error:.1f} mm, {seconds:.2f} s',
                    file=sys.stderr,
                    flush=True,
                )
            return results
        finally:
            if client is not None:
                client.close()
            context.try_shutdown()


class _Watch:
    """Where the tool is, by the simulator's word."""

    def __init__(self, client: GoalClient) -> None:
        self._client = client
        self._way: deque[tuple[float, NDArray[np.float64]]] = deque(maxlen=int(2 * RATE))
        client.node.create_subscription(PoseStamped, 'tool_pose', self._take, 10)

    def follow(self, goal: NDArray[np.float64], threshold: float) -> tuple[float, float, float]:
        """Send a goal and watch what comes of it, as ``reach_goals`` returns it."""
        self._client.go_to(goal)
        start = time.monotonic()
        arrived = np.inf
        while (now := time.monotonic()) < start + min(TIMEOUT, arrived + SETTLE):
            self._client.spin(0.01)
            if self._way and arrived == np.inf:
                if np.linalg.norm(self._way[-1][1] - goal) <= threshold:
                    arrived = now - start
        if not self._way:
            raise ArmError('sim_node tells no tool_pose')
        last = np.array([place for told, place in self._way if told > now - 1.0])
        if len(last) < RATE / 2:
            raise ArmError(
                f'{RATE:.0f} poses of the tool are expected in a second, got {len(last)}'
            )
        motion = float(np.linalg.norm(last.max(axis=0) - last.min(axis=0)))
        return float(np.linalg.norm(last[-1] - goal)), motion, arrived

    def _take(self, message: PoseStamped) -> None:
        place = message.pose.position
        self._way.append((time.monotonic(), np.array([place.x, place.y, place.z])))
