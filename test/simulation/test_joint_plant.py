"""The joint-level arms against the tasks they come from and the limits their makers tell."""

from mher_ros.options import OptionError
from mher_ros.simulation.arms import ARMS
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.tasks import make
import numpy as np
import pytest


@pytest.fixture(params=ARMS)
def task(request):
    return request.param


@pytest.fixture
def plant(task):
    return JointPlant(task)


def limits(task, name):
    return np.array([getattr(joint, name) for joint in ARMS[task].joints.values()])


def arm_positions(plant):
    """Return the positions (7,) of the commanded joints."""
    by_name = dict(zip(plant.joint_names, plant.joint_state()[0], strict=True))
    return np.array([by_name[name] for name in plant.command_names])


def moves(plant, task, count=10, reach=0.4):
    """Yield set-points inside the joints' ranges, where the arm touches nothing on its way."""
    rng, start = np.random.default_rng(0), arm_positions(plant)
    for _ in range(count):
        offset = rng.uniform(-reach, reach, start.size)
        if task == 'fetch_reach':  # away from the table
            offset[[1, 3]] = -np.abs(offset[[1, 3]])
        yield np.clip(start + offset, limits(task, 'lower'), limits(task, 'upper'))


def test_joints_are_the_tasks_and_commands_the_seven_of_the_arm(plant, task):
    assert plant.joint_names == make(task).joint_names
    assert set(plant.command_names) < set(plant.joint_names)
    assert len(plant.command_names) == plant.model.nv == plant.model.nu == 7
    assert plant.model.neq == 0
    moved = plant.model.body_mocapid >= 0
    assert not plant.model.body_contype[moved].any()  # empty places for obstacles


def test_bodies_that_are_lighter_on_the_robot_are_lighter_here(plant, task):
    model = make(task).model
    for name, mass in ARMS[task].masses.items():
        body, heavy = plant.model.body(name), model.body(name)
        assert body.mass == pytest.approx(mass)
        np.testing.assert_allclose(body.inertia, heavy.inertia * mass / heavy.mass)


def test_it_starts_where_the_task_does_at_rest(plant, task):
    env = make(task)
    env.reset(seed=0)
    positions, velocities = plant.joint_state()
    np.testing.assert_array_equal(positions, env.joint_state()[0])
    np.testing.assert_array_equal(velocities, 0.0)
    np.testing.assert_allclose(plant.tool_pose()[0], env.tool_pose()[0], atol=1e-9)


def test_tool_is_where_the_tasks_kinematics_see_it(plant, task):
    env = make(task)
    env.reset(seed=0)
    for command in moves(plant, task):
        for _ in range(20):
            plant.advance(command)
        positions, velocities = plant.joint_state()
        seen = env.observe(positions, velocities)['achieved_goal']
        np.testing.assert_allclose(plant.tool_pose()[0], seen, atol=1e-9)
        # Bodies are shown where the joints say, not where they were a step before.
        drawn = plant.data.body('hand' if task == 'sawyer_reach' else 'robot0:gripper_link').xpos
        assert np.linalg.norm(drawn - plant.tool_pose()[0]) == pytest.approx(
            0.0 if task == 'sawyer_reach' else 0.02, abs=1e-9
        )


def test_it_holds_still_under_gravity(plant):
    start = plant.joint_state()[0]
    assert np.abs(plant.data.qfrc_bias).max() > 1.0  # there is gravity to hold against
    for _ in range(round(10.0 / plant.period)):
        plant.advance(None)
    np.testing.assert_allclose(plant.joint_state()[0], start, atol=1e-9)
    # The weight counts towards the drives' limits.
    np.testing.assert_allclose(plant.data.qfrc_actuator, plant.data.qfrc_bias, atol=1e-6)


def test_joints_that_are_not_the_arms_never_move(plant, task):
    still = [name not in plant.command_names for name in plant.joint_names]
    start = plant.joint_state()[0]
    for command in moves(plant, task, count=3):
        for _ in range(50):
            plant.advance(command)
            positions, velocities = plant.joint_state()
            np.testing.assert_array_equal(positions[still], start[still])
            np.testing.assert_array_equal(velocities[still], 0.0)


def test_neither_velocity_nor_force_exceeds_its_limit(plant, task):
    fastest, strongest = np.zeros(7), np.zeros(7)
    for command in moves(plant, task, reach=1.0 if task == 'sawyer_reach' else 0.6):
        plant.reset()
        for _ in range(150):
            plant.advance(command)
            assert plant.data.ncon == 0, 'the arm is pushed by what it touches'
            fastest = np.maximum(fastest, np.abs(plant.data.qvel))
            strongest = np.maximum(strongest, np.abs(plant.data.qfrc_actuator))
    assert np.all(fastest <= limits(task, 'velocity'))
    assert np.any(fastest > 0.9 * limits(task, 'velocity')), 'no joint was asked for its limit'
    assert np.all(strongest <= limits(task, 'effort'))


def test_force_stays_within_its_limit_even_when_the_arm_is_stuck(plant, task):
    plant.model.dof_damping[:] = 1e5
    (command,) = moves(plant, task, count=1)
    for _ in range(50):
        plant.advance(command)
        assert np.all(np.abs(plant.data.qfrc_actuator) <= limits(task, 'effort') * (1 + 1e-12))


def test_set_point_within_the_ranges_is_reached_and_kept(plant, task):
    for command in moves(plant, task, count=4):
        for _ in range(300):
            plant.advance(command)
        np.testing.assert_allclose(arm_positions(plant), command, atol=1e-4)
        for _ in range(20):
            plant.advance(None)
        np.testing.assert_allclose(arm_positions(plant), command, atol=1e-4)


def test_it_brakes_in_time(plant, task):
    for command in moves(plant, task, count=5):
        plant.reset()
        way = np.sign(command - arm_positions(plant))
        for _ in range(200):
            plant.advance(command)
            assert np.all(way * (arm_positions(plant) - command) < 5e-3)


def test_last_set_point_stays_in_force_without_a_new_one(task):
    kept, repeated = JointPlant(task), JointPlant(task)
    (command,) = moves(kept, task, count=1)
    kept.advance(command)
    repeated.advance(command)
    for _ in range(30):
        kept.advance(None)
        repeated.advance(command)
    np.testing.assert_array_equal(kept.joint_state(), repeated.joint_state())
    assert np.abs(arm_positions(kept) - command).max() < 0.4


def test_set_points_beyond_a_joints_range_are_cut(plant, task):
    upper = limits(task, 'upper')
    joint = int(np.flatnonzero(np.isfinite(upper))[-1])
    command = arm_positions(plant)
    command[joint] = upper[joint] + 1.0
    for _ in range(600):
        plant.advance(command)
    assert arm_positions(plant)[joint] == pytest.approx(upper[joint], abs=1e-3)


def test_one_advance_is_one_period(plant):
    assert plant.period == 0.01
    before = plant.data.time
    plant.advance(None)
    assert plant.data.time - before == pytest.approx(plant.period)


def test_reset_leaves_nothing_of_the_past(task):
    used, fresh = JointPlant(task), JointPlant(task)
    commands = list(moves(used, task, count=3))
    for _ in range(30):
        used.advance(commands[0])
    used.reset(seed=3)
    for command in (None, *commands):
        used.advance(command)
        fresh.advance(command)
        np.testing.assert_array_equal(used.joint_state(), fresh.joint_state())
        np.testing.assert_array_equal(used.data.xpos, fresh.data.xpos)
    assert used.data.time == fresh.data.time


@pytest.mark.parametrize(
    'command', [np.zeros(6), np.zeros((1, 7)), np.full(7, np.nan), np.full(7, np.inf), 0.0]
)
def test_command_that_is_not_seven_numbers_is_refused(task, command):
    plant = JointPlant(task)
    with pytest.raises(ValueError, match=r'7 finite joint positions .*, got'):
        plant.advance(command)
    start = plant.joint_state()[0]
    plant.advance(None)
    np.testing.assert_allclose(plant.joint_state()[0], start, atol=1e-12)


def test_task_without_such_an_arm_is_refused():
    with pytest.raises(OptionError, match="fetch_reach, sawyer_reach; got 'reacher'"):
        JointPlant('reacher')


def test_makers_position_limits_are_those_of_the_model_but_for_one_that_the_task_narrows(task):
    model, differ = make(task).model, []
    for name, limit in ARMS[task].joints.items():
        joint = model.joint(name if task == 'sawyer_reach' else f'robot0:{name}')
        limited = model.jnt_limited[joint.id]
        assert limited == np.isfinite(limit.upper)
        if limited and tuple(joint.range) != (limit.lower, limit.upper):
            differ.append(name)
    assert differ == (['right_j1'] if task == 'sawyer_reach' else [])
