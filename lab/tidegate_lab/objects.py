"""An HTTP/1.1 server of a directory's files: `python -m tidegate_lab.objects PORT DIRECTORY`.

Python's own server leaves Nagle's algorithm on (RFC 896): headers and body are two writes, so the last segment of a
body waits for the headers' acknowledgement, a round trip that servers in the field do not take.
"""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    """Serves files over connections that stay open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as an experiment opens."""

    request_queue_size = 128


def main(port: str, directory: str) -> None:
    """Serve until the process is ended."""
    Server(("", int(port)), partial(Handler, directory=directory)).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
