"""Markers as the page draws them."""

from geometry_msgs.msg import Point
from mher_ros.ros.common.markers import deployment_markers, drawings_of, Motion
from mher_ros.ros.common.status import DeploymentStatus
import numpy as np
import pytest
from visualization_msgs.msg import Marker, MarkerArray

LOW, HIGH = np.array((1.0, 0.5, 0.4)), np.array((1.5, 0.9, 0.7))
GOAL = (1.2, 0.7, 0.5)


def markers(goal=GOAL, velocity=(0.1, 0.0, 0.0)):
    status = DeploymentStatus(
        frame='world',
        threshold=0.02,
        workspace=(LOW, HIGH),
        box=(LOW - 0.1, HIGH + 0.1),
    )
    return deployment_markers(status, Motion((1.3, 0.7, 0.6), velocity, goal))


def test_what_policy_node_shows_is_drawn():
    drawings = {name: drawn for name, drawn in drawings_of(markers()).items() if drawn}
    kinds = {name: drawing.kind for name, drawing in drawings.items()}
    assert kinds['goal_0'] == 'ball'
    assert kinds['workspace_0'] == kinds['box_0'] == 'lines'
    assert kinds['motion_0'] == 'arrow'
    assert drawings['goal_0'].size == pytest.approx(0.02)
    assert drawings['goal_0'].points.tolist() == [list(GOAL)]
    assert len(drawings['workspace_0'].points) == 24


def test_obstacles_are_surfaces_as_large_as_the_safety_filter_has_them():
    box, pillar = (Marker(type=kind, ns='it', id=kind) for kind in (Marker.CUBE, Marker.CYLINDER))
    for marker in (box, pillar):
        marker.scale.x, marker.scale.y, marker.scale.z = 0.1, 0.2, 0.4
        marker.pose.position.x = 0.5
        marker.color.a = 1.0
    drawings = drawings_of(MarkerArray(markers=[box, pillar]))
    drawn_box, drawn_pillar = drawings.values()
    assert drawn_box.kind == drawn_pillar.kind == 'surface'
    assert drawn_box.pose == drawn_pillar.pose == (0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(np.ptp(drawn_box.points, axis=0), (0.1, 0.2, 0.4))
    radii = np.linalg.norm(drawn_pillar.points[:, :2], axis=1)
    assert radii == pytest.approx(0.1, rel=0.06) and radii.min() >= 0.1
    assert np.ptp(drawn_pillar.points[:, 2]) == pytest.approx(0.4)


def test_triangles_are_drawn_where_their_marker_is():
    marker = Marker(type=Marker.TRIANGLE_LIST, ns='it')
    marker.scale.x = marker.scale.y = marker.scale.z = 1.0
    marker.points = [Point(x=float(n)) for n in range(4)]  # one too many
    marker.pose.position.z = 2.0
    (drawn,) = drawings_of(MarkerArray(markers=[marker])).values()
    assert drawn.kind == 'surface' and len(drawn.points) == 3
    assert drawn.pose[2] == 2.0
    marker.pose.orientation.w = float('nan')
    assert list(drawings_of(MarkerArray(markers=[marker])).values()) == [None]


def test_what_is_deleted_is_taken_away():
    drawings = drawings_of(markers(goal=None, velocity=(0.0, 0.0, 0.0)))
    assert drawings['goal_0'] is None
    assert drawings['motion_0'] is None


@pytest.mark.parametrize('number', [np.nan, np.inf])
def test_numbers_that_are_none_are_not_drawn(number):
    array = markers()
    array.markers[0].pose.position.x = number
    assert drawings_of(array)['goal_0'] is None


def test_a_marker_that_the_page_cannot_draw_is_left_out():
    text = Marker(type=Marker.TEXT_VIEW_FACING, ns='text', text='hello')
    cloud = Marker(type=Marker.POINTS, ns='virtual_goals', points=[Point(x=1.0)])
    cloud.scale.x = 0.0
    assert set(drawings_of(MarkerArray(markers=[text, cloud])).values()) == {None}
