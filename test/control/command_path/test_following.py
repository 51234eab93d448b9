"""An arm that does not do as it is told is stopped, however slow it is to move."""

from command_path_arm import CommandPathArm, TICK
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.safety_monitor import SafetyOptions, Status
import numpy as np
import pytest

OUTPUTS = ('twist', 'pose', 'joint_trajectory', 'joint_position', 'joint_velocity')
NOISE = 1e-6
"""Of encoders: joints that are told never stand quite still [rad]."""
LATE = [(0.05, 0.05), (0.1, 0.1), (0.15, 0.05)]
"""Delays of commands, and time constants with which joints then take on velocities [s]."""
HOLD = 30.0
"""Time for which an arm is to stay at its goal [s]."""


def slow(output, speed, **options):
    """Return an arm with a goal that is some time away."""
    arm = CommandPathArm(output, limits=MotionLimits(speed=speed), **options)
    arm.start(far_goal(arm))
    return arm


def far_goal(arm):
    low, high = arm.workspace.low, arm.workspace.high
    return np.where(arm.tool > (low + high) / 2, low, high)


def seconds_until_stop(arm, most):
    """Return how long it takes until the goal is dropped."""
    start = arm.now
    while arm.now < start + most:
        arm.tick()
        if arm.monitor.status is not Status.RUNNING:
            return arm.now - start
    return float('inf')


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
@pytest.mark.parametrize('speed', [0.05, 0.25])
def test_a_stuck_arm_that_is_told_velocities_is_noticed_soon(output, speed):
    arm = slow(output, speed)
    arm.noise, arm.is_stuck = NOISE, True
    assert seconds_until_stop(arm, 5.0) < 1.5
    assert arm.monitor.status is Status.NOT_FOLLOWING


@pytest.mark.parametrize('output', ['pose', 'joint_position', 'joint_trajectory'])
@pytest.mark.parametrize('speed', [0.05, 0.25])
def test_a_stuck_arm_that_is_told_places_is_noticed_when_it_is_left_behind(output, speed):
    arm = slow(output, speed)
    arm.noise, arm.is_stuck = NOISE, True
    # max_following_error, at this speed, and the time for which it may be exceeded.
    assert seconds_until_stop(arm, 10.0) < 0.08 / speed + 1.2
    # A slow one is noticed first because it comes no nearer.
    expected = Status.NOT_FOLLOWING if speed > 0.05 else Status.NO_PROGRESS
    assert arm.monitor.status is expected


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
def test_an_arm_that_gets_stuck_on_its_way_is_noticed(output):
    arm = slow(output, 0.05)
    arm.noise = NOISE
    arm.run(150)
    assert arm.monitor.status is Status.RUNNING
    arm.is_stuck = True
    assert seconds_until_stop(arm, 5.0) < 2.0
    assert arm.monitor.status is Status.NOT_FOLLOWING


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize('speed', [0.05, 0.25])
@pytest.mark.parametrize('delay', [0.05, 0.1, 0.15])
def test_an_arm_that_follows_late_comes_to_its_goals(output, speed, delay):
    arm = slow(output, speed)
    arm.noise, arm.delay = NOISE, delay
    for _ in range(2):
        for _ in range(round((0.5 / speed + 2.0) / TICK)):
            assert not arm.tick().is_stop, arm.monitor.reason
        assert arm.controller.reached
        arm.controller.take_goal(arm.now, far_goal(arm))


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
@pytest.mark.parametrize(('delay', 'lag'), LATE)
def test_no_goal_of_an_arm_that_takes_on_velocities_late_is_dropped(output, delay, lag):
    random = np.random.default_rng(3)
    for _ in range(20):
        arm = CommandPathArm(output)
        arm.noise, arm.delay, arm.lag = NOISE, delay, lag
        arm.start(random.uniform(arm.workspace.low, arm.workspace.high))
        while not arm.controller.reached:
            arm.tick()
            assert arm.monitor.status is Status.RUNNING, arm.monitor.reason
        arm.run(50)
        assert arm.monitor.status is Status.RUNNING, arm.monitor.reason


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
@pytest.mark.parametrize(('delay', 'lag'), LATE)
def test_an_arm_that_is_late_and_then_blocked_is_noticed(output, delay, lag):
    arm = slow(output, 0.25)
    arm.noise, arm.delay, arm.lag = NOISE, delay, lag
    arm.run(60)
    assert arm.monitor.status is Status.RUNNING
    arm.is_stuck = True
    assert seconds_until_stop(arm, 5.0) < 2.0
    assert arm.monitor.status is Status.NOT_FOLLOWING


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
def test_an_arm_that_follows_late_around_a_circle_is_no_blocked_one(output):
    """On a circle the displacements of a late arm never agree with those of the same time."""
    arm = CommandPathArm(output, safety=SafetyOptions(progress_timeout=0.0))
    arm.noise, arm.delay = NOISE, 0.15

    def circling(*_):
        turn = 5.0 * arm.now
        return np.array((0.9 * np.cos(turn), 0.9 * np.sin(turn), 0.0, 0.0), np.float32)

    arm.policy = circling
    arm.start(arm.workspace.high)
    arm.run(300)
    assert arm.monitor.status is Status.RUNNING, arm.monitor.reason
    assert np.linalg.norm(arm.last_command.tool_velocity) > 0.1
    arm.is_stuck = True
    assert seconds_until_stop(arm, 5.0) < 1.5
    assert arm.monitor.status is Status.NOT_FOLLOWING


@pytest.mark.parametrize('output', OUTPUTS)
@pytest.mark.parametrize('speed', [0.01, 0.05, 0.25])
def test_joints_that_are_told_never_to_move_stop_the_arm_at_any_speed(output, speed):
    arm = slow(output, speed)
    frozen = arm.positions.copy()
    arm.send_state = lambda: CommandPathArm.send_state(arm, frozen)
    # 2 cm in the dark, the time for which it may be far away, and gathering speed.
    assert seconds_until_stop(arm, 10.0) < 0.02 / speed + 1.2
    # At the lowest speed it has come no nearer before.
    expected = Status.NOT_FOLLOWING if speed > 0.01 else Status.NO_PROGRESS
    assert arm.monitor.status is expected
    start = CommandPathArm(output).tool
    assert np.linalg.norm(arm.tool - start) < 0.02 + 0.8 * speed


@pytest.mark.parametrize('output', OUTPUTS)
def test_an_arm_that_rests_at_its_goal_is_left_there(output):
    arm = CommandPathArm(output)
    arm.start()
    # What encoders tell comes in steps, so that an arm at rest tells the same all the time.
    arm.send_state = lambda: CommandPathArm.send_state(arm, arm.positions.round(4))
    arm.run(round(HOLD / TICK))
    assert arm.monitor.status is Status.RUNNING
    assert arm.controller.distance < 0.003


@pytest.mark.parametrize('output', ['joint_trajectory', 'joint_position', 'joint_velocity'])
def test_an_arm_whose_limits_leave_no_way_stays_where_it_is_and_drops_its_goal(output, hemmed_in):
    arm = slow(output, 0.25, name=hemmed_in)
    assert seconds_until_stop(arm, 10.0) < 6.0
    assert arm.monitor.status is Status.NO_PROGRESS
    arm.brake()
    assert arm.run(20) == [None] * 20


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_policy_that_goes_elsewhere_loses_its_goal(output):
    arm = CommandPathArm(output, policy=lambda *_: np.array((1, 1, 1, 0), np.float32))
    arm.start(arm.workspace.low)
    assert seconds_until_stop(arm, 10.0) < 6.0
    assert arm.monitor.status is Status.NO_PROGRESS


def test_the_same_goal_again_and_again_makes_no_progress():
    arm = CommandPathArm('pose', policy=lambda *_: np.array((1, 1, 1, 0), np.float32))
    goal, random = arm.workspace.low, np.random.default_rng(1)
    arm.start(goal)
    for _ in range(100):
        arm.run(10)
        if arm.monitor.status is Status.NO_PROGRESS:
            break
        arm.controller.take_goal(arm.now, goal + random.uniform(0.0, 0.005, 3))
    assert arm.monitor.status is Status.NO_PROGRESS


@pytest.mark.parametrize('output', [*OUTPUTS, 'none'])
def test_progress_need_not_be_made_where_nobody_asks_for_it(output):
    safety = SafetyOptions(progress_timeout=0.0)
    arm = CommandPathArm(
        output, policy=lambda *_: np.array((1, 1, 1, 0), np.float32), safety=safety
    )
    arm.start(arm.workspace.low)
    arm.run(1000)
    assert arm.monitor.status is Status.RUNNING


@pytest.fixture(scope='module')
def hemmed_in(tmp_path_factory):
    """Return the file of a robot whose joints can hardly move."""
    from mher_ros.robots.robot import load_robot
    import yaml

    robot = load_robot('fetch')
    text = {
        'model': robot.model,
        'simulation_model': 'task://fetch_reach',
        'base_frame': robot.base_frame,
        'tool_frame': robot.tool_frame,
        'joints': list(robot.joints),
        'home': dict(robot.home),
        'joint_limits': {
            name: {'lower': at - 0.05, 'upper': at + 0.05} for name, at in robot.home.items()
        },
        'output': robot.output,
        'command_rate': robot.command_rate,
    }
    path = tmp_path_factory.mktemp('robot') / 'hemmed_in.yaml'
    path.write_text(yaml.safe_dump(text))
    return str(path)
