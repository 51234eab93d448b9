"""A policy leads an arm to its goal, and stops it once whenever there is a reason to."""

from led_arm import LedArm, proportional, SECOND, TICK
from mher_ros.control.joint_motion import JointMotion, MotionError
from mher_ros.control.safety import SafetyOptions, Status
from mher_ros.control.workspace import GoalError
import numpy as np
import pytest

OUTPUTS = ('twist', 'pose', 'joint_trajectory', 'joint_position', 'joint_velocity')
NAN = float('nan')


def moving(output, **options):
    """Return an arm on its way to a goal."""
    arm = LedArm(output, **options)
    arm.start()
    assert all(command is not None and not command.is_stop for command in arm.run(20))
    assert np.linalg.norm(arm.told.tool_velocity) > 0.05
    return arm


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize(
    ('name', 'task'), [('fetch', None), ('sawyer', None), ('panda', 'fetch_reach')]
)
def test_the_tool_comes_to_its_goal_and_stays_there(output, name, task):
    arm = LedArm(output, name, task)
    arm.start()
    arm.run(400)
    assert arm.reach.reached
    assert arm.reach.distance < 0.005
    stay = arm.tool
    arm.run(50)
    np.testing.assert_allclose(arm.tool, stay, atol=1e-3)
    assert arm.guard.status is Status.RUNNING


def spoiled(arm):
    arm.pass_time(TICK)
    positions = arm.positions.copy()
    positions[2] = NAN
    arm.tell_state(positions)
    return arm.answer()


def silent(arm):
    arm.pass_time(0.25)
    return arm.watch()


def unreadable(arm):
    arm.pass_time(TICK)
    arm.reach.take_bad_state(arm.now, 'elbow is missing')
    return arm.watch()


def outside_limits(arm):
    arm.pass_time(TICK)
    arm.positions[1] = arm.model.upper[1] + 0.06
    arm.tell_state()
    return arm.answer()


def jumped(arm):
    arm.positions[0] += 0.5
    return arm.tick()


def clock_back(arm):
    arm.stamp -= 5 * SECOND
    return arm.tick()


def stopped(arm):
    arm.guard.stop('a person')
    return arm.watch()


def halted(arm):
    return arm.note(arm.reach.halt('deactivated'))


def not_finite(arm):
    arm.policy = lambda *_: np.full(4, NAN, np.float32)
    return next(filter(lambda answer: answer.is_stop, (arm.tick() for _ in range(5))))


def old_goal(arm):
    arm.now += 60.0
    for _ in range(25):  # states that are good again after the pause
        arm.tick()
    return arm.commands[-1][1]


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
    old_goal: Status.NO_GOAL,
}


@pytest.mark.parametrize('output', ['twist', 'pose', 'joint_position', 'joint_velocity'])
@pytest.mark.parametrize('happens', REASONS, ids=lambda happens: happens.__name__)
def test_every_reason_stops_the_arm_once(output, happens):
    arm = moving(output)
    stop = happens(arm)
    assert stop.is_stop
    assert arm.guard.status is REASONS[happens]
    assert not stop.tool_velocity.any()
    assert stop.joint_velocities is None or not stop.joint_velocities.any()
    assert sum(command.is_stop for _, command in arm.commands) == 1
    for _ in range(5):
        arm.pass_time(TICK)
        assert arm.watch() is None
        assert arm.answer() is None


@pytest.mark.parametrize('output', ['pose', 'joint_position'])
def test_a_stop_is_where_the_arm_is_not_where_it_was_sent(output):
    arm = moving(output)
    arm.is_stuck = True
    arm.run(20)
    arm.velocities[:] = 0.0
    arm.tell_state()
    ahead = np.linalg.norm(arm.told.tool_position - arm.tool)
    assert ahead > 0.02
    stop = stopped(arm)
    np.testing.assert_allclose(stop.tool_position, arm.tool, atol=1e-6)
    if stop.joint_positions is not None:
        np.testing.assert_allclose(stop.joint_positions, arm.positions, atol=1e-9)


@pytest.mark.parametrize('output', ['pose', 'joint_position'])
def test_a_moving_arm_is_not_pulled_back_by_a_stop(output):
    arm = moving(output)
    direction = arm.told.tool_velocity / np.linalg.norm(arm.told.tool_velocity)
    stop = stopped(arm)
    assert 0.005 < (stop.tool_position - arm.tool) @ direction < 0.026


@pytest.mark.parametrize('output', ['pose', 'joint_position'])
def test_a_velocity_that_no_command_asked_for_takes_a_stop_nowhere(output):
    arm = moving(output)
    arm.pass_time(TICK)
    arm.tell_state(velocities=np.full(len(arm.positions), 9.0))
    arm.answer()
    stop = stopped(arm)
    assert np.linalg.norm(stop.tool_position - arm.tool) < 0.05


@pytest.mark.parametrize('output', ['pose', 'joint_position'])
def test_one_wrong_reading_is_not_where_the_arm_is_told_to_stop(output):
    arm = moving(output)
    arm.pass_time(TICK)
    wrong = arm.positions.copy()
    wrong[4] = 1e9  # a joint that turns without end: no limit tells that it is wrong
    arm.tell_state(wrong)
    stop = arm.answer()
    assert stop.is_stop
    assert arm.guard.status is Status.JOINTS_JUMPED
    np.testing.assert_allclose(stop.tool_position, arm.tool, atol=0.03)
    if stop.joint_positions is not None:
        np.testing.assert_allclose(stop.joint_positions, arm.positions, atol=0.05)


@pytest.mark.parametrize('output', ['pose', 'joint_position', 'joint_velocity', 'twist'])
def test_after_a_pause_it_starts_from_where_the_arm_is_and_from_rest(output):
    arm = moving(output)
    assert silent(arm).is_stop
    arm.told = None
    arm.positions[0] += 0.3  # somebody pushed it meanwhile
    arm.velocities[:] = 0.0
    arm.pass_time(0.3)
    while (first := arm.tick()) is None:
        pass
    assert not first.is_stop
    assert np.linalg.norm(first.tool_velocity) <= arm.reach.limits.acceleration * TICK + 1e-9
    np.testing.assert_allclose(first.tool_position, arm.tool, atol=2e-3)
    if output == 'joint_position':
        np.testing.assert_allclose(first.joint_positions, arm.positions, atol=0.02)


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_stuck_arm_is_noticed_and_its_point_does_not_run_away(output):
    arm = moving(output)
    arm.is_stuck = True
    low, high = arm.workspace.low, arm.workspace.high
    arm.reach.take_goal(arm.now, np.where(arm.tool > (low + high) / 2, low, high))
    farthest = 0.0
    for _ in range(300):
        command = arm.tick()
        if command is None or command.is_stop:
            break
        farthest = max(farthest, np.linalg.norm(command.tool_position - arm.tool))
    assert command.is_stop
    assert arm.guard.status is Status.NOT_FOLLOWING
    assert farthest < 2.0 * SafetyOptions().leash + 1e-6
    assert arm.reach.goal is None


def test_without_an_output_nothing_follows_and_nobody_minds():
    arm = LedArm('none')
    arm.start()
    start = arm.tool
    commands = arm.run(300)
    assert arm.guard.status is Status.RUNNING
    np.testing.assert_array_equal(arm.tool, start)
    np.testing.assert_allclose(commands[-1].tool_position, arm.reach.goal, atol=1e-3)
    assert not arm.reach.reached


@pytest.mark.parametrize('output', ['twist', 'joint_position'])
@pytest.mark.parametrize('action', [(NAN, 0, 0, 0), (0, float('inf'), 0, 0), (0, 0, -1e39, 0)])
def test_a_policy_that_says_no_numbers_moves_nothing_until_a_new_goal(output, action):
    arm = LedArm(output)
    with np.errstate(over='ignore'):
        said = np.array(action, np.float32)
    arm.policy = lambda *_: said
    arm.start()
    answers = [answer for answer in arm.run(50) if answer is not None]
    assert all(answer.is_stop for answer in answers)
    assert arm.guard.status is Status.NO_COMMAND
    assert 'finite' in arm.guard.reason
    arm.policy = proportional(arm.interface)
    assert arm.run(10) == [None] * 10
    arm.start()
    assert not arm.tick().is_stop


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
def test_joints_that_find_no_way_stop_the_arm(output, monkeypatch):
    arm = moving(output)

    def no_way(*_):
        raise MotionError('no motion of the joints')

    monkeypatch.setattr(JointMotion, 'move', no_way)
    assert arm.tick().is_stop
    assert arm.guard.status is Status.NO_COMMAND
    assert 'no motion of the joints' in arm.guard.reason
    assert arm.run(5) == [None] * 5


def test_a_latched_stop_outlasts_goals_and_restarts():
    arm = moving('twist')
    stopped(arm)
    for _ in range(2):
        arm.tell_state()
        with pytest.raises(GoalError, match='a person'):
            arm.reach.take_goal(arm.now, arm.workspace.low)
        arm.reach.restart()
        assert arm.run(5) == [None] * 5
    arm.guard.clear()
    assert arm.run(5) == [None] * 5
    arm.start()
    assert not arm.tick().is_stop


def test_a_stop_from_before_is_one_from_the_start():
    arm = LedArm('twist', stop='an earlier one')
    arm.tell_state()
    with pytest.raises(GoalError, match='an earlier one'):
        arm.reach.take_goal(arm.now, arm.workspace.low)
