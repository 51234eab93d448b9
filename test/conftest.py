"""MuJoCo settles how it draws when it is first imported, so this comes before any test."""

from mher_ros.tasks.rendering import choose_backend

choose_backend()
