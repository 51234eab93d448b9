"""The arm behind topics as an env in lockstep, with a real sim_node at the other end."""

from arm_episodes import actions_for, assert_same
from mher_ros.errors import ArmError, EpisodeLostError, StopRequested
from mher_ros.learning.run.session import start_training
from mher_ros.robots.robot import load_robot
from mher_ros.ros.train import lockstep_link
from mher_ros.ros.train.arm_env import ArmEvaluator
from mher_ros.ros.train.lockstep_link import ArmSilentError, LockstepLink, RobotLink
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.tasks import make, PAPER_TASKS
from mher_ros.tasks.rollouts import Evaluator, GOALS_AT_ONCE
from mher_ros.tasks.task import TaskOptions
import numpy as np
import pytest

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ('name', 'robot', 'changes'),
    [
        *((name, None, {}) for name in PAPER_TASKS),
        ('reach', 'fetch', {}),
        ('reach', 'ur5e', {}),
        ('reach', 'ur5e', {'action': 'tool'}),
        ('reach', 'fetch', {'randomise': 1.0}),
        ('reach', 'ur5e', {'randomise': 1.0}),
        ('reach', 'fetch', {'goal': 'pose'}),
        ('reach', 'ur5e', {'randomise': 1.0, 'start': 'random'}),
    ],
)
def test_an_episode_is_the_tasks_own_to_the_bit(world, name, robot, changes):
    if robot is None:
        world.sim_node(name)
        link, options = LockstepLink, None
    else:
        world.sim_node(robot=robot, randomise=changes.get('randomise', 0.0))
        link = RobotLink
        options = ReachOptions(20, 0.05, robot=robot, joint_speed=2.0, **changes)
    task = make(name, options)
    env = world.arm(link, make(name, options))
    assert env.observation_space == task.observation_space
    assert env.action_space == task.action_space
    for seed in (1, 2):
        assert_same(env.reset(seed=seed)[0], task.reset(seed=seed)[0])
        for action in actions_for(task, task.interface.episode_steps, seed):
            (observation, *rest), (expected, *others) = env.step(action), task.step(action)
            assert_same(observation, expected)
            assert rest == others
        assert rest[2] is True  # truncated
    env.close()


def test_an_evaluation_is_that_of_one_process_to_the_bit(world):
    world.sim_node('reacher')
    options = TaskOptions(episode_steps=10, threshold=0.02)
    env = world.arm(LockstepLink, make('reacher', options))
    weights = np.random.default_rng(0).normal(size=(2, 11))
    offsets = 0.1 * np.arange(GOALS_AT_ONCE)[:, None]

    def policy(observations, goals):
        # It matters in which row a goal is shown: a matrix product may round each row its own way.
        return np.tanh(observations @ weights.T + offsets).astype(np.float32)

    told = []
    seeds = range(27)  # more than share a policy call
    seen = ArmEvaluator(env, lambda *goals: told.append(goals)).run(policy, seeds)
    expected = Evaluator('reacher', options).run(policy, seeds)
    assert seen.summary() == expected.summary()
    np.testing.assert_array_equal(seen.final_errors, expected.final_errors)
    assert told == [(index, 27) for index in range(27)]


REACHER = {'schedule.evaluation_goals': '3'}

SLOW = {'schedule.steps': '100', 'schedule.evaluation_goals': '2'}


@pytest.mark.parametrize(
    ('name', 'changes'),
    [
        ('reacher', REACHER),
        pytest.param('fetch_reach', SLOW, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_that_of_one_process(world, tmp_path, tiny, in_process, run_in, name, changes):
    world.sim_node(name)
    config = tiny(name, **changes)
    env = world.arm(LockstepLink, make(name, config.task))
    start_training(tmp_path / 'run', config, arm=(env, ArmEvaluator(env).run), export=False)
    run, expected = run_in(tmp_path / 'run'), in_process(name, export=False, **changes)
    assert run.rows() == expected.rows()
    assert run.networks() == expected.networks()


def test_an_arm_restarted_in_the_middle_of_a_reset_starts_where_it_should(world, monkeypatch):
    sim = world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    call, called = env.link._call, []

    def call_and_restart(client, request):
        answer = call(client, request)
        called.append(client.srv_name)
        if len(called) == 1:  # the seed has been told, the reset not been asked for
            sim.kill()
            world.sim_node()
        return answer

    monkeypatch.setattr(env.link, '_call', call_and_restart)
    assert_same(env.reset(seed=2)[0], make('point2d_large').reset(seed=2)[0])
    assert len(called) == 4


def test_an_episode_that_somebody_else_disturbs_is_lost(world):
    world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    other = world.arm(LockstepLink, make('point2d_large'))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    other.reset(seed=2)
    other.step((0.5, 0.5))
    with pytest.raises(EpisodeLostError, match='another node resets or commands it'):
        env.step((0.5, 0.5))


def test_an_arm_that_was_never_there_is_told_by_its_service(world, monkeypatch):
    monkeypatch.setattr(lockstep_link, 'FIRST_CONTACT', 0.0)
    env = world.arm(LockstepLink, make('point2d_large'), timeout=0.5)
    with pytest.raises(ArmSilentError) as caught:
        env.reset(seed=1)
    assert str(caught.value) == (
        'nothing on sim_node/reset for 0.5 s (it is not offered): is the arm, or sim_node, '
        'running in this ROS domain?'
    )


def test_an_arm_that_is_another_is_told_by_what_it_is(world):
    world.sim_node('sawyer_reach')
    peer = world.peer()
    env = world.arm(LockstepLink, make('fetch_reach'), peer=peer)
    sentence = 'arm fetch_reach is expected behind sim_node/reset, got one with sawyer_reach'
    with pytest.raises(ArmError, match=sentence):
        env.reset(seed=1)


def test_an_arm_starts_where_it_is_told_to_and_at_home_after_that(world):
    world.sim_node(robot='ur5e')
    task = make('reach', ReachOptions(20, 0.05, robot='ur5e'))
    env = world.arm(RobotLink, make('reach', ReachOptions(20, 0.05, robot='ur5e')))
    home = task.reset(seed=1)[0]['observation'][:6]
    for options in ({'start': home + 0.1}, None):
        expected = task.reset(seed=1, options=options)[0]
        assert_same(env.reset(seed=1, options=options)[0], expected)
        action = np.full(6, 0.5, np.float32)
        assert_same(env.step(action)[0], task.step(action)[0])


def test_an_arm_whose_plants_are_drawn_otherwise_is_told(world):
    world.sim_node(robot='ur5e', randomise=0.5)
    task = make('reach', ReachOptions(50, 0.05, robot='ur5e', randomise=1.0))
    env = world.arm(RobotLink, task)
    with pytest.raises(ArmError, match=r'an arm with randomise 1.0 is expected.*one with 0.5'):
        env.reset(seed=1)


@pytest.mark.parametrize('late', [{'delay': 0.05}, {'lag': 0.1}])
def test_an_arm_that_moves_later_than_the_tasks_is_refused(world, late):
    world.sim_node(robot='ur5e', **late)
    env = world.arm(RobotLink, make('reach', ReachOptions(robot='ur5e')))
    [(what, given)] = late.items()
    with pytest.raises(ArmError, match=f'an arm with {what} 0.0 is expected.*one with {given}'):
        env.reset(seed=1)


def test_an_arm_of_the_same_name_from_another_robot_file_is_refused(world, tmp_path):
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    other = tmp_path / 'ur5e.yaml'
    other.write_text(f'{source}\nscene: {{floor: {{shape: plane, position: [0, 0, -0.3]}}}}\n')
    node = world.node('sim_node', robot=str(other), stepping='lockstep')
    node.wait_for('ur5e: .* joints, commanded by')
    env = world.arm(RobotLink, make('reach', ReachOptions(robot='ur5e')))
    with pytest.raises(ArmError, match='an arm with robot_file [0-9a-f]{12} is expected'):
        env.reset(seed=1)


def test_of_two_arms_in_a_domain_the_newcomer_is_refused(world):
    world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    second, peer = world.sim_node(), world.peer()
    newcomer = world.arm(LockstepLink, make('point2d_large'), peer=peer)
    peer.wait_until(lambda: peer.node.count_publishers('/joint_states') == 2, 'both are seen')
    with pytest.raises(ArmError, match='two arms publish /joint_states'):
        newcomer.reset(seed=2)
    with pytest.raises(EpisodeLostError):
        while True:
            env.step((0.5, 0.5))
    assert second.stop() == 0
    assert_same(env.reset(seed=3)[0], make('point2d_large').reset(seed=3)[0])
    env.step((0.5, 0.5))


def test_a_wish_to_stop_is_seen_in_the_middle_of_an_episode(world):
    world.sim_node()
    wish = []
    env = world.arm(LockstepLink, make('point2d_large'), asked_to_stop=lambda: bool(wish))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    wish.append('stop')
    with pytest.raises(StopRequested):
        env.step((0.5, 0.5))


def test_an_arm_that_takes_no_seed_is_an_error(world):
    # It has the parameter, but not for numbers of that kind.
    world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    with pytest.raises(ArmError, match='the arm refuses the seed'):
        env.link.reset(-5)
