"""The page in a browser, which any system may come with."""

from __future__ import annotations

from mher_ros.ros.bringup.system import NodeSpec, Role

__all__ = ['SAID_OF_VIEW', 'SAID_OF_VIEW_PORT', 'view_node']

SAID_OF_VIEW = 'true: show it in a browser, at the address that is printed'
SAID_OF_VIEW_PORT = 'port of that page on this machine; the next free one if it is taken'


def view_node(
    port: int, robot: str = '', remappings: tuple[tuple[str, str], ...] = ()
) -> NodeSpec:
    """Return the node that serves the page; ``robot`` names an arm with topics of its own."""
    parameters: dict[str, bool | int | float | str] = {'port': port, 'robot': robot}
    return NodeSpec(
        'mher_ros', 'view_node', 'view_node', Role.OPTIONAL, parameters, remappings=remappings
    )
