"""The same jobs on a real Ray cluster, two nodes on this machine."""

from concurrent.futures import ThreadPoolExecutor
import contextlib
import os
from pathlib import Path
import signal
import sys

from mher_ros.cli import main
from mher_ros.experiments.executors import run_local, run_on_ray
from mher_ros.experiments.jobs import Failure
import pytest
from tiny_experiment import FAILING, outcomes, SECONDS_LONG, tiny_jobs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WORKER = 'ray::attempt'
"""What a process of Ray calls itself while it does a job."""
LOOPBACK = {
    # In spite of its name, this keeps a cluster on the loopback interface on Linux, too.
    'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER': '0',
    'RAY_USAGE_STATS_ENABLED': '0',
}


@pytest.fixture(scope='module')
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        for key, value in LOOPBACK.items():
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


def test_without_ray_it_is_said_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'ray', None)
    assert main(['experiment', 'fast_sawyer', '--seeds', '1', '--ray', '127.0.0.1:9']) == 2
    assert 'mher_ros[ray]' in capsys.readouterr().err


def test_a_cluster_that_is_not_there_is_refused(tmp_path, capsys):
    pytest.importorskip('ray')
    command = ['experiment', 'fast_sawyer', '--seeds', '1', '--out', str(tmp_path)]
    assert main([*command, '--ray', '127.0.0.1:9']) == 2
    assert 'no Ray cluster at 127.0.0.1:9' in capsys.readouterr().err
