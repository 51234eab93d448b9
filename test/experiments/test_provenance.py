"""Facts about the machine and the libraries."""

import subprocess
import sys

from mher_ros.experiments import provenance


def test_processor_and_versions_are_facts(monkeypatch, tmp_path):
    path = tmp_path / 'cpuinfo'
    path.write_text('processor\t: 0\nmodel name\t: Abacus 9: 3 GHz\nmodel name\t: other\n')
    monkeypatch.setattr(provenance, 'CPU_INFO', path)
    facts = provenance.machine_facts()
    assert facts['processor'] == 'Abacus 9: 3 GHz'
    assert 'gymnasium-robotics ' in facts['versions']


def test_what_is_not_installed_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, 'CPU_INFO', tmp_path / 'none')
    monkeypatch.setattr(provenance, 'OPTIONAL', ('no-such-package',))
    facts = provenance.machine_facts()
    assert 'no-such-package' not in facts['versions']
    assert facts['processor']
    assert 'middleware' not in facts


def test_the_middleware_is_a_fact_if_rclpy_is_installed(monkeypatch):
    monkeypatch.setattr(provenance, 'OPTIONAL', ('rclpy',))
    monkeypatch.setattr(provenance.importlib.metadata, 'version', lambda name: '9.9')
    monkeypatch.setenv('RMW_IMPLEMENTATION', 'rmw_pigeon')
    facts = provenance.machine_facts()
    assert facts['middleware'] == 'rmw_pigeon'
    assert 'rclpy 9.9' in facts['versions']


def test_nothing_of_it_is_imported():
    code = (
        'import sys\n'
        'from mher_ros.experiments.provenance import machine_facts\n'
        'machine_facts()\n'
        'assert not {"rclpy", "stable_baselines3", "gymnasium_robotics"} & set(sys.modules)\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)
