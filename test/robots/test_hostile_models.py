"""Models made to cost time and memory: each ends in a sentence, or is read all the same."""

import subprocess
import sys
import textwrap

from mher_ros.errors import MherError
from mher_ros.robots.arm_model import ArmModel, read_description
from mher_ros.robots.description import DescriptionError
from mher_ros.robots.model_file import find_file, MAX_BYTES
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.urdf_scene import scene_of
import mujoco
import numpy as np
import pytest
import yaml


def urdf(*joints, links='a b c d', more=''):
    """Return a URDF with (parent, child) as its joints, named by their number."""
    return (
        '<robot name="arm">'
        + ''.join(f'<link name="{link}"/>' for link in links.split())
        + ''.join(
            f'<joint name="j{index}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{child}"/><limit lower="-1" upper="1" velocity="1"/></joint>'
            for index, (parent, child) in enumerate(joints)
        )
        + f'{more}</robot>'
    )


def mjcf(content, world=''):
    return f"""<mujoco>{content}<worldbody><body name="b"><joint name="j0" range="-1 1"/>
      <geom size="0.1"/><site name="tip"/>{world}</body></worldbody></mujoco>"""


def entities():
    levels = ''.join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 10))
    return f'<!DOCTYPE robot [<!ENTITY a0 "lol">{levels}]><robot name="&a9;"/>'


def chain(count):
    links = [f'l{index}' for index in range(count + 1)]
    return urdf(*zip(links, links[1:], strict=False), links=' '.join(links))


REFUSED = {
    'cycle beside the root': urdf(('b', 'c'), ('c', 'd'), ('d', 'b')),
    'link below itself': urdf(('a', 'b'), ('c', 'c'), links='a b c'),
    'cycle without a root': urdf(('a', 'b'), ('b', 'a'), links='a b'),
    'two parents': urdf(('a', 'c'), ('b', 'c'), links='a b c'),
    'entities': entities(),
    'external entity': '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot>&x;</robot>',
    '600 joints': chain(600),
    '100 joints that move': chain(100),
    'many elements': f'<robot>{"<link/>" * 100_000}</robot>',
    'many attributes': '<robot ' + ' '.join(f'a{n}=""' for n in range(90_000)) + '/>',
    'deep elements': f'<robot>{"<link>" * 5000}{"</link>" * 5000}</robot>',
    'deep bodies': mjcf('', '<body>' * 5000 + '</body>' * 5000),
    'much text': f'<robot>{"x" * 20_000_000}</robot>',
    'a comment without end': f'<robot><!--{"-" * (MAX_BYTES - 20)}',
    'lone surrogate': '<robot name="\ud800"/>',
    'control characters': '<robot name="\x00\x01"/>',
    'digits': urdf(('a', 'b'), links='a b').replace('"1"', f'"{"9" * 400}"'),
    'far away': urdf(('a', 'b'), ('b', 'c'), links='a b c').replace(
        '<limit', '<origin xyz="1e308 1e308 1e308"/><limit'
    ),
    'joints of one name': urdf(('a', 'b'), ('b', 'c'), links='a b c').replace('j1', 'j0'),
    'replicate': mjcf('', '<replicate count="100000000"><geom size="1"/></replicate>'),
    'replicate 1e8': mjcf('', '<replicate count="1e8"><geom size="1"/></replicate>'),
    'composite': mjcf('', '<composite type="grid" count="9999 9999 1"/>'),
    'flexcomp': mjcf('', '<flexcomp name="f" type="grid" count="9999 9999 9999"/>'),
    'attach': mjcf('', '<attach model="m" prefix="p"/>'),
    'keyframes': mjcf('<size nkey="2000000000"/>'),
    'height field': mjcf(
        '<asset><hfield name="h" nrow="2000000000" ncol="2000000000" size="1 1 1 1"/></asset>'
    ),
    'many sites': mjcf('', '<site/>' * 19_000),
    'include': mjcf('<include file="/etc/passwd"/>'),
}
HARMLESS = {
    'texture': mjcf(
        '<asset><texture name="t" type="2d" builtin="flat" width="65000" height="65000"/></asset>'
    ),
    'memory': mjcf('<size memory="900G" njmax="2000000000"/>'),
    'sensors': mjcf('<sensor><user dim="2000000000"/></sensor>'),
    'missing mesh': mjcf('<asset><mesh name="m" file="none.stl"/></asset>'),
    'plugin': mjcf('<extension><plugin plugin="none"/></extension>'),
}


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / 'arm.yaml'
    limits = {'j0': {'velocity': 1.0}}
    keys = {'model': 'arm.xml', 'tool_frame': 'tip', 'joints': ['j0'], 'joint_limits': limits}
    path.write_text(yaml.safe_dump({**keys, 'output': 'twist'}))
    return load_robot(path)


def with_tool(text):
    """Return the text with its last link or body called as the robot's tool."""
    for name in ('l600', 'l100', 'd', 'c', 'b'):
        if f'<link name="{name}"/>' in text:
            return text.replace(f'"{name}"', '"tip"')
    return text


@pytest.mark.parametrize('name', REFUSED)
def test_a_hostile_model_is_refused_as_a_text_and_as_a_file(robot, name):
    text = with_tool(REFUSED[name])
    with pytest.raises(DescriptionError) as told:
        ArmModel(robot, text)
    assert len(str(told.value)) < 10_000
    (robot.folder / 'arm.xml').write_bytes(text.encode(errors='surrogatepass'))
    with pytest.raises(MherError):
        ArmModel(robot)


@pytest.mark.parametrize('name', HARMLESS)
def test_what_has_nothing_to_do_with_the_kinematics_is_not_built(robot, name):
    arm = ArmModel(robot, HARMLESS[name])
    assert arm.joint_names == ('j0',)
    assert arm.unprotected == ''
    assert {part.name for part in arm.obstacle_slots().parts} == {'', 'b'}


@pytest.mark.parametrize(
    'content', [b'\xff\xfe<robot/>', b'<robot name="\xe9"/>', b'\x00' * 1000, b'']
)
def test_a_file_that_is_no_text_is_refused(robot, content):
    (robot.folder / 'arm.xml').write_bytes(content)
    with pytest.raises(DescriptionError):
        ArmModel(robot)


def test_a_file_that_includes_itself_is_refused(robot):
    (robot.folder / 'arm.xml').write_text(mjcf('<include file="arm.xml"/>'))
    with pytest.raises(DescriptionError, match=r'arm\.xml'):
        ArmModel(robot)


def test_drawing_a_model_is_bounded_as_well(tmp_path):
    boxes = '<collision><geometry>' + '<box size="1 1 1"/>' * 9000 + '</geometry></collision>'
    for text in (
        urdf(('a', 'b'), links='a b', more=f'<link name="c">{boxes}</link>'),
        urdf(links='a', more='').replace(
            '<link name="a"/>',
            '<link name="a"><visual><geometry><sphere/></geometry></visual></link>',
        ),
        *REFUSED.values(),
    ):
        if not text.startswith('<mujoco') and text not in (
            REFUSED['100 joints that move'],
            REFUSED['joints of one name'],
            REFUSED['digits'],
        ):
            with pytest.raises(DescriptionError):
                scene_of(text, '', tmp_path)
    assert scene_of(REFUSED['100 joints that move'], 'l0', tmp_path).njnt == 100


def test_all_of_them_take_little_time_and_memory(tmp_path):
    """Read one after the other in a process of its own, which says what it took."""
    program = textwrap.dedent(
        """
        import resource, sys, time
        sys.path.insert(0, sys.argv[1])
        from mher_ros.robots.arm_model import read_description
        from mher_ros.errors import MherError
        from test_hostile_models import HARMLESS, REFUSED
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name, text in {**REFUSED, **HARMLESS}.items():
            began = time.process_time()
            try:
                read_description(None, text)
            except MherError:
                pass
            took = time.process_time() - began
            assert took < 2.0, (name, took)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    )
    folder = __file__.rpartition('/')[0]
    done = subprocess.run(
        [sys.executable, '-c', program, folder],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300_000  # KiB


def test_an_mjcf_file_of_many_parts_is_read_as_mujoco_reads_it(robot):
    """Classes, includes, meshes, actuators and a mocap body: Fetch as its task has it."""
    path = find_file(
        'python://gymnasium-robotics/gymnasium_robotics/envs/assets/fetch/reach.xml', robot.folder
    )
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    names = [
        f'robot0:{name}_joint'
        for name in ('shoulder_pan', 'shoulder_lift', 'upperarm_roll', 'elbow_flex')
    ]
    (robot.folder / 'fetch.yaml').write_text(
        yaml.safe_dump(
            {
                'model': str(path),
                'tool_frame': 'robot0:grip',
                'base_frame': 'robot0:torso_lift_link',
                'joints': names,
                'joint_limits': {name: {'velocity': 1.0} for name in names},
                'output': 'twist',
            }
        )
    )
    arm = ArmModel(load_robot(robot.folder / 'fetch.yaml'))
    rng = np.random.default_rng(0)
    for _ in range(5):
        state = rng.uniform(-0.5, 0.5, len(arm.state_names))
        for name, position in zip(arm.state_names, state, strict=True):
            data.joint(name).qpos = position
        mujoco.mj_kinematics(model, data)
        base, tool = data.body('robot0:torso_lift_link'), data.site('robot0:grip')
        expected = base.xmat.reshape(3, 3).T @ (tool.xpos - base.xpos)
        np.testing.assert_allclose(arm.tool_pose(state)[0], expected, atol=1e-12)
    limited = model.joint(names[1])
    np.testing.assert_array_equal((arm.lower[1], arm.upper[1]), limited.range)
    assert read_description(load_robot(robot.folder / 'fetch.yaml')).root == 'world'
