"""The point in the square and in the four rooms."""

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.options import OptionError
from mher_ros.tasks import make
from mher_ros.tasks.point2d import Point2DLargeOptions
import numpy as np
import pytest

# The reference's rectangles (x_low, x_high, y_low, y_high): three across the middle, and the same
# with x and y swapped.
ACROSS = [(-5.6, -3.4, -0.8, 0.8), (-1.48, 1.48, -0.8, 0.8), (3.4, 5.6, -0.8, 0.8)]
WALLS = ACROSS + [(y0, y1, x0, x1) for x0, x1, y0, y1 in ACROSS]

TURNS = [np.array(turn) for turn in ([[1, 0], [0, 1]], [[0, -1], [1, 0]])]
TURNS += [-turn for turn in TURNS]


def stepped(task, start, action):
    """Return where an action leads from ``start``."""
    task.reset(seed=0)
    task._position = np.array(start, np.float64)
    return task.step(action)[0]['observation']


def inside_a_wall(points, margin=0.0):
    """Return which points (N, 2) lie inside a wall, deeper than ``margin``."""
    x, y = np.asarray(points).T
    return np.any(
        [
            (x > x0 + margin) & (x < x1 - margin) & (y > y0 + margin) & (y < y1 - margin)
            for x0, x1, y0, y1 in WALLS
        ],
        axis=0,
    )


@pytest.fixture
def rooms():
    return make('point2d_four_room')


@pytest.mark.parametrize('box', [4.0, 5.0])
def test_square_has_the_side_of_the_paper_or_of_its_code(box):
    task = make('point2d_large', Point2DLargeOptions(box=box))
    assert task.interface.goal_high == (box, box)
    starts = np.array([task.reset(seed=seed)[0]['observation'] for seed in range(500)])
    assert np.abs(starts).max() <= box
    assert np.abs(starts).max() > 0.95 * box


def test_square_is_that_of_the_paper_unless_told():
    assert make('point2d_large').interface.goal_high == (5.0, 5.0)
    assert make('point2d_four_room').interface.goal_high == (4.0, 4.0)


def test_square_must_not_be_tiny():
    with pytest.raises(OptionError, match=r'task\.box must be at least 1\.0 and at most 100\.0'):
        make('point2d_large', Point2DLargeOptions(box=0.5))


@pytest.mark.parametrize(
    ('start', 'action', 'end'),
    [
        ((1.0, -2.0), (0.5, -0.25), (1.5, -2.25)),
        ((4.8, 0.0), (0.5, 0.5), (5.0, 0.5)),
        ((-4.8, 4.9), (-1.0, 1.0), (-5.0, 5.0)),
        ((5.0, -5.0), (1.0, -1.0), (5.0, -5.0)),
        ((0.0, 0.0), (7.0, -7.0), (1.0, -1.0)),
    ],
)
def test_action_adds_to_the_position_which_is_cut_at_the_border(start, action, end):
    np.testing.assert_allclose(stepped(make('point2d_large'), start, action), end, atol=1e-12)


def test_walls_are_those_of_the_reference(rooms):
    assert sorted(rooms.walls) == sorted(WALLS)


@pytest.mark.parametrize('turn', TURNS)
@pytest.mark.parametrize(
    ('start', 'action', 'end'),
    [
        # Into a face of the middle wall: held at it, sliding along it.
        ((-2.0, 0.0), (1.0, 0.0), (-1.48, 0.0)),
        ((-2.0, 0.5), (1.0, -0.25), (-1.48, 0.25)),
        ((-1.2, 1.3), (0.25, -1.0), (-0.95, 0.8)),
        ((1.2, 1.3), (-0.25, -1.0), (0.95, 0.8)),
        # Into a face of the outer wall, from the door and from a room.
        ((-3.0, 0.25), (-1.0, 0.5), (-3.4, 0.75)),
        ((-3.7, 1.2), (0.125, -1.0), (-3.575, 0.8)),
        ((-3.7, -1.2), (0.125, 1.0), (-3.575, -0.8)),
        # Sliding beyond the end of a face still counts as one step against it.
        ((-1.5, 0.6), (1.0, 1.0), (-1.48, 1.6)),
        # On a face: along it and away from it freely, not into it.
        ((-1.48, 0.0), (0.0, 0.5), (-1.48, 0.5)),
        ((-1.48, 0.0), (-0.5, 0.25), (-1.98, 0.25)),
        ((-1.48, 0.0), (1.0, 0.25), (-1.48, 0.25)),
        # Into the inner corner where two walls cross, from afar and along a face.
        ((-1.3, 1.2), (0.75, -0.75), (-0.8, 0.8)),
        ((-1.2, 0.8), (1.0, 0.0), (-0.8, 0.8)),
        ((-0.8, 0.8), (1.0, -1.0), (-0.8, 0.8)),
        ((-0.8, 0.8), (-0.5, 0.5), (-1.3, 1.3)),
        # Past an outer corner without touching it.
        ((-2.0, 0.7), (0.75, 0.75), (-1.25, 1.45)),
        # Through the doors.
        ((-2.5, 0.5), (0.0, -1.0), (-2.5, -0.5)),
        ((-3.39, 1.0), (0.0, -1.0), (-3.39, 0.0)),
        ((-3.4, 1.0), (0.0, -1.0), (-3.4, 0.0)),
        ((-1.49, -1.0), (0.0, 1.0), (-1.49, 0.0)),
        # Against wall and border at once.
        ((-3.7, 1.0), (-1.0, -1.0), (-4.0, 0.8)),
    ],
)
def test_walls_hold_the_point_at_their_faces(rooms, turn, start, action, end):
    # The rooms look the same after a quarter turn, so each case is tried on four sides.
    np.testing.assert_allclose(stepped(rooms, turn @ start, turn @ action), turn @ end, atol=1e-7)


def test_at_the_very_corner_a_diagonal_step_goes_along_one_face(rooms):
    end = stepped(rooms, (-1.48, 0.8), (0.5, -0.5))
    assert any(np.allclose(end, face) for face in ((-1.48, 0.3), (-0.98, 0.8)))


def test_starts_and_goals_are_never_in_a_wall(rooms):
    for key in ('achieved_goal', 'desired_goal'):
        points = np.array([rooms.reset(seed=seed)[0][key] for seed in range(1000)])
        assert not inside_a_wall(points).any()
        # All four rooms are drawn from.
        assert len({(x > 0, y > 0) for x, y in points}) == 4


component = st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.floats(-1.0, 1.0, width=32))
actions = st.lists(st.tuples(component, component), min_size=1, max_size=60)
ROOMS = make('point2d_four_room')


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10_000), actions=actions)
def test_no_walk_enters_a_wall_or_jumps_through_one(seed, actions):
    position = ROOMS.reset(seed=seed)[0]['observation']
    for action in actions:
        wanted = np.clip(position + np.array(action, np.float32), -4.0, 4.0)
        end = ROOMS.step(action)[0]['observation']
        assert not inside_a_wall([end]).any()
        assert np.abs(end).max() <= 4.0
        fine = np.linspace(0.0, 1.0, 200)[:, None]
        assert not inside_a_wall(position + fine * (end - position), margin=1e-9).any()
        # A wall can only hold a coordinate back.
        assert (np.minimum(position, wanted) <= end).all()
        assert (end <= np.maximum(position, wanted)).all()
        # Nothing holds it back where nothing is in the way, nor a corner between two fine points.
        if not inside_a_wall(position + fine * (wanted - position), margin=-0.01).any():
            np.testing.assert_array_equal(end, wanted)
        position = end


@settings(max_examples=100, deadline=None)
@given(
    wall=st.sampled_from(WALLS),
    along=st.floats(0.0, 1.0),
    face=st.sampled_from(range(4)),
    gap=st.floats(0.0, 0.3),
    action=st.tuples(component, component),
)
def test_no_step_from_beside_a_wall_enters_one(wall, along, face, gap, action):
    x0, x1, y0, y1 = wall
    start = (
        (x0 - gap, y0 + along * (y1 - y0)),
        (x1 + gap, y0 + along * (y1 - y0)),
        (x0 + along * (x1 - x0), y0 - gap),
        (x0 + along * (x1 - x0), y1 + gap),
    )[face]
    if np.abs(start).max() > 4.0 or inside_a_wall([start]).any():
        return
    end = stepped(ROOMS, start, action)
    assert not inside_a_wall([end]).any()
    fine = np.array(start) + np.linspace(0.0, 1.0, 200)[:, None] * (end - start)
    assert not inside_a_wall(fine, margin=1e-9).any()
