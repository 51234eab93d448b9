"""A process that sends a page more than it may: python flooder.py ADDRESS SECONDS BUTTON."""

import contextlib
import sys
import time

from raw_browser import RawBrowser
from websockets.exceptions import WebSocketException

RATE = 2000.0
"""Messages in a second."""


def main(address, seconds, button):
    end = time.monotonic() + seconds
    print('flooding', flush=True)
    while time.monotonic() < end:  # sent away, it comes again
        with contextlib.suppress(WebSocketException, OSError), RawBrowser(address) as browser:
            began, sent = time.monotonic(), 0
            while time.monotonic() < end:
                browser.tell('GuiUpdateMessage', uuid=button, updates={'value': True})
                sent += 1
                time.sleep(max(0.0, began + sent / RATE - time.monotonic()))


if __name__ == '__main__':
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
