"""view_node: the page in the browser."""
