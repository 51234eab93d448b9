"""A view_node, and who looks at its page."""

import re

from page_reader import PageReader
from raw_browser import RawBrowser


class Viewed:
    """A view_node and its page."""

    def __init__(self, world, **parameters):
        self.node = world.node('view_node', port=0, **parameters)
        told = self.node.wait_for(r'open http\S+ in a browser')
        self.address = re.search(r'http\S+', told).group()

    def raw(self, edition=0):
        """Return a browser that draws nothing, and knows the handle of an edition of the page."""
        return RawBrowser(self.address, edition)

    def reader(self):
        """Return one that knows what it would show."""
        return PageReader(self.address)
