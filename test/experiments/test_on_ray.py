"""The same jobs on a real Ray cluster, two nodes on this machine."""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import os
from pathlib import Path
import signal
import subprocess
import sys

from mher_ros.experiments.executors import EMBEDDED, run_local, run_on_ray
from mher_ros.experiments.jobs import Failure
from mher_ros.options import OptionError
import pytest
from tiny_experiment import FAILING, outcomes, SECONDS_LONG, tiny_jobs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WORKER = 'ray::attempt'
"""What a process of Ray calls itself while it does a job."""
SHARED = Path(__file__).parent.parent / 'shared' / 'runs'
EMBEDDED_RUN = f"""
import sys
sys.path.insert(0, {str(SHARED)!r})
from mher_ros.experiments.executors import run_on_ray
from tiny_experiment import LONG, tiny_jobs

for job, news in run_on_ray(tiny_jobs('her', seeds=(1,), changes=LONG), processes=1):
    print(type(news).__name__, flush=True)
"""


@pytest.fixture(scope='module')
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        for key, value in EMBEDDED.items():
            patch.setenv(key, value)
        pytest.importorskip('ray')
        from ray.cluster_utils import Cluster

        node = {'num_cpus': 1, 'object_store_memory': 100 * 1024**2}
        cluster = Cluster(
            initialize_head=True, head_node_args={**node, 'include_dashboard': False}
        )
        cluster.add_node(**node)
        yield cluster
        cluster.shutdown()


@pytest.fixture
def workers(children):
    """Return a function that gives the processes that do a job below one of these."""

    def find(parents):
        found = []
        for parent in parents:
            for pid in children(parent):
                with contextlib.suppress(OSError):
                    if WORKER in Path(f'/proc/{pid}/cmdline').read_text():
                        found.append((parent, pid))
        return found

    return find


def raylets(cluster):
    return [node.all_processes['raylet'][0].process.pid for node in cluster.list_all_nodes()]


def test_two_nodes_give_the_results_of_one_machine_to_the_bit(cluster, workers, wait_for):
    """One worker is killed and begun again, and one run fails: neither changes the others."""
    jobs = tiny_jobs('mher', 'her', seeds=(1,), changes=SECONDS_LONG)
    bad = tiny_jobs('ddpg', seeds=(1,), recorder=FAILING)

    def busy():
        return workers(raylets(cluster))

    def kill():
        # Two runs at once, where a node has one core each.
        wait_for(lambda: len({node for node, _ in busy()}) == 2)
        ((_, killed), *_) = wait_for(busy)
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: killed not in [pid for _, pid in busy()])

    with ThreadPoolExecutor(1) as thread:
        killing = thread.submit(kill)
        news = list(run_on_ray([*jobs, *bad], cluster.address))
        killing.result()
    assert outcomes(news) == outcomes(run_local(jobs, processes=2))
    ((job, failure),) = [one for one in news if isinstance(one[1], Failure)]
    assert job == bad[0]
    assert failure.reason.startswith("unknown recorder 'nobody'")


def test_a_cluster_of_its_own_listens_on_loopback_and_ends_with_it(
    tmp_path, children, wait_for, workers
):
    pytest.importorskip('ray')
    script = tmp_path / 'embedded.py'
    script.write_text(EMBEDDED_RUN)
    with subprocess.Popen([sys.executable, script]) as experiment:
        wait_for(lambda: workers(children(experiment.pid)))
        started = _family(experiment.pid, children)
        listening = _listening(started)
        experiment.kill()
    assert len(listening) >= 3
    assert {address for address in listening if not _is_loopback(address)} == set()
    wait_for(lambda: not any(Path(f'/proc/{pid}').exists() for pid in started))


def test_without_ray_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(OptionError, match=r"pip install 'mher_ros\[ray\]'"):
        list(run_on_ray(tiny_jobs('her')))


def test_a_cluster_that_is_not_there_is_refused():
    pytest.importorskip('ray')
    script = (
        'from mher_ros.cli import main\n'
        "raise SystemExit(main(['experiment', 'fast_sawyer', '--seeds', '1', '--on', 'ray', "
        "'--ray-address', '127.0.0.1:9']))"
    )
    done = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert 'mher: no Ray cluster at 127.0.0.1:9' in done.stderr


def _family(pid, children):
    return [pid, *(one for child in children(pid) for one in _family(child, children))]


def _listening(pids):
    """Return the addresses, as /proc has them, at which these processes take connections."""
    sockets = set()
    for pid in pids:
        for handle in Path(f'/proc/{pid}/fd').iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(handle))
    found = []
    for table in ('tcp', 'tcp6'):
        for line in Path(f'/proc/net/{table}').read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == '0A' and f'socket:[{fields[9]}]' in sockets:
                found.append(fields[1].split(':')[0])
    return found


def _is_loopback(address):
    ipv6 = {'0' * 24 + '01000000', '0000000000000000FFFF00000100007F'}
    return address in ipv6 or (len(address) == 8 and address.endswith('7F'))
