"""Forward kinematics of a tool against MuJoCo's own."""

from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.tasks import make
import mujoco
import numpy as np
import pytest

TOOLS = {'fetch_reach': {'site': 'robot0:grip'}, 'sawyer_reach': {'body': 'hand'}}


@pytest.fixture(params=TOOLS)
def arm(request):
    """Return a simulated arm and how its tool is named."""
    return make(request.param), TOOLS[request.param]


def random_configurations(model, count=100):
    """Return joint positions (count, nq) all over the place, and velocities (count, nv)."""
    rng = np.random.default_rng(0)
    positions = np.tile(model.qpos0, (count, 1))
    for row in positions:
        mujoco.mj_integratePos(model, row, rng.normal(size=model.nv), 1.0)
    return positions, rng.normal(size=(count, model.nv))


def tool_of(data, tool):
    return data.site(tool['site']).xpos if 'site' in tool else data.body(tool['body']).xpos


def test_position_is_that_of_the_whole_simulation(arm):
    task, tool = arm
    kinematics, data = ToolKinematics(task.model, **tool), mujoco.MjData(task.model)
    for positions in random_configurations(task.model)[0]:
        data.qpos[:] = positions
        mujoco.mj_forward(task.model, data)
        np.testing.assert_allclose(kinematics.position(positions), tool_of(data, tool), atol=1e-12)


def test_velocity_is_the_change_of_the_position(arm):
    task, tool = arm
    kinematics, step = ToolKinematics(task.model, **tool), 1e-6
    for positions, velocities in zip(*random_configurations(task.model), strict=True):
        ahead, behind = positions.copy(), positions.copy()
        mujoco.mj_integratePos(task.model, ahead, velocities, step)
        mujoco.mj_integratePos(task.model, behind, velocities, -step)
        change = kinematics.position(ahead) - kinematics.position(behind)
        position, velocity = kinematics.position_and_velocity(positions, velocities)
        np.testing.assert_allclose(velocity, change / (2 * step), atol=1e-6)
        np.testing.assert_array_equal(position, kinematics.position(positions))


def test_answer_does_not_depend_on_earlier_questions(arm):
    task, tool = arm
    asked, fresh = ToolKinematics(task.model, **tool), ToolKinematics(task.model, **tool)
    positions, velocities = random_configurations(task.model, 2)
    first = asked.position_and_velocity(positions[0], velocities[0])
    kept = [part.copy() for part in first]
    asked.position_and_velocity(positions[1], velocities[1])
    np.testing.assert_array_equal(first, kept)
    for again in (asked, fresh):
        np.testing.assert_array_equal(
            again.position_and_velocity(positions[0], velocities[0]), kept
        )


def test_running_simulation_is_not_disturbed(arm):
    task, tool = arm
    model, kinematics = task.model, ToolKinematics(task.model, **tool)
    positions, velocities = random_configurations(model, 50)
    runs = []
    for ask in (False, True):
        data = mujoco.MjData(model)
        data.qpos[:] = task.data.qpos
        states = []
        for asked in zip(positions, velocities, strict=True):
            if ask:
                kinematics.position_and_velocity(*asked)
            mujoco.mj_step(model, data)
            states.append(np.concatenate((data.qpos, data.qvel, data.xpos.ravel())))
        runs.append(states)
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize('tool', [{}, {'site': 'robot0:grip', 'body': 'robot0:gripper_link'}])
def test_tool_is_either_a_site_or_a_body(tool):
    with pytest.raises(ValueError, match='either a site or a body'):
        ToolKinematics(make('fetch_reach').model, **tool)


def test_unknown_tool_is_refused_by_name():
    with pytest.raises(KeyError, match='gripper'):
        ToolKinematics(make('fetch_reach').model, site='gripper')


@pytest.mark.parametrize('shape', [(), (0,), (1,), (3,), (1, 15)])
def test_wrong_number_of_joints_is_refused(shape):
    model = make('fetch_reach').model
    kinematics = ToolKinematics(model, site='robot0:grip')
    with pytest.raises(ValueError, match=f'expected {model.nq} joint positions, got .* shape'):
        kinematics.position(np.zeros(shape))
    with pytest.raises(ValueError, match=f'expected {model.nv} joint velocities, got .* shape'):
        kinematics.position_and_velocity(np.zeros(model.nq), np.zeros(shape))
