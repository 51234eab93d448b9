"""Whatever motion is asked for, of the tool or of the joints, what comes out keeps every limit."""

from arm_models import load_arm, model_text
from command_judge import CommandJudge
from hypothesis import given
from hypothesis import strategies as st
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.filter.motion_qp import MotionError
from mher_ros.control.filter.safety_filter import ToolFilter
from mher_ros.control.motion import Command, JointVelocities, ToolVelocity
import numpy as np
import pytest

PERIOD = 0.01
LIMITS = MotionLimits()
ARMS = ('fetch', 'panda', 'ur5e')
SHARE = st.floats(-3.0, 3.0)
ASKED = st.one_of(
    st.tuples(st.just('joints'), st.lists(SHARE, min_size=7, max_size=7)),
    st.tuples(st.just('tool'), st.lists(SHARE, min_size=3, max_size=3)),
    st.tuples(st.just('brake'), st.none()),
)
STORIES = st.lists(st.tuples(ASKED, st.integers(1, 60)), min_size=1, max_size=8)


class Filtered:
    """An arm that does as it is commanded, its filter, and a judge with kinematics of its own."""

    def __init__(self, name='fetch', edge=0.1, output='joint_position', limits=LIMITS):
        self.robot, self.arm = load_arm(name)
        home = self.robot.home
        self.positions = np.array([home.get(joint, 0.0) for joint in self.arm.state_names])
        tool = self.arm.tool_position(self.positions)
        self.box = tool - edge, tool + edge
        kind = JointFilter if output.startswith('joint') else ToolFilter
        self.filter = kind(self.arm, MotionLimiter(limits, *self.box), PERIOD, False)
        self.filter.begin(self.positions)
        text = model_text(name) if self.robot.simulation_task else None
        named = self.robot if self.robot.simulation_task else self.robot.simulated()
        self.judge = CommandJudge(named, text, output, limits, self.arm)
        self.now = 0.0

    def step(self, asked):
        """Advance by one command; None: brake."""
        if asked is None:
            self.filter.brake()
        else:
            self.filter.prepare(self.positions)
            self.filter.advance(asked)
        at = self.filter
        command = Command(
            at.tool_position,
            at.tool_velocity,
            at.orientation,
            at.joint_positions,
            at.joint_velocities,
        )
        self.judge.take(self.now, command, self.positions.copy())
        low, high = self.box
        assert (at.tool_position >= low - 1e-6).all()
        assert (at.tool_position <= high + 1e-6).all()
        self.positions[: len(self.arm.joint_names)] = at.joint_positions
        self.now += PERIOD

    def joints(self, shares):
        """Return joint velocities in shares of their limits, which may be beyond 1."""
        count = len(self.arm.joint_names)
        return JointVelocities(np.array(shares[:count]) * self.arm.velocity_limits)


@pytest.mark.nightly
@pytest.mark.parametrize('name', ARMS)
@given(story=STORIES)
def test_whatever_is_asked_for_no_limit_is_broken_and_it_can_stop(name, story):
    filtered = Filtered(name)
    for (kind, shares), ticks in story:
        for _ in range(ticks):
            if kind == 'joints':
                filtered.step(filtered.joints(shares))
            elif kind == 'tool':
                filtered.step(ToolVelocity(np.array(shares) * LIMITS.speed))
            else:
                filtered.step(None)
    for _ in range(200):
        if filtered.filter.is_at_rest:
            break
        filtered.step(None)
    assert filtered.filter.is_at_rest


@pytest.mark.parametrize('name', ARMS)
def test_joint_velocities_that_are_safe_pass_unchanged(name):
    filtered = Filtered(name)
    random = np.random.default_rng(4)
    asked = np.zeros(len(filtered.arm.joint_names))
    for _ in range(200):
        # Slow motions about home, which change slowly.
        asked = np.clip(asked + random.normal(0.0, 0.002, len(asked)), -0.02, 0.02)
        filtered.step(JointVelocities(asked))
        np.testing.assert_array_equal(filtered.filter.joint_velocities, asked)


@pytest.mark.parametrize('name', ARMS)
def test_joints_move_as_fast_as_the_tool_may(name):
    """The filter is no brake: of an absurd motion it leaves one at the tool's speed limit."""
    filtered = Filtered(name, edge=0.6)
    fastest = 0.0
    for _ in range(80):
        filtered.step(filtered.joints([1.0, 0, 0, 0, 0, 0, 0]))
        fastest = max(fastest, np.linalg.norm(filtered.filter.tool_velocity))
    assert fastest > 0.9 * LIMITS.speed


@pytest.mark.parametrize('name', ARMS)
def test_the_result_is_near_to_what_is_asked_for(name):
    """Joints that the limits do not concern move as asked, while the first one is held back."""
    filtered = Filtered(name, edge=0.6)
    shares = np.array([1.0, 0, 0, 0, 0, 0.0, 0.0][: len(filtered.arm.joint_names)])
    shares[-1] = 0.1  # turns the tool on its axis, or nearly so
    for _ in range(80):
        filtered.step(filtered.joints(shares))
    got = filtered.filter.joint_velocities / filtered.arm.velocity_limits
    assert got[-1] == pytest.approx(0.1, abs=0.02)
    assert 0.0 < got[0] < 1.0


def test_a_motion_out_of_the_box_ends_at_its_face():
    filtered = Filtered('fetch', edge=0.05)
    for _ in range(300):
        filtered.step(filtered.joints([0.5, 0, 0, 0, 0, 0, 0]))
    low, high = filtered.box
    tool = filtered.filter.tool_position
    assert min((tool - low).min(), (high - tool).min()) < 0.005


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', ARMS)
def test_fast_joints_with_a_slow_tool_can_stop_within_its_limits(name, seed):
    """Joints that hardly move the tool now may move it faster while they brake."""
    filtered, random = (
        Filtered(name, 1.5, limits=MotionLimits(speed=0.05)),
        np.random.default_rng(seed),
    )
    arm, qp = filtered.arm, filtered.filter._qp
    most = 0.95 * arm.acceleration_limits * PERIOD
    wanted = random.normal(size=len(arm.joint_names))
    for _ in range(random.integers(30, 120)):
        filtered.filter.prepare(filtered.positions)
        rows = qp.jacobian
        wanted = wanted - np.linalg.pinv(rows, rcond=1e-3) @ (rows @ wanted)
        wanted /= np.abs(wanted / arm.velocity_limits).max()
        now = filtered.filter.joint_velocities
        share = min(1.0, (most / np.maximum(np.abs(wanted - now), 1e-12)).min())
        filtered.step(JointVelocities(now + share * (wanted - now)))
        if filtered.filter.joint_velocities.any():
            wanted = filtered.filter.joint_velocities
    for _ in range(500):
        filtered.step(None)
    assert filtered.filter.is_at_rest


@pytest.mark.parametrize('name', ARMS)
def test_the_tool_moves_straight_on_after_motions_of_joints(name):
    """It keeps the orientation that it has by then."""
    filtered = Filtered(name, edge=0.6)
    for shares in ([0.3, -0.3, 0.3, 0.5, -0.5, 0.5, 0.5], [-0.3, 0.2, 0.3, -0.5, 0.5, -0.5, 0.5]):
        for _ in range(60):
            filtered.step(filtered.joints(shares))
    start = filtered.filter.tool_position
    low, high = filtered.box
    towards = (low + high) / 2.0 - start
    towards /= np.linalg.norm(towards)
    for _ in range(80):
        filtered.step(ToolVelocity(0.1 * towards))
    moved = filtered.filter.tool_position - start
    assert moved @ towards > 0.02


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_joint_velocities_that_are_not_finite_are_refused(value):
    filtered = Filtered()
    with pytest.raises(MotionError, match='finite'):
        filtered.step(JointVelocities(np.full(7, value)))
    filtered.step(None)


def test_joint_velocities_of_the_wrong_number_are_refused():
    filtered = Filtered()
    with pytest.raises(MotionError, match='7'):
        filtered.step(JointVelocities(np.zeros(6)))
    filtered.step(None)


def test_commands_to_the_tool_take_no_motion_of_joints():
    filtered = Filtered(output='pose')
    with pytest.raises(MotionError, match='joints'):
        filtered.filter.advance(JointVelocities(np.zeros(7)))
