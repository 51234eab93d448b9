"""Training while messages get lost and the arm dies: whatever happens, it is the same run."""

from concurrent.futures import ThreadPoolExecutor
import json
import threading

from mher_ros.learning.run.progress import Progress
from mher_ros.learning.run.session import start_training
from mher_ros.learning.run.trainer import StopReason
from mher_ros.ros.train.arm_env import ArmEvaluator
from mher_ros.ros.train.lockstep_link import LockstepLink
from mher_ros.tasks import make
import pytest
from ros_process import PATIENCE

pytestmark = pytest.mark.ros

RELAYED = {
    'joint_states': 'relayed/joint_states',
    'action': 'relayed/action',
}
SMALL = {
    'schedule.episode_steps': '5',
    'schedule.evaluation_goals': '2',
    'schedule.steps': '30',
    'task.episode_steps': '5',
}
"""6 episodes of 5 steps, and after 4 and 6 of them 2 goals of 5 steps."""


class Notices(Progress):
    def __init__(self):
        self.told = []

    def notice(self, text):
        self.told.append(text)


@pytest.fixture
def trained_beyond(world, tmp_path):
    """Return a function that begins to train in this process with an arm beyond the relay."""
    pool, over = ThreadPoolExecutor(1), threading.Event()

    def begin(config, notices=None):
        notices = notices or Notices()
        task = make(config.task_name, config.task)
        env = world.arm(LockstepLink, task, RELAYED, asked_to_stop=over.is_set)
        arm = env, ArmEvaluator(env, warn=notices.warning).run
        return pool.submit(
            start_training, tmp_path / 'run', config, [notices], arm=arm, export=False
        )

    yield begin
    over.set()
    pool.shutdown()


def test_lost_doubled_late_and_reordered_messages_change_nothing(
    world, tmp_path, trained_beyond, tiny, in_process, run_in
):
    world.sim_node()
    relay = world.relay(drop=0.2, double=0.2, delay=0.2, reorder=0.2, seed=1)
    _, ending = trained_beyond(tiny(**SMALL)).result(PATIENCE)
    assert ending is StopReason.STEPS
    assert run_in(tmp_path / 'run').rows() == in_process(export=False, **SMALL).rows()
    # No step more or less than the env has done.
    assert world.peer().figures('sim_node')['steps'] == str(30 + 2 * 2 * 5)
    assert relay.stop() == 0
    counts = json.loads(relay.lines[-1])
    messages = counts.pop('messages')
    assert messages > 100
    assert len(counts) == 4
    assert min(counts.values()) > 0.1 * messages


def test_an_arm_that_dies_and_comes_back_costs_an_episode_and_nothing_else(
    world, tmp_path, trained_beyond, tiny, in_process, run_in
):
    sim = world.sim_node()
    # Command 50 is the 10th of the third episode. It is done again, so the first evaluation
    # begins with command 91, and 115 is the fifth of its second goal.
    relay = world.relay(hold='50,115')
    notices = Notices()
    run = trained_beyond(tiny(), notices)
    for number in (50, 115):
        relay.wait_for(f'holding {number}')
        sim.kill()
        sim = world.sim_node()
        relay.tell('go on')
    _, ending = run.result(PATIENCE)
    assert ending is StopReason.STEPS
    assert run_in(tmp_path / 'run').rows() == in_process().rows()
    dropped, again = notices.told
    assert dropped.startswith('an episode was dropped and is done again: the arm was restarted')
    assert again.startswith('a goal of the evaluation is repeated: the arm was restarted')
    # Of the evaluations, 3 goals are left of the first, and the two after it are whole.
    steps = 3 * 20 + 2 * 2 * 20 + 2 * 4 * 20
    assert world.peer().figures('sim_node')['steps'] == str(steps)
