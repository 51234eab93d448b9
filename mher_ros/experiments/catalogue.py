"""All experiments: those of the paper, and others."""

from collections.abc import Callable, Iterable
from typing import Any

from mher_ros.experiments.experiment import Experiment, Variant
from mher_ros.learning.presets import ALGORITHMS, CHEAP_PLAN
from mher_ros.options import OptionError
from mher_ros.tasks import PAPER_TASKS

BOX_NOTE = (
    "On point2d_large the box has a half side of 4 (task.box=4), as in the authors' code, whose "
    'curves are shown for comparison; the paper says 5.'
)
PLAN_NOTE = (
    'PlanGAN differs from its paper: it predicts 8 x 4 x 15 steps per action, not 20 x 50 x 50, '
    'with its generators alone, and takes the weighted mean of the first actions, not the best. '
    'It has two small GANs, not three large ones, at ten times the learning rate, and plans with '
    'a moving average of them. It is evaluated on 20 goals instead of 100.'
)
FAST_METRICS = ('steps_to_95', 'early_success')


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise OptionError(f'unknown experiment {name!r}; known: {", ".join(EXPERIMENTS)}')
    return EXPERIMENTS[name]


def _paper(
    name: str, task: str, algorithm: str = 'mher', recorder: str = '', **changes: Any
) -> Variant:
    """Return a variant with the preset ``paper``; ``agent__alpha=1.0`` sets agent.alpha."""
    values: dict[str, Any] = {'task.box': 4.0} if task == 'point2d_large' else {}
    if algorithm == 'plangan':
        values |= {f'plan.{key}': value for key, value in CHEAP_PLAN.items()}
        values |= {'model.hidden': (64, 64), 'schedule.evaluation_goals': 20}
    return Variant(name, task, algorithm, 'paper', _changes(values, changes), recorder)


def _algorithms(names: Iterable[str], recorder: str = '') -> tuple[Variant, ...]:
    """Return these algorithms with the preset ``paper``, on every task."""
    names = tuple(names)
    return tuple(_paper(name, task, name, recorder) for task in PAPER_TASKS for name in names)


def _study(
    name: str, values: Iterable[int], changes: Callable[[int], dict[str, Any]]
) -> tuple[Variant, ...]:
    """Return MHER with the preset ``paper`` and each value of a parameter, on every task."""
    values = tuple(values)
    return tuple(_paper(f'{name} {v}', task, **changes(v)) for task in PAPER_TASKS for v in values)


def _fast(name: str, task: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    """Return a variant that is evaluated after every episode of 25 steps."""
    values: dict[str, Any] = {'schedule.steps': 1500, 'schedule.episodes_per_epoch': 1}
    if task == 'fetch_reach':
        values['task.reachable_goals'] = False  # as in published results
    return Variant(name, task, algorithm, 'fast', _changes(values, changes))


def _ablated(name: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    """Return a variant evaluated on fewer goals, because there are many variants."""
    return _fast(name, 'fetch_reach', algorithm, schedule__evaluation_goals=50, **changes)


def _rooms(name: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    return Variant(name, 'point2d_four_room', algorithm, 'rooms', _changes({}, changes))


def _of_paper(name: str, question: str, variants: tuple[Variant, ...], **more: Any) -> Experiment:
    return Experiment(name, question, variants, **{'notes': (BOX_NOTE,), **more})


def _changes(values: dict[str, Any], changes: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    dotted = {key.replace('__', '.'): value for key, value in changes.items()}
    return tuple((values | dotted).items())


_ALL = (
    _of_paper(
        'ablation',
        'What do model-based relabelling and the supervised loss each contribute to MHER?',
        _algorithms(('mher', 'no_sl', 'no_mbr', 'her')),
        tasks=('point2d_large', 'fetch_reach', 'reacher'),
    ),
    _of_paper(
        'additional',
        'Is it enough to relabel with random goals, or with noise on real ones?',
        _algorithms(('mher', 'her', 'random_relabel', 'goal_noise')),
        tasks=('fetch_reach', 'sawyer_reach', 'reacher'),
    ),
    _of_paper(
        'alpha',
        'How much should the supervised loss weigh? (Figure 3 a)',
        _study('alpha', (0, 1, 3, 5, 7), lambda alpha: {'agent__alpha': float(alpha)}),
        tasks=('reacher', 'sawyer_reach'),
    ),
    Experiment(
        'benchmark',
        'Which algorithm learns to reach in the fewest steps? (Figure 2)',
        _algorithms(ALGORITHMS),
        algorithms=('mher', 'her', 'cher', 'mep', 'gcsl', 'ddpg'),
        notes=(BOX_NOTE, PLAN_NOTE),
    ),
    _of_paper(
        'bound',
        'Does the return rise as the supervised loss on relabelled rows falls? (Theorem 1)',
        _algorithms(('mher',), 'supervised_loss'),
        tasks=('point2d_large', 'fetch_reach', 'reacher'),
        plot='loss_and_return',
    ),
    _of_paper(
        'curriculum',
        'Do virtual goals come closer to the desired ones as the policy improves? (Theorem 2)',
        _algorithms(('mher', 'her'), 'goal_distance'),
        tasks=('point2d_large', 'fetch_reach', 'reacher'),
        plot='goal_distance',
    ),
    Experiment(
        'fast_ablation',
        'What does each choice of fast contribute on fetch_reach?',
        (
            _ablated('fast'),
            _ablated('no supervised loss', agent__alpha=0.0),
            _ablated('supervised loss fades', agent__alpha_half_life=150.0),
            _ablated('virtual goals only', relabel__goals='virtual'),
            _ablated('rollouts of 5 steps', relabel__steps=5),
            _ablated('real future goals only (her)', 'her'),
            _ablated('way to the goal not shown', agent__relative_goal=False),
            _ablated('places told in standard deviations', agent__workspace_normalisation=False),
            _ablated('no updates on the warm-up', schedule__warmup_updates=0),
            _ablated(
                'half the updates', schedule__updates_per_episode=50, schedule__warmup_updates=100
            ),
            _ablated('two model steps an update', model__fits_per_update=2),
            _ablated('three warm-up episodes', schedule__warmup_episodes=3),
            _ablated('actor itself evaluated', agent__export_target_actor=False),
            _ablated(
                'episodes of 100 steps',
                schedule__episode_steps=100,
                schedule__warmup_episodes=1,
                schedule__warmup_updates=400,
                schedule__updates_per_episode=400,
            ),
        ),
        metrics=FAST_METRICS,
    ),
    *(
        Experiment(
            f'fast_{arm.lower()}',
            f'How many environment steps does fast take to reach with {arm}?',
            tuple(_fast(name, f'{arm.lower()}_reach', name) for name in ('mher', 'her')),
            metrics=FAST_METRICS,
        )
        for arm in ('Fetch', 'Sawyer')
    ),
    Experiment(
        'four_rooms',
        'What does MHER need to pass the doors, and what does each part contribute?',
        (
            Variant('mher paper', 'point2d_four_room', 'mher', 'paper'),
            _rooms('mher rooms'),
            _rooms('no goals from elsewhere', relabel__random_share=0.0),
            _rooms('no waves', agent__fourier_features=0),
            _rooms('5 updates an episode', schedule__updates_per_episode=5),
            _rooms('no supervised loss', 'no_sl'),
            _rooms('future goals (her)', 'her'),
            _rooms('goals from elsewhere alone', 'ddpg', relabel__random_share=1.0),
            _rooms('original goals alone (ddpg)', 'ddpg'),
            _rooms(
                'her with many updates',
                'her',
                agent__fourier_features=0,
                relabel__random_share=0.0,
                relabel__probability=0.8,
            ),
        ),
    ),
    _of_paper(
        'layers',
        'How many layers does the dynamics model need?',
        _study('layers', range(1, 6), lambda layers: {'model__hidden': (256,) * layers}),
        tasks=('fetch_reach', 'sawyer_reach', 'reacher'),
    ),
    Experiment(
        'model_based',
        'Do other uses of a dynamics model learn to reach as well? (Figure 3 c, d)',
        _algorithms(
            (
                *('mher', 'mve3', 'mve5', 'mve7', 'mbpo3', 'mbpo5', 'mbpo7'),
                *('mve_her', 'mbpo_her', 'plangan'),
            )
        ),
        tasks=('point2d_large', 'sawyer_reach'),
        notes=(BOX_NOTE, PLAN_NOTE),
    ),
    _of_paper(
        'paper_point2d',
        "Does the paper preset learn as the authors' code does?",
        (
            _paper('mher', 'point2d_large'),
            Variant(
                'mher paper_2021', 'point2d_large', 'mher', 'paper_2021', (('task.box', 4.0),)
            ),
            _paper('her', 'point2d_large', 'her'),
            _paper('ddpg', 'point2d_large', 'ddpg'),
        ),
        metrics=('mean_success',),
    ),
    _of_paper(
        'relabelling',
        'Which goals do HER, CHER and MHER relabel with, early and late in training? (Figure 4)',
        _algorithms(('her', 'cher', 'mher'), 'relabelled_goals'),
        tasks=('point2d_large', 'reacher'),
        plot='goal_scatter',
    ),
    _of_paper(
        'steps',
        'How long should a model rollout be? (Figure 3 b)',
        _study('n', (0, 1, 3, 5, 7), lambda steps: {'relabel__steps': steps}),
        tasks=('reacher', 'sawyer_reach'),
    ),
)
EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}
