"""Beyond the paper: what it takes to find the way around walls."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.experiment import Experiment, Variant


def _rooms(name: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    values = {key.replace('__', '.'): value for key, value in changes.items()}
    return Variant(name, 'point2d_four_room', algorithm, 'rooms', tuple(values.items()))


EXPERIMENT = Experiment(
    'four_rooms',
    'What makes MHER find its way through doors, and what does each part of it bring?',
    (
        Variant('mher paper', 'point2d_four_room', 'mher', 'paper'),
        _rooms('mher rooms'),
        _rooms('no goals from elsewhere', relabel__elsewhere=0.0),
        _rooms('no waves', agent__waves=0),
        _rooms('5 updates an episode', schedule__updates_per_episode=5),
        _rooms('no supervised loss', 'no_sl'),
        _rooms('future goals (her)', 'her'),
        _rooms('goals from elsewhere alone', 'ddpg', relabel__elsewhere=1.0),
        _rooms('original goals alone (ddpg)', 'ddpg'),
        _rooms(
            'her with many updates',
            'her',
            agent__waves=0,
            relabel__elsewhere=0.0,
            relabel__probability=0.8,
        ),
    ),
)
