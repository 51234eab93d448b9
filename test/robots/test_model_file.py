"""Addresses of models."""

from mher_ros.robots.model_file import find_file, ModelFileError
import pytest

UR5 = 'robots/ur_description/urdf/ur5_robot.urdf'


def test_a_path_is_relative_to_the_file_that_names_it(tmp_path):
    (tmp_path / 'arm.urdf').touch()
    assert find_file('arm.urdf', tmp_path) == tmp_path / 'arm.urdf'
    assert find_file(f'file://{tmp_path}/arm.urdf', tmp_path / 'other') == tmp_path / 'arm.urdf'
    with pytest.raises(ModelFileError, match=r'other\.urdf names a file; there is none'):
        find_file('other.urdf', tmp_path)


def test_a_ros_package_is_found_on_the_path_of_ament(tmp_path, monkeypatch):
    share = tmp_path / 'second' / 'share' / 'my_arm'
    share.mkdir(parents=True)
    (share / 'arm.urdf').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{tmp_path}/first:{tmp_path}/second')
    assert find_file('package://my_arm/arm.urdf', tmp_path) == share / 'arm.urdf'
    with pytest.raises(ModelFileError, match='needs the ROS package your_arm'):
        find_file('package://your_arm/arm.urdf', tmp_path)


def test_a_package_is_found_around_the_file_that_names_it(tmp_path, monkeypatch):
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    folder = tmp_path / 'my_arm' / 'urdf'
    folder.mkdir(parents=True)
    (tmp_path / 'my_arm' / 'link.stl').touch()
    assert find_file('package://my_arm/link.stl', folder) == tmp_path / 'my_arm' / 'link.stl'


def test_a_file_of_a_python_package_is_found_wherever_pip_put_it(tmp_path):
    assert find_file(f'python://example-robot-data/{UR5}', tmp_path).name == 'ur5_robot.urdf'


@pytest.mark.parametrize(
    ('address', 'complaint'),
    [
        ('python://no-such-project/arm.urdf', 'try pip install no-such-project'),
        ('python://example-robot-data/no.urdf', 'ends in no.urdf is expected; got none'),
        ('python://example-robot-data/README.md', 'one file .* is expected; got .*,'),
        ('python://example-robot-data', 'python://NAME/PATH is expected'),
        ('package:///arm.urdf', 'package://NAME/PATH is expected'),
        ('~nobody-of-that-name/arm.urdf', 'nobody-of-that-name'),
        ('a' * 5000, 'names no file'),
        (f'package://{"a" * 5000}/arm.urdf', 'names no file'),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(tmp_path, address, complaint):
    with pytest.raises(ModelFileError, match=complaint):
        find_file(address, tmp_path)
