"""
The RViz layouts, against what RViz 2 Jazzy can read.

Classes and keys are those of the repository ros2/rviz, branch jazzy (14.1): the classes of
rviz_default_plugins/plugins_description.xml and the properties that the displays declare.
"""

from pathlib import Path

import pytest
import yaml

NAMESPACE = 'goal_marker'
"""That policy_node offers; test_interactive_goal.py finds the marker there."""

FOLDER = Path(__file__).resolve().parents[3] / 'config' / 'rviz'
PANELS = {
    f'rviz_common/{name}'
    for name in ('Displays', 'Help', 'Selection', 'Time', 'Tool Properties', 'Transformation',
                 'Views')
}  # fmt: skip
COMMON_KEYS = {'Class', 'Enabled', 'Name', 'Value'}
DISPLAYS = {
    'Grid': {'Alpha', 'Cell Size', 'Color', 'Line Style', 'Normal Cell Count', 'Offset', 'Plane',
             'Plane Cell Count', 'Reference Frame'},
    'InteractiveMarkers': {'Enable Transparency', 'Interactive Markers Namespace', 'Show Axes',
                           'Show Descriptions', 'Show Visual Aids'},
    'MarkerArray': {'Namespaces', 'Topic'},
    'RobotModel': {'Alpha', 'Collision Enabled', 'Description File', 'Description Source',
                   'Description Topic', 'Links', 'Mass Properties', 'TF Prefix',
                   'Update Interval', 'Visual Enabled'},
}  # fmt: skip
TOOLS = {
    'FocusCamera', 'Interact', 'Measure', 'MoveCamera', 'PublishPoint', 'Select', 'SetGoal',
    'SetInitialPose',
}  # fmt: skip
ORBIT_KEYS = {
    'Class', 'Distance', 'Enable Stereo Rendering', 'Focal Point', 'Focal Shape Fixed Size',
    'Focal Shape Size', 'Invert Z Axis', 'Name', 'Near Clip Distance', 'Pitch', 'Target Frame',
    'Value', 'Yaw',
}  # fmt: skip
POLICIES = {
    'Durability Policy': {'System Default', 'Transient Local', 'Volatile'},
    'History Policy': {'Keep All', 'Keep Last', 'System Default'},
    'Reliability Policy': {'Best Effort', 'Reliable', 'System Default'},
}


@pytest.fixture(params=sorted(FOLDER.glob('*.rviz')), ids=lambda path: path.name)
def layout(request):
    return yaml.safe_load(request.param.read_text())


def displays(layout):
    return {display['Name']: display for display in layout['Visualization Manager']['Displays']}


def plugin(part):
    package, _, name = part['Class'].partition('/')
    assert package == 'rviz_default_plugins'
    return name


def by_class(layout):
    found = {}
    for display in layout['Visualization Manager']['Displays']:
        found.setdefault(plugin(display), []).append(display)
    return found


def test_there_are_layouts():
    assert {path.name for path in FOLDER.iterdir()} == {'deploy.rviz', 'train.rviz'}


def test_panels_displays_tools_and_views_are_ones_that_rviz_knows(layout):
    manager = layout['Visualization Manager']
    assert {panel['Class'] for panel in layout['Panels']} <= PANELS
    assert len(displays(layout)) == len(manager['Displays'])
    for display in manager['Displays']:
        assert set(display) <= COMMON_KEYS | DISPLAYS[plugin(display)]
        assert display['Value'] is display['Enabled']
    assert {plugin(tool) for tool in manager['Tools']} <= TOOLS
    views = manager['Views']
    assert len({view['Name'] for view in views['Saved']}) == len(views['Saved'])
    for view in (views['Current'], *views['Saved']):
        assert plugin(view) == 'Orbit'
        assert set(view) <= ORBIT_KEYS
        assert set(view['Focal Point']) == set('XYZ')
        assert view['Target Frame'] == '<Fixed Frame>'
        assert abs(view['Pitch']) < 1.57


def test_topics_are_relative_and_say_their_quality_of_service_as_rviz_does(layout):
    manager = layout['Visualization Manager']
    topics = [
        part[key]
        for part in (*manager['Displays'], *manager['Tools'])
        for key in ('Topic', 'Description Topic')
        if key in part
    ]
    assert topics
    for topic in topics:
        assert set(topic) == {'Depth', 'Value', *POLICIES}
        assert not topic['Value'].startswith('/')
        assert isinstance(topic['Depth'], int)
        for policy, choices in POLICIES.items():
            assert topic[policy] in choices


def test_marker_displays_receive_as_the_nodes_send(layout):
    for display in by_class(layout)['MarkerArray']:
        # Collision shapes cost the node something: people choose them.
        assert display['Enabled'] is (display['Name'] != 'Collision shapes')
        topic = display['Topic']
        assert (topic['Reliability Policy'], topic['Durability Policy'], topic['Depth']) == (
            'Reliable',
            'Volatile',
            5,
        )


def test_training_shows_arm_goal_and_grid_in_the_world_and_keeps_the_description_for_later():
    layout = yaml.safe_load((FOLDER / 'train.rviz').read_text())
    manager = layout['Visualization Manager']
    assert manager['Global Options']['Fixed Frame'] == 'world'
    shown = by_class(layout)
    assert {display['Topic']['Value'] for display in shown['MarkerArray']} == {
        'robot_markers',
        'train_node/markers',
        'train_node/collision_markers',
    }
    (description,) = shown['RobotModel']
    assert not description['Enabled']
    assert description['Description Topic']['Value'] == 'robot_description'
    assert description['Description Topic']['Durability Policy'] == 'Transient Local'
    assert shown['Grid'][0]['Enabled']
    (point,) = [tool for tool in manager['Tools'] if plugin(tool) == 'PublishPoint']
    assert point['Topic']['Value'] == 'clicked_point'


def test_deployment_shows_arm_goal_and_motion_and_lets_people_set_goals_in_three_ways():
    layout = yaml.safe_load((FOLDER / 'deploy.rviz').read_text())
    manager, shown = layout['Visualization Manager'], by_class(layout)
    arm, deployment, shapes = shown['MarkerArray']
    assert arm['Topic']['Value'] == 'robot_markers'
    assert deployment['Topic']['Value'] == 'policy_node/markers'
    namespaces = {'box', 'goal', 'motion', 'obstacles', 'scene', 'workspace'}
    assert set(deployment['Namespaces']) == namespaces
    assert shapes['Topic']['Value'] == 'policy_node/collision_markers'
    assert set(shapes['Namespaces']) == {'arm', 'nearest'}
    (marker,) = shown['InteractiveMarkers']
    assert marker['Enabled']
    assert marker['Interactive Markers Namespace'] == NAMESPACE
    tools = {plugin(tool): tool for tool in manager['Tools']}
    assert tools['SetGoal']['Topic']['Value'] == 'goal_pose'
    assert tools['PublishPoint']['Topic']['Value'] == 'clicked_point'
    for name in ('SetGoal', 'PublishPoint'):
        topic = tools[name]['Topic']
        assert topic['Reliability Policy'] == 'Reliable'
        assert topic['Durability Policy'] == 'Volatile'
    assert 'Interact' in tools
