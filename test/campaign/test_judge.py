"""The judge of the campaign finds what is wrong with hand-made commands, and only that."""

from pathlib import Path
import subprocess
import sys

from judge import Command, Hold, Judge, Limits, Record
import numpy as np
from outside_arm import OutsideArm, read_robot
import pytest

PERIOD, SPEED, ACCELERATION = 0.01, 0.25, 1.0
SLIDE = """
<robot name="slide">
  <link name="base"/><link name="x"/><link name="y"/><link name="tool"/>
  <joint name="jx" type="prismatic"><parent link="base"/><child link="x"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="0.3" effort="1"/></joint>
  <joint name="jy" type="prismatic"><parent link="x"/><child link="y"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="0.3" effort="1"/></joint>
  <joint name="fixed" type="fixed"><parent link="y"/><child link="tool"/>
    <origin xyz="0.1 0 0.5" rpy="0 0 0"/></joint>
</robot>
"""
"""Joints that move the tool along x and y: what it does can be seen at a glance."""
START = np.array((0.1, 0.0))


def limits(**changes):
    return Limits(
        **{
            'period': PERIOD,
            'speed': SPEED,
            'acceleration': ACCELERATION,
            'joint_velocity': np.full(2, 0.3),
            'joint_acceleration': np.full(2, 1.5),
            'lower': np.full(2, -1.0),
            'upper': np.full(2, 1.0),
            **changes,
        }
    )


def profile(top=SPEED, cruise=20, acceleration=ACCELERATION):
    """Return speeds [m/s] up to ``top``, along, and down to 0 again."""
    up = np.arange(acceleration * PERIOD, top, acceleration * PERIOD)
    return np.concatenate((up, np.full(cruise, top), up[::-1], [0.0]))


def ramp(**options):
    """Return positions (N, 2) from ``START`` along x, at rest at the end."""
    moved = np.cumsum(profile(**options)) * PERIOD
    return START + moved[:, None] * (1.0, 0.0)


def commands(values, first=100.0, gaps=None):
    gaps = np.full(len(values), PERIOD) if gaps is None else gaps
    times = first + np.concatenate(([0.0], np.cumsum(gaps[1:])))
    return [
        Command(when, np.array(value), 0.02) for when, value in zip(times, values, strict=True)
    ]


def kinds(told, output='joint_position', changes=None, **about):
    about = {'measured': [(0.0, START)], **about}
    arm = OutsideArm(SLIDE, 'base', 'tool', ('jx', 'jy'))
    judge = Judge(arm, output, limits(**(changes or {})))
    return {violation.kind for violation in judge.judge(Record(told, **about))}


@pytest.mark.parametrize('output', ['joint_position', 'joint_trajectory'])
def test_a_clean_ramp_is_not_found(output):
    assert kinds(commands(ramp()), output) == set()


def test_clean_velocities_are_not_found():
    speeds = profile()[:, None] * (0.6, 0.8)
    assert kinds(commands(speeds), 'joint_velocity') == set()
    assert kinds(commands(np.insert(speeds, 2, 0.0, axis=1)), 'twist') == set()


def test_a_late_command_that_goes_on_by_one_period_is_not_found():
    values = ramp()
    gaps = np.full(len(values), PERIOD)
    gaps[30] = 0.06
    assert kinds(commands(values, gaps=gaps)) == set()


def test_a_leap_is_found():
    values = ramp()
    values[30:] += (0.02, 0.0)
    found = kinds(commands(values))
    assert {'tool speed', 'tool acceleration', 'joint velocity', 'joint acceleration'} <= found
    assert 'carried out (immediate)' in found


def test_a_leap_sideways_within_the_speed_is_an_acceleration():
    values = ramp(top=0.1)
    values[20:] += (0.0, 0.0015)
    assert kinds(commands(values)) == {'tool acceleration', 'joint acceleration'}


def test_a_late_tick_that_is_caught_up_is_found():
    """A command steps as far as the time since the last one allows: 80 ms at the cap."""
    values = ramp(cruise=40)
    values[35:] += (0.07 * SPEED, 0.0)
    gaps = np.full(len(values), PERIOD)
    gaps[35] = 0.08
    assert 'tool speed' in kinds(commands(values, gaps=gaps))


def test_a_burst_is_found():
    gaps = np.full(len(ramp()), PERIOD)
    gaps[20:24] = 0.001
    found = kinds(commands(ramp(), gaps=gaps))
    assert {'interval', 'rate'} <= found


def test_a_rate_that_is_slightly_too_high_is_found():
    assert kinds(commands(ramp(), gaps=np.full(len(ramp()), 0.93 * PERIOD))) == {'rate'}


def test_a_motion_that_breaks_off_is_found_unless_the_process_was_kept_from_running():
    told = commands(ramp()[:30])
    assert kinds(told) == {'abrupt end'}
    assert kinds(told, frozen=[(told[-1].time + 0.005, told[-1].time + 0.3)]) == set()


def test_after_a_pause_a_motion_begins_at_rest_where_the_last_command_was():
    values = ramp()
    gaps = np.full(len(values), PERIOD)
    gaps[30] = 0.3
    assert kinds(commands(values, gaps=gaps)) == {'tool acceleration', 'joint acceleration'}
    here = values[-1]
    again = commands(values) + commands(values + here - START, first=100.0 + 1.3)
    assert kinds(again, measured=[(0.0, START), (100.9, here)]) == set()
    off = commands(values) + commands(values + here - START + (0.02, 0.0), first=100.0 + 1.3)
    assert 'tool speed' in kinds(off, measured=[(0.0, START), (100.9, here)])


def test_velocities_begin_at_rest_after_a_pause_too():
    speeds = np.insert(profile()[:, None] * (0.6, 0.8), 2, 0.0, axis=1)
    gaps = np.full(len(speeds), PERIOD)
    gaps[30] = 0.3
    assert 'tool acceleration' in kinds(commands(speeds, gaps=gaps), 'twist')
    anew = np.concatenate((speeds[:30], speeds))
    gaps = np.full(len(anew), PERIOD)
    gaps[30] = 0.3
    assert kinds(commands(anew, gaps=gaps), 'twist', frozen=[(100.2, 100.6)]) == set()


def test_no_velocity_after_a_command_that_was_held_while_it_was_sent_is_not_found():
    speeds = np.insert(profile()[:, None] * (0.6, 0.8), 2, 0.0, axis=1)[:31]
    speeds[-1] = 0.0
    gaps = np.full(len(speeds), PERIOD)
    assert 'tool acceleration' in kinds(commands(speeds, gaps=gaps), 'twist')
    for gaps[29], gaps[30] in ((0.4, PERIOD), (0.06, 0.06)):
        told = commands(speeds, gaps=gaps)
        assert 'tool acceleration' in kinds(told, 'twist')
        assert kinds(told, 'twist', frozen=[(told[28].time, told[29].time)]) == set()
    gaps[29], gaps[30] = 0.02, 0.02  # whenever it left, the arm moves
    told = commands(speeds, gaps=gaps)
    frozen = [(told[28].time, told[29].time)]
    assert 'tool acceleration' in kinds(told, 'twist', frozen=frozen)


def test_an_old_command_that_is_repeated_elsewhere_is_found():
    values = ramp()
    told = [*commands(values), *commands(values[-1:], first=105.0)]
    elsewhere = values[-1] + (0.0, 0.3)
    assert kinds(told, measured=[(0.0, START), (100.9, values[-1])]) == set()
    assert 'tool speed' in kinds(told, measured=[(0.0, START), (104.9, elsewhere)])


def test_a_tool_that_is_sent_out_of_its_box_is_found():
    values = ramp()
    end = values[-1][0] + 0.1
    box = (np.array((-1.0, -1.0, -1.0)), np.array((end - 0.001, 1.0, 1.0)))
    assert kinds(commands(values), changes={'box': box}) == {'box'}
    box[1][0] = end + 0.001
    assert kinds(commands(values), changes={'box': box}) == set()


def test_a_motion_that_goes_on_after_the_process_was_held_is_counted():
    values = ramp()
    gaps = np.full(len(values), PERIOD)
    gaps[30] = 0.3
    told = commands(values, gaps=gaps)
    judge = Judge(OutsideArm(SLIDE, 'base', 'tool', ('jx', 'jy')), 'joint_position', limits())
    record = Record(told, [(0.0, START)], frozen=[(told[29].time + 0.002, told[30].time - 0.002)])
    assert judge.judge(record) == []
    assert (judge.held, judge.continued) == (1, 1)


def test_a_motion_may_be_cut_in_two():
    told = commands(ramp())
    first, second = told[:30], told[30:]
    arm = OutsideArm(SLIDE, 'base', 'tool', ('jx', 'jy'))
    judge, middle = Judge(arm, 'joint_position', limits()), first[-1].time + 0.005
    about = {'measured': [(0.0, START)]}
    assert judge.judge(Record(first, **about, end=middle)) == []
    assert judge.judge(Record(second, **about, before=first[-15:], begin=middle)) == []
    (broken,) = judge.judge(Record([], **about, before=first[-15:], begin=middle))
    assert broken.kind == 'abrupt end'


def test_a_first_command_away_from_the_arm_is_found():
    assert 'tool speed' in kinds(commands(ramp() + (0.01, 0.0)))
    before = [Command(99.5, START + (0.01, 0.0))]
    assert kinds(commands(ramp() + (0.01, 0.0)), before=before) == set()
    assert 'tool speed' in kinds(commands(ramp()), before=before)


def test_after_about_a_second_a_motion_may_begin_at_the_last_command_or_at_the_arm():
    first = commands(ramp())
    end, later = first[-1].values, first[-1].time + 1.0
    arm = end - (0.02, 0.0)  # it has not followed to the end
    measured = [(0.0, START), (later - 0.01, arm)]
    for start in (end, arm):
        told = first + commands(ramp() - START + start, later)
        assert kinds(told, measured=measured) == set()
    told = first + commands(ramp() - START + end + (0.02, 0.0), later)
    assert {'tool speed', 'carried out (immediate)'} <= kinds(told, measured=measured)


def test_an_arm_that_sags_goes_on_from_its_last_command_however_late():
    first = commands(ramp())
    end, later = first[-1].values, first[-1].time + 5.0
    told = first + commands(ramp() - START + end, later)
    for sag in (0.01, 0.08):
        assert kinds(told, measured=[(0.0, START), (later - 3.9, end - (0.0, sag))]) == set()
    elsewhere = [(later - 3.9, end - (0.0, 0.15))]
    moved = [(later - 3.9, end), (later - 2.0, end - (0.0, 0.05))]
    for places in (elsewhere, moved):
        assert {'tool speed', 'carried out (immediate)'} <= kinds(told, measured=places)


def test_velocities_that_end_at_once_are_found():
    speeds = np.insert(profile()[:, None] * (0.6, 0.8), 2, 0.0, axis=1)
    speeds[30:] = 0.0
    assert kinds(commands(speeds), 'twist') == {'tool acceleration'}
    assert kinds(commands(speeds[:, :2]), 'joint_velocity') == {
        'tool acceleration',
        'joint acceleration',
    }


def test_velocities_that_are_too_fast_are_found():
    speeds = profile(top=0.28)[:, None] * (1.0, 0.0, 0.0)
    assert kinds(commands(speeds), 'twist') == {'tool speed'}


def test_a_joint_outside_its_range_is_found():
    assert 'joint position' in kinds(commands(ramp()), changes={'upper': np.array((0.14, 1.0))})


def test_what_is_not_finite_is_found():
    values = ramp()
    values[20, 1] = np.nan
    assert 'not finite' in kinds(commands(values))


def test_a_ramp_after_a_stop_is_not_found():
    told = commands(ramp())
    assert kinds(told, holds=[Hold(told[-26].time + 0.001, np.inf)]) == set()


def test_commands_long_after_a_stop_are_found():
    told = commands(ramp(cruise=80))
    found = kinds(told, holds=[Hold(told[30].time, np.inf)])
    assert {'after stop', 'stop distance'} <= found


def test_commands_after_the_stop_was_cleared_are_not_found():
    told = commands(ramp(cruise=80))
    assert kinds(told, holds=[Hold(told[30].time, told[45].time)]) == set()


def test_a_stop_that_goes_back_is_found():
    speeds = profile()
    back = np.concatenate((speeds, -profile(top=0.05, cruise=3)))
    values = START + np.cumsum(back)[:, None] * PERIOD * (1.0, 0.0)
    told = commands(values)
    hold = Hold(told[len(speeds) - 26].time + 0.001, np.inf)
    assert kinds(told, holds=[hold]) == {'stop backwards'}


def test_a_stop_that_leaps_back_is_found():
    values = ramp()[:31]
    values[30] -= (0.02, 0.0)
    told = commands(values)
    found = kinds(told, holds=[Hold(told[29].time + 0.001, np.inf)])
    assert {'stop backwards', 'tool speed'} <= found


def test_a_trajectory_that_a_next_one_makes_up_for_is_found():
    """A point far ahead in time, then one that asks for its place within one period."""
    values = ramp(cruise=0)
    told = [*commands(values)]
    place, last = values[-1] + (0.025, 0.0), told[-1].time
    told += [Command(last + 0.6, place, 0.1), Command(last + 0.61, place, 0.01)]
    assert 'carried out (JTC)' in kinds(told, 'joint_trajectory')


def test_kinematics_agree_with_those_that_make_the_commands():
    from arm_models import load_arm

    for name in ('ur5e', 'panda'):
        robot, (_, model) = read_robot(name), load_arm(name)
        rng = np.random.default_rng(0)
        joints = robot.home + rng.uniform(-0.5, 0.5, (20, len(robot.home)))
        speeds = rng.uniform(-1.0, 1.0, joints.shape)
        tools = [model.tool(*pair) for pair in zip(joints, speeds, strict=True)]
        np.testing.assert_allclose(
            robot.arm.tool(joints), [place for place, _ in tools], atol=1e-9
        )
        moved = np.einsum('nij,nj->ni', robot.arm.jacobian(joints)[:, :3], speeds)
        np.testing.assert_allclose(moved, [velocity for _, velocity in tools], atol=1e-9)
        np.testing.assert_array_equal(robot.arm.velocity, model.velocity_limits)
        np.testing.assert_array_equal(robot.arm.lower, model.lower)


def test_the_judge_shares_no_code_with_what_it_judges():
    script = (
        'import sys, judge, live_arm, outside_arm, sequences; sys.exit("mher_ros" in sys.modules)'
    )
    folder = Path(__file__).parent
    assert subprocess.run([sys.executable, '-c', script], cwd=folder, check=False).returncode == 0
