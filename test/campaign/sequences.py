"""Random sequences of what people and broken parts do to an arm that is on its way to a goal."""

import dataclasses

import numpy as np

HALF = 0.149
"""Goals lie within this of the middle of the workspace, on every axis [m]."""
BOX = 0.2
"""And the tool is kept within this: the workspace of the policies, and 5 cm [m]."""
WILD = (50, 3)
"""Of so many blocks of so many sequences, the last is moved by a policy that makes no sense."""


@dataclasses.dataclass(frozen=True)
class Sequence:
    """What happens in about a second, from when the first goal is accepted."""

    number: int
    kinds: tuple
    policy: str
    controller: str
    """How the arm carries commands out: immediate, JTC or lag."""
    delay: float
    """Time after which it does [s]."""
    rate: float
    """Of joint states [Hz]."""
    goals: np.ndarray
    """(100, 3), in [-1, 1]: one after the other is taken."""
    actions: list
    """(time [s], name, arguments): when to do what."""
    pause: float
    """Time without anything after it [s]."""


def draw(seed, number, rate=None):
    """Return sequence ``number`` of a campaign."""
    rng = np.random.default_rng((seed, number))
    kinds = tuple(rng.choice(list(KINDS), size=rng.choice((1, 2), p=(0.6, 0.4)), replace=False))
    actions = []
    for kind in kinds:
        actions += KINDS[kind](rng, rng.uniform(0.1, 0.6))
    block, blocks = WILD
    return Sequence(
        number,
        tuple(map(str, kinds)),
        'wild' if (number // block) % blocks == blocks - 1 else 'proportional',
        str(rng.choice(('immediate', 'JTC', 'lag'))),
        float(rng.choice((0.0, 0.02, 0.05, 0.1), p=(0.6, 0.2, 0.1, 0.1))),
        rate or float(rng.choice((100.0, 125.0))),
        rng.uniform(-1.0, 1.0, (100, 3)),
        sorted(actions, key=lambda action: action[0]),
        1.2 if rng.random() < 0.1 else 0.0,
    )


def _goals(rng, at):
    gaps = np.cumsum(rng.uniform(0.01, 0.08, rng.integers(2, 6)))
    return [(at + gap, 'goal', ()) for gap in gaps]


def _stop(rng, at):
    first, second = rng.uniform(0.01, 0.08, 2)
    return [
        (at, 'stop', ()),
        (at + first, 'clear', ()),
        (at + first + second, 'goal', ()),
        (at + first + second + 0.05, 'goal', ()),
    ]


def _lifecycle(rng, at):
    first, second = rng.uniform(0.02, 0.2, 2)
    again = at + first + second
    return [
        (at, 'deactivate', ()),
        (at + first, 'activate', ()),
        (again, 'goal', ()),
        (again + 0.1, 'goal', ()),
    ]


def _freeze_process(rng, at):
    return [(at, 'sigstop', ()), (at + rng.uniform(0.02, 0.4), 'sigcont', ())]


def _silence(rng, at):
    """No states, for long or not; perhaps one that is far off in between, or a goal."""
    long = rng.choice((rng.uniform(0.03, 0.3), rng.uniform(0.3, 1.5)))
    actions = _fault('silent', True)(at, long)
    if rng.random() < 0.3:
        middle = at + rng.uniform(0.1, 0.9) * long
        actions += [(middle, 'single', (_joint(rng), _sign(rng) * 1.2))]
    if rng.random() < 0.5:
        actions.append((at + long + rng.uniform(0.0, 0.3), 'goal', ()))
    return actions


def _late(rng, at):
    """States that come 0.1 s late; perhaps they stop, then."""
    actions = _fault('late', 0.1)(at, 1.0)
    if rng.random() < 0.5:
        actions += _fault('silent', True)(at + 0.2, rng.uniform(0.1, 0.4))
    return actions


def _frozen(rng, at):
    return _fault('frozen', True)(at, rng.uniform(0.1, 0.6))


def _drift(rng, at):
    fault = (_joint(rng), _sign(rng) * rng.uniform(0.3, 3.0))
    return _fault('drift', fault)(at, rng.uniform(0.1, 0.5))


def _leap(rng, at):
    """One to three states that are far off."""
    return [
        (at + 0.01 * step, 'single', (_joint(rng), _sign(rng) * 1.2))
        for step in range(rng.integers(1, 4))
    ]


def _false_velocities(rng, at):
    """They come while the arm moves, and while it rests: a stop, then a goal."""
    fault = (_joint(rng), _sign(rng) * rng.uniform(0.5, 3.0))
    actions = _fault('velocity', fault)(at, rng.uniform(0.1, 0.4))
    return actions + (_stop(rng, at + 0.05) if rng.random() < 0.5 else [])


def _stamps(rng, at):
    shift = _sign(rng) * float(rng.choice((0.02, 0.3, 0.9, 5.0)))
    return _fault('shift', shift)(at, rng.uniform(0.05, 0.4))


def _malformed(rng, at):
    kind = str(rng.choice(('nan', 'truncated', 'short', 'renamed', 'infinite')))
    return _fault('malformed', kind)(at, rng.choice((0.008, 0.1, 0.3)))


def _blocked(rng, at):
    return _fault('blocked', True)(at, rng.uniform(0.3, 1.2))


def _load(rng, at):
    return _fault('load', True)(at, rng.uniform(0.2, 0.6))


def _intruder(rng, at):
    """Another arm publishes joint states, too."""
    fault = (_sign(rng) * rng.uniform(0.05, 1.0), float(rng.choice((0.0, 0.5))))
    return _fault('intruder', fault)(at, rng.uniform(0.1, 0.4))


KINDS = {
    'goals': _goals,
    'stop': _stop,
    'lifecycle': _lifecycle,
    'sigstop': _freeze_process,
    'silence': _silence,
    'late': _late,
    'frozen': _frozen,
    'drift': _drift,
    'leap': _leap,
    'false velocities': _false_velocities,
    'stamps': _stamps,
    'malformed': _malformed,
    'blocked': _blocked,
    'load': _load,
    'intruder': _intruder,
}


def _fault(name, value):
    """Return a function that begins a fault and ends it."""
    return lambda at, long: [(at, 'fault', (name, value)), (at + long, 'fault', (name, None))]


def _joint(rng):
    return int(rng.integers(0, 6))


def _sign(rng):
    return float(rng.choice((-1.0, 1.0)))
