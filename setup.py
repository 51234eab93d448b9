"""Package mher_ros for colcon (ament_python) and pip."""

from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

NAME = 'mher_ros'
# Resolved, because `colcon build --symlink-install` runs a link to this file in its build folder.
ROOT = Path(__file__).resolve().parent

EXTRAS = {
    'train': [
        'gymnasium-robotics>=1.4.2,<2',
        'imageio>=2.30',
        'metaworld>=3.1.1,<4',
        'onnx>=1.17',
        'rich>=13',
        'tensorboard>=2.16',
        'torch>=2.6',
    ],
    'view': ['rich>=13', 'trimesh>=4', 'viser>=1.1,<2'],
    # ROS 2 as wheels, for machines without an installation of it.
    'ros': [
        'ros-ament-index-python',
        'ros-jazzy-common-interfaces',
        'ros-jazzy-lifecycle-msgs',
        'ros-jazzy-rclpy[fastrtps]',
        'ros-rosgraph-msgs',
    ],
    # Figures of experiments and benchmarks, and the baseline of `mher bench learning`.
    'bench': ['matplotlib>=3.6', 'stable-baselines3==2.9.2'],
    # `mher experiment --ray HOST:PORT`.
    'ray': ['ray>=2.50,<3'],
}


def shared_files(folder: str, pattern: str) -> list[tuple[str, list[str]]]:
    """List the files below `folder` as data_files entries that keep its tree under share/."""
    by_folder: dict[str, list[str]] = {}
    for path in sorted((ROOT / folder).rglob(pattern)):
        if path.is_file() and path.name != 'README.md':
            relative = path.relative_to(ROOT)
            by_folder.setdefault(str(relative.parent), []).append(str(relative))
    return [(f'share/{NAME}/{parent}', files) for parent, files in by_folder.items()]


manifest = ElementTree.parse(ROOT / 'package.xml').getroot()
maintainer = manifest.find('maintainer')

setup(
    name=NAME,
    version=manifest.findtext('version'),
    description=' '.join(manifest.findtext('description').split()),
    maintainer=maintainer.text,
    maintainer_email=maintainer.get('email'),
    license=manifest.findtext('license'),
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'experiments/data/*']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        *shared_files('launch', '*.launch.py'),
        *shared_files('config', '*'),
    ],
    python_requires='>=3.10',
    install_requires=[
        # To load and run a policy, and to move an arm with it.
        'daqp>=0.10',
        'gymnasium>=1.2,<2',
        'mink>=0.0.13,<0.1',
        # gymnasium-robotics compares enums in a way that mujoco 3.12 no longer allows.
        'mujoco>=3.3,<3.12',
        'numpy>=1.26,<3',
        'onnxruntime>=1.20',
        'pyyaml>=6',
        'scipy>=1.11',
    ],
    extras_require={
        **EXTRAS,
        'all': sorted({one for extra in EXTRAS.values() for one in extra}),
        # `colcon test` runs pytest only for packages whose test extra names it.
        'test': ['catkin-pkg', 'example-robot-data>=6,<7', 'hypothesis', 'playwright', 'pytest'],
    },
    entry_points={
        'console_scripts': [
            'mher = mher_ros.cli:main',
            'policy_node = mher_ros.ros.common.process:policy_node',
            'sim_node = mher_ros.ros.common.process:sim_node',
            'train_node = mher_ros.ros.common.process:train_node',
            'view_node = mher_ros.ros.common.process:view_node',
        ],
    },
    zip_safe=True,
)
