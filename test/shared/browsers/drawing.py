"""Whether MuJoCo can draw here. Run as a script, it ends with 0, or says why not."""

import sys

from mher_ros.tasks.rendering import choose_backend, RenderingError

__all__ = ['draw']


def draw() -> None:
    """Draw a small scene; raises RenderingError where that cannot be."""
    from mher_ros.tasks import make

    task = make('reacher', render_mode='rgb_array')
    task.reset(seed=0)
    try:
        task.render()
    finally:
        task.close()


if __name__ == '__main__':
    choose_backend()
    try:
        draw()
    except RenderingError as error:
        print(error)
        sys.exit(1)
