"""
How hard properties are tried, and how MuJoCo draws.

MuJoCo settles the latter when it is first imported, so this comes before any test.
"""

from hypothesis import settings
from mher_ros.tasks.rendering import choose_backend

choose_backend()

settings.register_profile('test', max_examples=500, deadline=None)
settings.register_profile('nightly', max_examples=10_000, deadline=None)
settings.load_profile('test')
