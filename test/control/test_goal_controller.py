"""A policy leads an arm to its goal, and stops it once whenever there is a reason to."""

from command_path_arm import CommandPathArm, joint_velocities, proportional, SECOND, TICK
from mher_ros.control.filter.motion_qp import MotionError, MotionQP
from mher_ros.control.safety_monitor import SafetyOptions, Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.robots.workspace import GoalError
import numpy as np
import pytest

OUTPUTS = ('twist', 'pose', 'joint_trajectory', 'joint_position', 'joint_velocity')
NAN = float('nan')


def moving(output, **options):
    """Return an arm on its way to a goal."""
    arm = CommandPathArm(output, **options)
    arm.start()
    assert all(command is not None and not command.is_stop for command in arm.run(20))
    assert np.linalg.norm(arm.last_command.tool_velocity) > 0.05
    return arm


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize(
    ('name', 'task'), [('fetch', None), ('sawyer', None), ('panda', 'fetch_reach')]
)
def test_the_tool_comes_to_its_goal_and_stays_there(output, name, task):
    arm = CommandPathArm(output, name, task)
    arm.start()
    arm.run(400)
    assert arm.controller.reached
    assert arm.controller.distance < 0.005
    stay = arm.tool
    arm.run(50)
    np.testing.assert_allclose(arm.tool, stay, atol=1e-3)
    assert arm.monitor.status is Status.RUNNING


def spoiled(arm):
    arm.pass_time(TICK)
    positions = arm.positions.copy()
    positions[2] = NAN
    arm.send_state(positions)


def silent(arm):
    for _ in range(25):
        arm.pass_time(TICK)
        arm.answer()


def unreadable(arm):
    arm.pass_time(TICK)
    arm.path.monitor.take_bad_state(arm.now, 'elbow is missing')


def outside_limits(arm):
    arm.pass_time(TICK)
    arm.positions[1] = arm.model.upper[1] + 0.06
    arm.send_state()


def jumped(arm):
    arm.positions[0] += 0.5
    arm.tick()


def clock_back(arm):
    arm.stamp -= 5 * SECOND
    arm.tick()


def stopped(arm):
    arm.monitor.stop('a person')
    return arm.brake()


def halted(arm):
    arm.monitor.drop_goal('deactivated')


def not_finite(arm):
    arm.policy = lambda *_: np.full(4, NAN, np.float32)
    arm.run(5)


def old_goal(arm):
    arm.path._safety = arm.monitor._options = SafetyOptions(goal_timeout=0.1)
    arm.run(10)


REASONS = {
    spoiled: Status.BAD_STATE,
    silent: Status.STALE_STATE,
    unreadable: Status.BAD_STATE,
    outside_limits: Status.OUTSIDE_LIMITS,
    jumped: Status.JOINTS_JUMPED,
    clock_back: Status.CLOCK_JUMPED,
    stopped: Status.STOPPED,
    halted: Status.NO_GOAL,
    not_finite: Status.NO_COMMAND,
    old_goal: Status.STALE_GOAL,
}


@pytest.mark.parametrize('output', ['twist', 'pose', 'joint_position', 'joint_velocity'])
@pytest.mark.parametrize('happens', REASONS, ids=lambda happens: happens.__name__)
def test_every_reason_stops_the_arm_once(output, happens):
    arm = moving(output)
    happens(arm)
    assert arm.monitor.status is REASONS[happens]
    stop = arm.brake()
    assert stop.is_stop
    assert not stop.tool_velocity.any()
    assert stop.joint_velocities is None or not stop.joint_velocities.any()
    assert sum(command.is_stop for _, command in arm.commands) == 1
    for _ in range(5):
        arm.pass_time(TICK)
        assert arm.answer() is None


def braked(arm):
    """Return the commands of a stop: velocities along the path, and positions (c, 3)."""
    first = len(arm.commands)
    direction = arm.last_command.tool_velocity / np.linalg.norm(arm.last_command.tool_velocity)
    stopped(arm)
    commands = [command for _, command in arm.commands[first - 1 :]]
    places = np.array([command.tool_position for command in commands])
    return np.array([command.tool_velocity for command in commands]) @ direction, places


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_stop_slows_the_last_command_down_to_rest(output):
    arm = moving(output)
    velocities, places = braked(arm)
    limits = arm.path.limits
    assert (np.diff(velocities) <= 1e-6).all()
    assert (np.diff(velocities) >= -limits.acceleration * TICK - 1e-6).all()
    assert velocities.min() >= -1e-6  # never backwards
    if output not in ('twist', 'joint_velocity'):
        steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        assert steps.max() <= velocities[0] * TICK + 1e-6
        assert np.linalg.norm(places[-1] - places[0]) < velocities[0] ** 2  # half at full braking


@pytest.mark.parametrize('output', OUTPUTS)
def test_no_reported_state_moves_a_stop(output):
    places = []
    for offset in (0.0, 0.1, -0.5):
        arm = moving(output)
        arm.monitor.stop('a person')
        while arm.path.is_moving:
            arm.pass_time(TICK)
            arm.send_state(arm.positions + offset, np.full(len(arm.positions), 9.0))
            arm.answer()
        last = arm.commands[-1][1]
        places.append(last.tool_position if output == 'pose' else last.joint_positions)
    if output in ('pose', 'joint_position', 'joint_trajectory'):
        np.testing.assert_allclose(places, [places[0]] * 3, atol=1e-12)


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize('pause', [0.01, 0.04, 0.08])
def test_a_goal_soon_after_a_stop_starts_from_the_last_command(output, pause):
    arm = moving(output)
    arm.monitor.stop('a person')
    arm.run(round(pause / TICK))
    before = arm.last_command
    arm.monitor.clear()
    arm.controller.take_goal(arm.now, arm.workspace.low)
    first = arm.tick()
    limits = arm.path.limits
    change = np.linalg.norm(first.tool_velocity - before.tool_velocity)
    assert change <= limits.acceleration * TICK + 1e-9
    if output in ('pose', 'joint_position'):
        step = np.linalg.norm(first.tool_position - before.tool_position)
        assert step <= limits.speed * TICK + 1e-9


@pytest.mark.parametrize('output', ['pose', 'joint_position', 'joint_velocity', 'twist'])
def test_a_motion_long_after_the_last_starts_at_rest_where_the_arm_is(output):
    arm = moving(output)
    assert stopped(arm).is_stop
    arm.monitor.clear()
    arm.last_command = None
    arm.pass_time(1.2)
    arm.positions[0] += 0.3  # somebody has moved it meanwhile
    arm.send_state()
    arm.run(30)
    arm.send_state(velocities=np.full(len(arm.positions), 5.0))
    arm.controller.take_goal(arm.now, arm.workspace.low)
    first = arm.tick()
    assert np.linalg.norm(first.tool_velocity) <= arm.path.limits.acceleration * TICK + 1e-9
    np.testing.assert_allclose(first.tool_position, arm.tool, atol=2e-3)
    if output == 'joint_position':
        np.testing.assert_allclose(first.joint_positions, arm.positions, atol=0.002)


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize('speed', [5.0, -5.0])
def test_false_velocities_at_rest_do_not_move_the_first_command(output, speed):
    arm = CommandPathArm(output)
    false = np.full(len(arm.positions), speed)
    start = arm.tool
    for _ in range(30):
        arm.pass_time(TICK)
        arm.send_state(velocities=false)
        assert arm.answer() is None
    arm.controller.take_goal(arm.now, arm.workspace.low)
    arm.pass_time(TICK)
    arm.send_state(velocities=false)
    first = arm.answer()
    most = arm.path.limits.acceleration * TICK
    assert 0.0 < np.linalg.norm(first.tool_velocity) <= most + 1e-9
    assert np.linalg.norm(first.tool_position - start) <= most * TICK + 1e-9
    if output.startswith('joint'):
        count = len(arm.model.joint_names)
        change = arm.model.acceleration_limits * TICK
        assert (np.abs(first.joint_velocities) <= change + 1e-9).all()
        step = np.abs(first.joint_positions - arm.positions[:count])
        assert (step <= change * TICK + 1e-9).all()


def push(arm, goal, distance):
    """Move the tool by hand to this distance from its goal [m]; return the direction."""
    direction = np.array((0.6, -0.8, 0.0))
    arm.last_command = None
    while np.linalg.norm(off := goal + distance * direction - arm.tool) > 1e-6:
        off /= max(1.0, np.linalg.norm(off) / 0.005)
        count = len(arm.model.joint_names)
        arm.positions[:count] += joint_velocities(arm.model, arm.positions, off)
        arm.tick()
    return direction


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
def test_at_its_goal_the_tool_rests_until_it_is_moved_by_more_than_noise(output):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(300)
    goal = arm.controller.goal
    push(arm, goal, 0.00025)
    assert not any(command.tool_velocity.any() for command in arm.run(200))
    push(arm, goal, 0.0006)
    assert any(command.tool_velocity.any() for command in arm.run(200))
    arm.run(100)
    assert arm.controller.distance < 0.00025
    assert not arm.last_command.tool_velocity.any()


@pytest.mark.parametrize(('thresholds', 'straight'), [(1.3, True), (1.8, False)])
def test_a_tool_that_was_at_its_goal_returns_without_the_policy_unless_it_is_far(
    thresholds, straight
):
    arm = CommandPathArm('twist')
    arm.start()
    arm.run(300)
    goal = arm.controller.goal
    assert arm.controller.reached
    arm.policy = lambda *_: np.array((0, 0, 1, 0), np.float32)  # up, not to the goal
    arm.monitor.drop_goal('a test')
    direction = push(arm, goal, thresholds * arm.controller.threshold)
    arm.run(150)
    arm.controller.take_goal(arm.now, goal)
    arm.run(10)
    velocity = arm.last_command.tool_velocity
    to_goal = -velocity @ direction / np.linalg.norm(velocity)
    assert to_goal > 0.99 if straight else abs(to_goal) < 0.5


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize('name', ['fetch', 'ur5e'])
def test_close_to_its_goal_the_tool_rests(output, name):
    """A policy that circles its goal, within its threshold, does not keep the arm moving."""
    turns = np.random.default_rng(4)
    arm = CommandPathArm(output, name, 'fetch_reach')
    free = arm.policy

    def circling(observation, goal):
        action = free(observation, goal)
        action[:3] += turns.uniform(-0.5, 0.5, 3)
        return action

    arm.policy = circling
    arm.start(arm.workspace.low + 0.4 * (arm.workspace.high - arm.workspace.low))
    arm.run(500)
    assert arm.controller.distance < 5e-4
    before = arm.tool
    arm.run(100)
    np.testing.assert_allclose(arm.tool, before, atol=1e-5)


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_stuck_arm_is_noticed_and_its_point_does_not_run_away(output):
    arm = moving(output)
    arm.is_stuck = True
    low, high = arm.workspace.low, arm.workspace.high
    arm.controller.take_goal(arm.now, np.where(arm.tool > (low + high) / 2, low, high))
    farthest = 0.0
    for _ in range(300):
        command = arm.tick()
        if arm.monitor.status is not Status.RUNNING:
            break
        farthest = max(farthest, np.linalg.norm(command.tool_position - arm.tool))
    assert arm.monitor.status is Status.NOT_FOLLOWING
    assert arm.brake().is_stop
    assert farthest < 2.0 * SafetyOptions().max_following_error + 1e-6
    assert arm.controller.goal is None


def test_commands_that_follow_each_other_fast_come_to_the_goal_as_well():
    arm = CommandPathArm('joint_position', command_rate=500.0)
    random, space = np.random.default_rng(11), arm.workspace
    arm.send_state()
    for _ in range(4):
        arm.controller.take_goal(arm.now, random.uniform(space.low, space.high))
        arm.run(3000, 0.002)
        assert arm.controller.distance < 5e-4


def test_without_an_output_nothing_follows_and_nobody_minds():
    arm = CommandPathArm('none')
    arm.start()
    start = arm.tool
    commands = arm.run(300)
    assert arm.monitor.status is Status.RUNNING
    np.testing.assert_array_equal(arm.tool, start)
    np.testing.assert_allclose(commands[-1].tool_position, arm.controller.goal, atol=1e-3)
    assert not arm.controller.reached


@pytest.mark.parametrize('output', ['twist', 'joint_position'])
@pytest.mark.parametrize('action', [(NAN, 0, 0, 0), (0, float('inf'), 0, 0), (0, 0, -1e39, 0)])
def test_a_policy_that_says_no_numbers_moves_nothing_until_a_new_goal(output, action):
    arm = CommandPathArm(output)
    with np.errstate(over='ignore'):
        said = np.array(action, np.float32)
    arm.policy = lambda *_: said
    arm.start()
    answers = [answer for answer in arm.run(50) if answer is not None]
    assert all(answer.is_stop for answer in answers)
    assert arm.monitor.status is Status.NO_COMMAND
    assert 'finite' in arm.monitor.reason
    arm.policy = proportional(arm.interface)
    assert arm.run(10) == [None] * 10
    arm.start()
    assert not arm.tick().is_stop


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
def test_joints_that_find_no_way_stop_the_arm(output, monkeypatch):
    arm = moving(output)

    def no_way(*_):
        raise MotionError('no motion of the joints')

    monkeypatch.setattr(MotionQP, 'move', no_way)
    arm.tick()
    assert arm.monitor.status is Status.NO_COMMAND
    assert 'no motion of the joints' in arm.monitor.reason
    assert arm.brake().is_stop
    assert arm.run(5) == [None] * 5


def test_a_latched_stop_outlasts_goals_and_restarts():
    arm = moving('twist')
    stopped(arm)
    for _ in range(2):
        arm.send_state()
        with pytest.raises(GoalError, match='a person'):
            arm.controller.take_goal(arm.now, arm.workspace.low)
        arm.path.restart()
        assert arm.run(5) == [None] * 5
    arm.monitor.clear()
    assert arm.run(5) == [None] * 5
    arm.start()
    assert not arm.tick().is_stop


def test_a_stop_from_before_is_one_from_the_start():
    latch = StopLatch()
    latch.set('an earlier one')
    arm = CommandPathArm('twist', latch=latch)
    arm.send_state()
    with pytest.raises(GoalError, match='an earlier one'):
        arm.controller.take_goal(arm.now, arm.workspace.low)


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
def test_who_gives_up_braking_leaves_no_velocity(output):
    arm = moving(output)
    last = arm.path.give_up()
    assert last.is_stop
    assert not last.tool_velocity.any()
    assert last.joint_velocities is None or not last.joint_velocities.any()
    assert not arm.path.is_moving
    assert arm.path.give_up() is None


@pytest.mark.parametrize('output', ['pose', 'joint_position'])
def test_an_arm_that_is_told_places_stays_at_the_last_when_braking_is_given_up(output):
    assert moving(output).path.give_up() is None


@pytest.mark.parametrize(
    ('happens', 'code'),
    [
        (lambda arm: arm.monitor.stop('a test'), 'stopped'),
        (lambda arm: arm.monitor.interrupt(Status.OTHER_COMMANDER, 'a test'), 'other_commander'),
        (lambda arm: arm.monitor.fail('a test'), 'no_command'),
        (lambda arm: arm.pass_time(3.0), 'stale_state'),
        (old_goal, 'stale_goal'),
    ],
)
def test_the_reason_for_which_a_goal_was_dropped_has_a_code(happens, code):
    arm = moving('pose')
    assert arm.monitor.last_drop == ''
    happens(arm)
    arm.monitor.judge(arm.now)
    assert arm.monitor.last_drop == code
    arm.monitor.drop_goal('there is none')
    assert arm.monitor.last_drop == code
