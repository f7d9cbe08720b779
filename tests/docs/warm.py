"""A ``python`` for transcripts that does not import the fabric for every command.

A process that has imported the fabric forks a child for each ``python -m fabric ...``, with the
files, folder, environment and arguments of the caller. Python itself runs all other commands.
"""

from __future__ import annotations

import array
import atexit
import functools
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_IMPORTED: Final = (
    *(f"fabric.shell.commands.{name}" for name in ("check", "graph", "run", "size", "study")),
    "fabric.timing.compiled.arrays",
    "fabric.timing.compiled.region",
    "fabric.analysis.deadlock.picture",
    "fabric.timing.memories.flat",
    "fabric.runs.explaining",
    "fabric.runs.simulation",
    "fabric.shell.cli",
    "fabric.runs.printing",
    "fabric.analysis.trace.opened",
    "networkx",
    "operators.map",
    "sympy",
)

_CLIENT: Final = """#!{python} -IS
import os, sys
if sys.argv[1:3] != ["-m", "fabric"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
import array, json, socket
with socket.socket(socket.AF_UNIX) as it:
    it.connect({address!r})
    files = array.array("i", (0, 1, 2))
    it.sendmsg([b"?"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    asked = json.dumps([os.getcwd(), dict(os.environ), sys.argv[3:]]).encode()
    it.sendall(asked)
    it.shutdown(socket.SHUT_WR)
    answer = it.recv(16)
sys.exit(int(answer))
"""


@functools.cache
def folder_of_python() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(folder / "address")
    command = [sys.executable, "-m", __name__, address]
    root = Path(__file__).parents[2]
    # The server ends when its standard input closes, which happens however this process ends.
    server = subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    python = folder / "python"
    python.write_text(_CLIENT.format(python=sys.executable, address=address))
    python.chmod(0o755)
    return folder


def _serve(address: str) -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as ready:
        listener.bind(address)
        listener.listen()
        ready.register(listener, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while all(key.fileobj is listener for key, _ in ready.select()):
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> None:
    size = array.array("i").itemsize
    _, ((_, _, descriptors),), *_ = connection.recvmsg(1, socket.CMSG_SPACE(3 * size))
    with connection.makefile("rb") as stream:
        folder, environment, arguments = json.load(stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = os.fork()
    if worker:
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        connection.sendall(str(status if status >= 0 else 128 - status).encode())
        os._exit(0)
    connection.close()
    for number, file in enumerate(array.array("i", descriptors)):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    sys.argv[1:] = arguments
    runpy.run_module("fabric", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
