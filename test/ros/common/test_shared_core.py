"""Both sides of a lockstep on one core, wherever there is more than one."""

import contextlib
import os
from pathlib import Path
import threading

from mher_ros.ros.common.shared_core import SharedCore
import pytest

ALLOWED = os.sched_getaffinity(0)

two_cores = pytest.mark.skipif(len(ALLOWED) < 2, reason='needs two cores')


def cores_of(process):
    """Return the cores that each thread of a process may use, each set once."""
    found = set()
    for thread in Path(f'/proc/{process}/task').iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            found.add(frozenset(os.sched_getaffinity(int(thread.name))))
    return found


@pytest.fixture(autouse=True)
def left_as_it_was():
    """Let no other test be slower than it was, whatever happens here."""
    yield
    for thread in Path('/proc/self/task').iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), ALLOWED)


@pytest.fixture
def beside():
    """Keep a second thread, which waits until the test is over."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield thread
    over.set()
    thread.join()


@two_cores
def test_all_threads_stay_on_the_core_until_it_is_left(beside):
    shared = SharedCore(1, '/joint_states')
    shared.enter()
    assert cores_of('self') == {frozenset({shared.core})}
    later = []
    newcomer = threading.Thread(target=lambda: later.append(os.sched_getaffinity(0)))
    newcomer.start()
    newcomer.join()
    assert later == [{shared.core}]
    shared.leave()
    assert cores_of('self') == {frozenset(ALLOWED)}


@two_cores
def test_the_same_topic_finds_the_same_core_and_the_next_domain_the_next():
    count = len(ALLOWED)
    cores = [SharedCore(domain, '/joint_states').core for domain in range(2 * count)]
    assert cores[:count] == cores[count:]
    assert set(cores) == ALLOWED


@two_cores
def test_other_topics_spread_over_the_cores():
    cores = {SharedCore(1, f'/arm{index}/joint_states').core for index in range(100)}
    assert len(cores) > 1


def test_where_one_core_is_allowed_nothing_changes(beside):
    only = {max(ALLOWED)}
    os.sched_setaffinity(0, only)
    before = cores_of('self')
    shared = SharedCore(1, '/joint_states')
    assert shared.core is None
    for change in (shared.enter, shared.leave):
        change()
        assert cores_of('self') == before


def test_where_cores_are_not_told_nothing_changes(monkeypatch):
    monkeypatch.delattr(os, 'sched_getaffinity')
    shared = SharedCore(1, '/joint_states')
    assert shared.core is None
    shared.enter()
    shared.leave()


@two_cores
@pytest.mark.ros
def test_both_sides_of_a_lockstep_step_on_one_core_until_the_env_is_closed(world):
    from mher_ros.ros.train.lockstep_link import LockstepLink
    from mher_ros.tasks import make

    sim = world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    (cores,) = cores_of('self')
    assert len(cores) == 1
    assert cores_of(sim.pid) == {cores}
    env.close()
    assert cores_of('self') == {frozenset(ALLOWED)}


@two_cores
@pytest.mark.ros
def test_an_arm_that_cannot_wait_may_use_every_core(world):
    sim = world.sim_node(stepping='realtime')
    assert cores_of(sim.pid) == {frozenset(ALLOWED)}
