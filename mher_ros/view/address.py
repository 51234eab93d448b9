"""Where a page is served unless told otherwise."""

HOST, PORT = '127.0.0.1', 8080
