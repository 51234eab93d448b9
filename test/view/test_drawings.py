"""Simple things on the page: what is sent to browsers, and what is not sent again."""

from mher_ros.view.drawings import box_edges, Drawing, Drawings
from mher_ros.view.server import PageServer
import numpy as np
import pytest

RED = (1.0, 0.0, 0.0, 1.0)


@pytest.fixture
def server():
    page = PageServer(port=0)
    yield page.viser
    page.close()


def ball(place=(0.0, 0.0, 0.0), rgba=RED, size=0.1):
    return Drawing('ball', np.array([place]), rgba, size)


def shown(server):
    """Return the names of what is on the page."""
    messages = server._websock_server._broadcast_buffer.message_from_id.values()
    names = {}
    for message in messages:
        name = getattr(message, 'name', '')
        if name.startswith('/drawings/'):
            names[name] = 'Remove' not in type(message).__name__
    return {name.removeprefix('/drawings/') for name, is_there in names.items() if is_there}


def count(server):
    """Return how many messages were ever sent to all browsers."""
    return server._websock_server._broadcast_buffer.message_counter


@pytest.mark.parametrize(
    ('kind', 'points'),
    [
        ('ball', [[0, 0, 0]]),
        ('lines', [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]),
        ('strip', [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        ('arrow', [[0, 0, 0], [1, 0, 0]]),
        ('cloud', [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        ('surface', [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
    ],
)
def test_each_kind_comes_changes_and_goes(server, kind, points):
    drawings = Drawings(server)
    drawings.show('it', Drawing(kind, np.array(points, float), RED, 0.01))
    assert shown(server) == {'it'}
    before = count(server)
    drawings.show('it', Drawing(kind, np.array(points, float) + 1.0, RED, 0.01))
    assert count(server) > before
    assert shown(server) == {'it'}
    drawings.show('it', None)
    assert shown(server) == set()


def test_what_does_not_change_is_not_sent_again(server):
    drawings = Drawings(server)
    drawings.show('it', ball())
    before = count(server)
    drawings.show('it', ball())
    assert count(server) == before


def test_of_a_surface_that_moves_only_the_pose_is_sent(server):
    drawings, triangle = Drawings(server), np.eye(3)
    drawings.show('it', Drawing('surface', triangle, RED))
    surface = server.scene._handle_from_node_name['/drawings/it']
    pose = (1.0, 2.0, 3.0, 0.6, 0.8, 0.0, 0.0)
    before = count(server)
    drawings.show('it', Drawing('surface', triangle, RED, pose=pose))
    assert server.scene._handle_from_node_name['/drawings/it'] is surface
    assert (*surface.position, *surface.wxyz) == pose
    assert count(server) == before + 2


def test_a_line_of_one_point_is_not_drawn(server):
    drawings = Drawings(server)
    drawings.show('trail', Drawing('strip', np.zeros((2, 3)), RED, 0.01))
    drawings.show('trail', Drawing('strip', np.zeros((1, 3)), RED, 0.01))
    assert shown(server) == set()


def test_a_ball_of_another_colour_takes_the_place_of_the_one_before(server):
    drawings = Drawings(server)
    drawings.show('goal', ball())
    drawings.show('goal', ball(rgba=(0.0, 1.0, 0.0, 1.0)))
    (message,) = (
        message
        for message in server._websock_server._broadcast_buffer.message_from_id.values()
        if type(message).__name__ == 'IcosphereMessage'
    )
    assert tuple(message.props.color) == (0, 255, 0)


def test_only_what_has_the_prefix_is_cleared(server):
    drawings = Drawings(server)
    drawings.show('train_goal', ball())
    drawings.show('policy_goal', ball())
    drawings.clear('train')
    assert shown(server) == {'policy_goal'}


def test_a_box_has_twelve_edges_of_its_own_lengths():
    edges = box_edges(np.array([0.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0])).reshape(-1, 2, 3)
    lengths = np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1)
    assert sorted(lengths) == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
    assert len({tuple(map(tuple, edge)) for edge in edges}) == 12


def test_a_rectangle_has_four_edges():
    edges = box_edges((0.0, 1.0), (2.0, 4.0)).reshape(-1, 2, 2)
    assert sorted(np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1)) == [2.0, 2.0, 3.0, 3.0]
    assert {tuple(corner) for edge in edges for corner in edge} == {(0, 1), (2, 1), (0, 4), (2, 4)}
