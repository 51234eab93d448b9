"""
Starts nodes as forks of a process that has imported them, and so within milliseconds.

They are processes like any other, with an environment, arguments and signals of their own. What a
start takes most of its time for, the imports, is done once for all. That nodes start from nothing,
and that Python ends well after them, is for the tests of executables and launch files.

As a script: ``fork_server.py NODE``, with a socket as its standard input.
"""

import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys

from mher_ros.ros.common.process import import_node, run_process


class Fork:
    """A node, with those methods of ``subprocess.Popen`` that tests use."""

    def __init__(self, node, arguments, environment, streams, descriptors):
        """``streams``: its standard input, output and errors; ``descriptors``: what stays open."""
        self._life, theirs = socket.socketpair()
        words = json.dumps([arguments, environment]).encode()
        server = _server(node)
        with theirs:
            passed = [theirs.fileno(), *streams, *descriptors]
            socket.send_fds(server, [len(words).to_bytes(4, 'little')], passed)
            server.sendall(words)
        self.returncode = None
        self.pid = int(self._hear())

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._life], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f'node {self.pid}', timeout)
            self.returncode = int(self._hear())
            self._life.close()
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _hear(self):
        word = self._life.recv(32)
        assert word, 'the process that waits for a node is gone'
        return word


@functools.cache
def _server(node):
    """Return the socket to the server for nodes of this kind; it ends with this process."""
    ours, theirs = socket.socketpair()
    environment = {**os.environ, 'PYTHONUNBUFFERED': '1'}
    with theirs:
        subprocess.Popen(
            [sys.executable, __file__, node],
            stdin=theirs,
            start_new_session=True,
            env=environment,
        )
    return ours


def _serve(node):
    """Fork whenever asked; return in a fork, with the arguments of the node."""
    requests = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for nodes
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored below nohup, but nodes must notice it
    import_node(node)
    gc.collect()
    gc.freeze()
    while True:
        size, descriptors, *_ = socket.recv_fds(requests, 4, 16)
        if not size:
            sys.exit()
        words = b''
        while len(words) < int.from_bytes(size, 'little'):
            words += requests.recv(1 << 16)
        if os.fork() == 0:
            requests.close()
            return _become(*descriptors, words=words)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(life, *descriptors, words):
    """Fork once more: one is the node, and the other tells when it has ended, and how."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    node = os.fork()
    if node == 0:
        os.close(life)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
            os.close(descriptor)
        arguments, environment = json.loads(words)
        os.environ.clear()
        os.environ.update(environment)
        return arguments
    for descriptor in (0, 1, 2, *descriptors[:3]):
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(life, str(node).encode())
    status = os.waitpid(node, 0)[1]
    with contextlib.suppress(BrokenPipeError):
        os.write(life, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


if __name__ == '__main__':
    sys.argv = _serve(sys.argv[1])
    code = run_process(sys.argv[0], sys.argv)
    sys.stdout.flush()
    # Libraries have threads that a fork does not have, and would wait for them.
    os._exit(code)
