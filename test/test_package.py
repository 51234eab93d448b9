"""The package as colcon, pip and Gymnasium see it."""

from importlib.metadata import entry_points, version
from pathlib import Path
import re
import subprocess
import sys

from catkin_pkg.package import parse_package
import mher_ros
from mher_ros.robots.outputs import OUTPUTS
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope='module')
def manifest():
    # Raises on what would make colcon take this for a plain Python package, such as a bad e-mail.
    return parse_package(str(ROOT / 'package.xml'))


def test_manifest_is_that_of_an_ament_python_package(manifest):
    assert manifest.name == 'mher_ros'
    assert manifest.get_build_type() == 'ament_python'
    assert manifest.licenses == ['Apache-2.0']
    assert manifest.maintainers


def test_manifest_names_every_package_of_ros_that_is_imported(manifest):
    named = {dependency.name for dependency in manifest.exec_depends}
    imported = {
        match[1]
        for path in (ROOT / 'mher_ros').rglob('*.py')
        for match in re.finditer(r'^ *(?:from|import) (\w+)', path.read_text(), re.MULTILINE)
    }
    of_ros = {name for name in imported if re.search('_(msgs|srvs|interfaces|py(thon)?)$', name)}
    of_ros |= imported & {'ament_index_python', 'launch', 'launch_ros', 'rclpy'}
    of_ros |= {output.message.split('/')[0] for output in OUTPUTS.values() if output.message}
    assert {'lifecycle_msgs', 'rclpy', 'std_srvs'} <= of_ros
    assert of_ros - named == set()


def test_version_of_the_manifest_is_the_installed_one(manifest):
    assert version('mher_ros') == manifest.version
    assert mher_ros.__version__ == manifest.version


def test_changelog_has_a_section_for_the_version_or_the_next(manifest):
    headings = (ROOT / 'CHANGELOG.rst').read_text().splitlines()
    assert any(line == 'Forthcoming' or line.startswith(manifest.version) for line in headings)


@pytest.mark.parametrize(('group', 'name'), [('console_scripts', 'mher')])
def test_entry_point_leads_to_a_function(group, name):
    # A set: the same point is seen twice where a colcon build lies over an editable installation.
    (value,) = {point.value for point in entry_points(group=group, name=name)}
    assert value.startswith('mher_ros.')
    (point, *_) = entry_points(group=group, name=name)
    assert callable(point.load())


def test_every_folder_of_code_is_a_package():
    # find_packages() in setup.py passes silently over a folder without __init__.py.
    folders = {path.parent for path in (ROOT / 'mher_ros').rglob('*.py')}
    assert folders
    assert [folder for folder in folders if not (folder / '__init__.py').exists()] == []


@pytest.mark.parametrize(
    ('package', 'unwanted'),
    [
        ('mher_ros.policy', {'gymnasium', 'mujoco', 'rclpy', 'torch'}),
        ('mher_ros.tasks', {'metaworld', 'rclpy', 'torch'}),
    ],
)
def test_importing_a_package_loads_nothing_heavy(package, unwanted):
    # lint-imports cannot see this: it lets mher_ros.policy.export import torch, and so would not
    # notice if the rest of mher_ros.policy imported that module.
    code = f'import sys, {package}; print(*sorted({unwanted} & set(sys.modules)))'
    loaded = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.split() == []


def test_package_declares_its_types():
    assert (Path(mher_ros.__file__).parent / 'py.typed').exists()
