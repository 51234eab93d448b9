"""
The RViz layouts, against what RViz 2 Jazzy can read.

Classes and keys are those of the repository ros2/rviz, branch jazzy (14.1): the classes of
rviz_default_plugins/plugins_description.xml and the properties that the displays declare.
"""

from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / 'config' / 'rviz'
PANELS = {
    f'rviz_common/{name}'
    for name in ('Displays', 'Help', 'Selection', 'Time', 'Tool Properties', 'Transformation',
                 'Views')
}  # fmt: skip
COMMON_KEYS = {'Class', 'Enabled', 'Name', 'Value'}
DISPLAYS = {
    'Grid': {'Alpha', 'Cell Size', 'Color', 'Line Style', 'Normal Cell Count', 'Offset', 'Plane',
             'Plane Cell Count', 'Reference Frame'},
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


def test_there_is_a_layout():
    assert (FOLDER / 'train.rviz').is_file()


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


def test_training_shows_arm_goal_and_grid_in_the_world_and_keeps_the_description_for_later():
    layout = yaml.safe_load((FOLDER / 'train.rviz').read_text())
    manager = layout['Visualization Manager']
    assert manager['Global Options']['Fixed Frame'] == 'world'
    by_class = {}
    for display in manager['Displays']:
        by_class.setdefault(plugin(display), []).append(display)
    assert {display['Topic']['Value'] for display in by_class['MarkerArray']} == {
        'robot_markers',
        'train_node/markers',
    }
    for display in by_class['MarkerArray']:
        assert display['Enabled']
        topic = display['Topic']
        assert (topic['Reliability Policy'], topic['Durability Policy'], topic['Depth']) == (
            'Reliable',
            'Volatile',
            5,
        )
    (description,) = by_class['RobotModel']
    assert not description['Enabled']
    assert description['Description Topic']['Value'] == 'robot_description'
    assert description['Description Topic']['Durability Policy'] == 'Transient Local'
    assert by_class['Grid'][0]['Enabled']
    (point,) = [tool for tool in manager['Tools'] if plugin(tool) == 'PublishPoint']
    assert point['Topic']['Value'] == 'clicked_point'
