"""Plants that are drawn from a seed: each drawn quantity, judged by what the arm does."""

import dataclasses

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.randomisation import Randomisation
from mher_ros.robots.robot import arm_names, load_robot
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.transport import Channel
import mujoco
import numpy as np
import pytest

ROBOTS = arm_names()
NOMINAL = Randomisation().scaled(0.0)


def drawn(robot='ur5e', seed=0, **ranges):
    """Return an arm for which only these values are drawn."""
    ends = {
        name: value if isinstance(value, tuple) else (value, value)
        for name, value in ranges.items()
    }
    robot = dataclasses.replace(
        load_robot(robot), randomisation=dataclasses.replace(NOMINAL, **ends)
    )
    arm = simulated_robot(robot, randomise=1.0)
    arm.reset(seed)
    return arm


def truth(arm):
    """Return true positions and velocities of the commanded joints (k,)."""
    chosen = [arm.joint_names.index(name) for name in arm.command_names]
    positions, velocities = arm._plant.joint_state()
    return positions[chosen], velocities[chosen]


def motion(arm, steps=60, size=0.2):
    """Return the true positions (steps, k) after a step of all set-points [rad]."""
    target, places = truth(arm)[0] + size, []
    for _ in range(steps):
        arm.advance(target)
        places.append(truth(arm)[0])
    return np.array(places)


def observations(task, seed, steps=10):
    """Return the observations of an episode (steps + 1, n)."""
    rng = np.random.default_rng(seed)
    seen = [task.reset(seed=seed)[0]['observation']]
    for _ in range(steps):
        action = rng.uniform(-1.0, 1.0, task.action_space.shape)
        seen.append(task.step(action)[0]['observation'])
    return np.array(seen)


@pytest.mark.parametrize('robot', ROBOTS)
def test_a_plant_depends_on_its_seed_only(robot):
    options = ReachOptions(50, 0.05, robot=robot, randomise=1.0)
    one, other = Reach(options), Reach(options)
    observations(one, 3)  # other episodes before change nothing
    first = observations(one, 1)
    np.testing.assert_array_equal(first, observations(other, 1))
    assert (first != observations(other, 2)).any(axis=0).all()


@pytest.mark.parametrize('robot', ROBOTS)
def test_a_factor_of_0_is_the_plant_without_draws_to_the_bit(robot):
    fixed = Reach(ReachOptions(50, 0.05, robot=robot))
    draws = Reach(ReachOptions(50, 0.05, robot=robot, randomise=1.0))
    arm = simulated_robot(load_robot(robot))
    assert fixed._plant.draw is None
    assert draws._plant.draw is None  # before the first reset
    for seed in (1, 2):
        np.testing.assert_array_equal(
            fixed.reset(seed=seed)[0]['desired_goal'], draws.reset(seed=seed)[0]['desired_goal']
        )
    # A draw of nominal values restores what another draw has changed.
    wild = drawn(robot, stiffness=1.5, damping=0.6, friction=1.0, link_error=0.01)
    motion(wild, 5)
    wild._ranges = NOMINAL
    wild.reset(1)
    np.testing.assert_array_equal(motion(wild), motion(arm))
    assert wild.description('any') == arm.description('any')


@pytest.mark.parametrize('periods', [0, 1, 2])
def test_a_delayed_command_moves_the_arm_so_many_periods_later(periods):
    start, usual = truth(drawn())[0], motion(drawn())
    late = motion(drawn(command_delay=0.01 * periods))
    np.testing.assert_allclose(late[:periods], np.tile(start, (periods, 1)), atol=1e-9)
    np.testing.assert_allclose(late[periods:], usual[: len(usual) - periods], atol=1e-9)
    assert np.abs(usual[0] - start).min() > 1e-5


@pytest.mark.parametrize('periods', [0, 1, 2])
def test_a_delayed_state_shows_where_the_arm_was_so_many_periods_ago(periods):
    arm = drawn(state_delay=0.01 * periods)
    true = [truth(arm)[0]]
    target = true[0] + 0.2
    for step in range(20):
        arm.advance(target)
        true.append(truth(arm)[0])
        seen = arm.joint_state()[0][[arm.joint_names.index(name) for name in arm.command_names]]
        np.testing.assert_array_equal(seen, true[max(0, step + 1 - periods)])


def test_every_delay_in_the_range_is_drawn():
    arm = drawn(command_delay=(0.0, 0.02), state_delay=(0.01, 0.02))
    seen = set()
    for seed in range(40):
        arm.reset(seed)
        seen.add((arm.draw.command_delay, arm.draw.state_delay))
    assert seen == {(one, other) for one in (0, 1, 2) for other in (1, 2)}


def test_stiff_drives_with_little_damping_arrive_earlier():
    def periods(**gains):
        arm = drawn(**gains)
        target = truth(arm)[0] + 0.2
        places = motion(arm, 300)
        np.testing.assert_allclose(places[-1], target, atol=1e-4)  # no other end
        return int((np.abs(places - target).max(axis=1) > 0.002).sum())

    quick, usual, slow = (
        periods(stiffness=1.1, damping=0.75),
        periods(),
        periods(stiffness=0.9, damping=1.5),
    )
    assert quick < usual - 5
    assert usual + 5 < slow


def test_the_drives_overcome_friction():
    def force(friction):
        arm = drawn('panda', friction=friction)
        start = truth(arm)[0]
        for step in range(100):
            arm.advance(start + 0.003 * step)  # a slow motion
        return arm.data.actuator_force.copy()

    np.testing.assert_allclose(force(2.0) - force(0.0), 2.0, atol=0.3)


@pytest.mark.parametrize('robot', ROBOTS)
def test_the_drives_carry_a_payload_that_they_do_not_know(robot):
    mass = 0.2 if robot == 'so101' else 2.0  # a heavy one moves this arm far
    light, heavy = drawn(robot), drawn(robot, payload=mass)
    for arm in (light, heavy):
        for _ in range(300):
            arm.advance(None)
    model, data = heavy.model, heavy.data
    jacobian = np.zeros((3, model.nv))
    body = model.body('payload').id
    mujoco.mj_jacBody(model, data, jacobian, None, body)
    weight = jacobian.T @ (0.0, 0.0, mass * 9.81)
    np.testing.assert_allclose(
        data.qfrc_actuator - light.data.qfrc_actuator, weight, atol=0.1 * mass
    )
    sag = light.tool_pose()[0][2] - heavy.tool_pose()[0][2]
    assert 1e-5 < sag < 0.05


@pytest.mark.parametrize('robot', ROBOTS)
def test_with_link_errors_the_tool_is_not_where_the_urdf_has_it(robot):
    arm = drawn(robot, link_error=0.003)
    plain = simulated_robot(load_robot(robot))
    assert arm.description('any') == plain.description('any')
    nominal = ArmModel(load_robot(robot), arm.description('any'))
    chosen = [arm.joint_names.index(name) for name in nominal.state_names]
    errors = []
    for size in (0.0, 0.5):
        for _ in range(100):
            arm.advance(np.clip(truth(plain)[0] + size, nominal.lower, nominal.upper))
        position, orientation = nominal.tool_pose(arm.joint_state()[0][chosen])
        true, turned = arm.tool_pose()
        assert abs(turned @ orientation) == pytest.approx(1.0, abs=1e-9)
        errors.append(true - position)
    largest = 0.003 * np.sqrt(3.0) * (len(arm.command_names) + 1)
    assert 5e-4 < np.linalg.norm(errors, axis=1).min()
    assert np.linalg.norm(errors, axis=1).max() < largest
    assert np.abs(errors[0] - errors[1]).max() > 1e-4  # no constant offset
    # The arm that MuJoCo simulates is the one with the errors.
    file = load_robot(robot)
    if not file.simulation_task:
        body = arm.data.body(file.tool_frame)
        offset = body.xmat.reshape(3, 3) @ file.tool_offset
        np.testing.assert_allclose(arm.tool_pose()[0], body.xpos + offset, atol=1e-12)


def test_noise_is_within_its_bounds_and_has_no_mean():
    arm = drawn(position_noise=0.001, velocity_noise=0.05)
    errors = []
    for _ in range(500):
        arm.advance(None)
        errors.append(np.array(arm.joint_state()) - arm._plant.joint_state())
    errors = np.array(errors)
    largest = np.abs(errors).max(axis=(0, 2))
    assert (largest < (0.001, 0.05)).all()
    assert (largest > (0.0009, 0.045)).all()
    assert np.abs(errors.mean(axis=0)).max(axis=1) == pytest.approx((0.0, 0.0), abs=0.01)
    # Reading the state again measures nothing new.
    np.testing.assert_array_equal(arm.joint_state(), arm.joint_state())


def test_encoders_have_steps():
    arm = drawn(quantisation=0.01)
    places = []
    for size in np.linspace(0.0, 0.3, 30):
        arm.advance(truth(arm)[0] + size)
        places.append(arm.joint_state()[0])
        np.testing.assert_allclose(places[-1], arm._plant.joint_state()[0], atol=0.005 + 1e-12)
    steps = np.array(places) / 0.01
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)


def test_a_lost_state_leaves_the_one_before():
    arm, lost = drawn(lost_states=0.25), 0
    before = arm.joint_state()
    for _ in range(400):
        arm.advance(truth(arm)[0] + 0.1)
        now = arm.joint_state()
        assert np.array_equal(now, before) != arm.has_new_state
        lost += not arm.has_new_state
        before = now
    assert 60 < lost < 140


@pytest.mark.parametrize('controller', ['joint_position', 'joint_velocity'])
def test_a_lost_command_leaves_the_one_before(controller):
    arm = drawn(lost_commands=0.25)
    arm.controller = controller
    executed = []
    arm._plant.advance = arm._plant.advance_at = lambda asked: executed.append(asked[0])
    start = truth(arm)[0]
    for step in range(400):
        arm.advance(start + step)
    # Each command is the one of this period, or the one that was executed in the last period.
    sent = start[0] + np.arange(400.0)
    fresh = np.array(executed) == sent
    assert 60 < (~fresh).sum() < 140
    for step in np.flatnonzero(~fresh)[1:]:
        assert executed[step] == executed[step - 1]


def test_a_channel_without_delay_and_losses_passes_on_what_it_gets():
    channel, rng = Channel('first'), np.random.default_rng(0)
    assert [channel.send(value, rng) for value in 'abc'] == ['a', 'b', 'c']
    channel = Channel('first', delay=2)
    assert [channel.send(value, rng) for value in 'abc'] == ['first', 'first', 'a']


def test_ranges_are_scaled_about_the_nominal_values():
    half = Randomisation().scaled(0.5)
    assert half.stiffness == pytest.approx((0.95, 1.05))
    assert half.damping == pytest.approx((0.875, 1.25))
    assert half.payload == (0.0, 0.25)
    assert half.command_delay == (0.0, 0.01)
    assert NOMINAL.stiffness == NOMINAL.damping == (1.0, 1.0)
    assert NOMINAL.delay == 0.0


@pytest.mark.parametrize(
    ('delays', 'factor', 'count'),
    [
        ((0.0, 0.02), 0.0, 0),
        ((0.0, 0.0), 1.0, 0),
        ((0.0, 0.02), 1.0, 1),
        ((0.0, 0.02), 2.0, 2),
        ((0.0, 0.03), 1.0, 2),
    ],
)
def test_the_actions_that_may_be_under_way_are_observed(tmp_path, delays, factor, count):
    path = tmp_path / 'late.yaml'
    text = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    ranges = f'{{command_delay: {list(delays)}, state_delay: {list(delays)}}}'
    path.write_text(f'{text}\nrandomise: {ranges}\n')
    options = ReachOptions(50, 0.05, robot=str(path), randomise=factor, control_period=0.04)
    task = Reach(options)
    names = [field.name for field in task.interface.observation]
    assert sum(name.startswith('previous_') for name in names) == 6 * count
    assert len(names) == 15 + 6 * count
    assert task.interface.previous_actions == count
    seen = [task.reset(seed=0)[0]['observation'][15:]]
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 6)).astype(np.float32)
    seen += [task.step(action)[0]['observation'][15:] for action in actions]
    for step, entries in enumerate(seen):
        past = [np.zeros(6)] * count + list(actions[:step])
        np.testing.assert_array_equal(entries, np.array(past[::-1][:count]).ravel())
    assert not task.reset(seed=1)[0]['observation'][15:].any()


@pytest.mark.parametrize('robot', ROBOTS)
def test_the_hardest_plants_follow_random_actions_without_contacts(robot):
    task = Reach(ReachOptions(50, 0.05, robot=robot, randomise=2.0))
    for seed in range(3):
        seen = observations(task, seed, 30)
        assert np.isfinite(seen).all()
        assert task._plant.contacts().number == 0
        assert np.ptp(seen, axis=0).max() > 0.05
