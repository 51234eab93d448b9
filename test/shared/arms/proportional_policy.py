"""
A policy that nobody had to train: it goes straight to the goal, slower as it gets near.

As a file it is like any other, sealed and with a contract, so it can be deployed. onnx writes it
at once; torch is not needed.
"""

from pathlib import Path

from mher_ros.policy import Contract
from mher_ros.policy.contract import CONTRACT_KEY
from mher_ros.policy.onnx_policy import BLANK, load, PRODUCER, seal, SEAL_KEY
from mher_ros.tasks import make
import numpy as np
import onnx
from onnx import helper, numpy_helper, TensorProto

GAIN = 0.4
"""Part of the way to the goal that one action covers, if that is within its scale."""


def write_proportional_policy(path, task='fetch_reach', options=None):
    """Write a policy for a task whose actions displace what its goals place; return ``path``."""
    env = make(task, options)
    interface = env.interface
    weights = _joint_weights(env) if interface.moves_joints else _tool_weights(interface)
    env.close()
    path = Path(path)
    contract = Contract(interface, {'algorithm': 'proportional', 'gain': GAIN})
    path.write_bytes(_sealed(_graph(interface, weights), contract))
    load(path)
    return path


def _tool_weights(interface):
    """Return weights (k, m); what is no axis of the goal (a gripper) stays at 0."""
    weights = np.zeros((len(interface.action), len(interface.goal)), np.float32)
    for axis, field in enumerate(interface.action[: len(interface.goal)]):
        weights[axis, axis] = GAIN / field.scale
    return weights


def _joint_weights(env):
    """Return weights (k, m): the inverse kinematics of the arm around its initial posture."""

    def place(posture):  # where the tool is seen, as a policy that was learnt there knows it
        return env.tracker.true_positions(posture[None])[0] if env.tracker else tool(posture)

    tool = env.arm.tool_position
    env.reset(seed=0)
    positions, _ = env.joint_state()
    here, step = place(positions), 1e-6
    columns = []
    for joint in range(len(env.interface.action)):
        there = positions.copy()
        there[joint] += step
        columns.append((place(there) - here) / step)
    scales = np.array([field.scale for field in env.interface.action])
    weights = np.zeros((len(scales), len(env.interface.goal)), np.float32)  # 0: an orientation
    weights[:, :3] = GAIN * np.linalg.pinv(np.array(columns).T) / scales[:, None]
    return weights


def _graph(interface, weights):
    """Return the graph of a = clip(W (goal - achieved), -1, 1), with weights W (k, m)."""
    n, m, k = (len(part) for part in (interface.observation, interface.goal, interface.action))
    first, last = interface.achieved_index[0], interface.achieved_index[-1]
    constants = {
        'first': np.array([first], np.int64),
        'end': np.array([last + 1], np.int64),
        'one': np.array([1], np.int64),
        'weights': weights,
        'least': np.float32(-1.0),
        'most': np.float32(1.0),
    }
    nodes = [
        helper.make_node('Slice', ['observation', 'first', 'end', 'one', 'one'], ['achieved']),
        helper.make_node('Sub', ['desired_goal', 'achieved'], ['gap']),
        helper.make_node('Gemm', ['gap', 'weights'], ['wanted'], alpha=1.0, beta=1.0, transB=1),
        helper.make_node('Clip', ['wanted', 'least', 'most'], ['action']),
    ]

    def vector(name, size):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ['batch', size])

    return helper.make_graph(
        nodes,
        'proportional',
        [vector('observation', n), vector('desired_goal', m)],
        [vector('action', k)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )


def _sealed(graph, contract):
    model = helper.make_model(
        graph,
        producer_name=PRODUCER,
        opset_imports=[helper.make_opsetid('', 18)],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    for key, value in ((CONTRACT_KEY, contract.to_json()), (SEAL_KEY, BLANK)):
        model.metadata_props.add(key=key, value=value)
    return seal(model.SerializeToString(deterministic=True))
