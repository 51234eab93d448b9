"""An arm on the page: drawn from its URDF, moved by its joints."""

from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.view.scene import ArmScene, ArmSceneError
from mher_ros.view.server import PageServer
import numpy as np
import pytest

TWO_LINKS = """
<robot name="two">
  <link name="floor"/>
  <link name="foot"/>
  <link name="arm"><visual><geometry><box size="0.1 0.2 0.3"/></geometry></visual></link>
  <link name="tip"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
  <joint name="stand" type="fixed">
    <parent link="floor"/><child link="foot"/><origin xyz="0 0 0.5"/>
  </joint>
  <joint name="turn" type="revolute">
    <parent link="foot"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="arm"/><child link="tip"/><origin xyz="1 0 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" velocity="1" effort="1"/>
  </joint>
</robot>
"""


@pytest.fixture
def server():
    page = PageServer(port=0)
    yield page.viser
    page.close()


def poses(server):
    """Return positions of all nodes below the arm by name."""
    handles = server.scene._handle_from_node_name
    return {name: np.array(node.position) for name, node in handles.items() if '/arm' in name}


def test_links_are_where_the_joints_have_them(server):
    arm = ArmScene(server, TWO_LINKS)
    arm.move({'turn': np.pi / 2.0, 'slide': 0.5})
    places = [place for name, place in poses(server).items() if name.count('/') == 2]
    assert len(places) == 2
    assert any(np.allclose(place, (0.0, 1.5, 0.5), atol=1e-6) for place in places), places


def test_joints_of_others_and_numbers_that_are_none_move_nothing(server):
    arm = ArmScene(server, TWO_LINKS)
    arm.move({'turn': 1.0})
    before = poses(server)
    arm.move({'gripper': 1.0, 'turn': float('nan'), 'slide': float('inf')})
    after = poses(server)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_joint_that_trembles_sends_nothing(server):
    arm = ArmScene(server, TWO_LINKS)
    arm.move({'turn': 1.0})
    buffer = server._websock_server._broadcast_buffer
    before = buffer.message_counter
    arm.move({'turn': 1.0 + 1e-6})
    assert buffer.message_counter == before


def test_a_slow_motion_is_shown_all_the_same(server):
    arm = ArmScene(server, TWO_LINKS)
    buffer = server._websock_server._broadcast_buffer
    before = buffer.message_counter
    for step in range(200):
        arm.move({'turn': 1e-6 * step})
    assert buffer.message_counter > before


def test_the_page_has_the_axes_of_the_base(server):
    arm = ArmScene(server, TWO_LINKS, 'foot')
    assert arm.base == 'foot'
    assert arm.links == {'floor', 'foot', 'arm', 'tip'}
    places = [place for name, place in poses(server).items() if name.count('/') == 2]
    assert any(np.allclose(place, (1.0, 0.0, 0.0)) for place in places), places


def test_fetch_is_drawn_with_its_meshes(server):
    plant = JointPlant('fetch_reach')
    ArmScene(server, plant.description('fetch'))
    names = [type(node).__name__ for node in server.scene._handle_from_node_name.values()]
    assert names.count('MeshHandle') > 10


def test_an_arm_that_is_taken_away_leaves_nothing(server):
    arm = ArmScene(server, TWO_LINKS)
    arm.remove()
    assert not [name for name in poses(server) if name.count('/') > 1]


def test_an_arm_whose_meshes_are_not_found_is_there_and_empty(server):
    shape = '<geometry><box size="0.1 0.2 0.3"/></geometry>'
    missing = '<geometry><mesh filename="package://nowhere/arm.stl"/></geometry>'
    bare = TWO_LINKS.replace(shape, missing).replace('<sphere radius="0.1"/>', missing[10:-11])
    arm = ArmScene(server, bare)
    assert arm.is_empty
    assert np.isfinite(arm.centre()).all()
    arm.move({'turn': 1.0})
    assert not ArmScene(server, TWO_LINKS).is_empty


@pytest.mark.parametrize(
    ('urdf', 'base', 'said'),
    [
        ('no xml', '', 'syntax error'),
        ('<robot name="none"/>', '', 'one root link'),
        (TWO_LINKS, 'elbow', 'elbow'),
        (TWO_LINKS, 'tip', 'fixed to the arm'),
    ],
)
def test_what_cannot_be_drawn_is_said(server, urdf, base, said):
    with pytest.raises(ArmSceneError, match=said):
        ArmScene(server, urdf, base)
