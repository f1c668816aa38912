"""Minimal programs that Roost is compared with: ASGI applications, and a process in a sandbox that runs commands."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2 as httpx

from roost.http.server.server import open_listener
from tests.journeys.server_process import until

BARE_ASGI = "bare ASGI hello"
_SERVE = """
async def answer(send, status, body):
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", lifespan="off", loop="uvloop", http="httptools")
"""
_HELLO = """
import sys, uvicorn
async def app(scope, receive, send):
    await answer(send, 200, b"ok")
"""
_FRONT = """
import asyncio, sys, uvicorn
async def app(scope, receive, send):
    await receive()
    reader, writer = await asyncio.open_unix_connection(sys.argv[2])
    writer.write(b"true")
    code = await reader.read()
    writer.close()
    await answer(send, 200 if code == b"0" else 500, code)
"""
_RUNNER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("/run/socket")
listener.listen()
while True:
    connection, _ = listener.accept()
    command = connection.recv(4096).decode()
    pipes = [os.pipe() for _ in range(3)]
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)]
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], {}, file_actions=actions, setsid=True)
    for fd in (*theirs, pipes[0][1]):
        os.close(fd)
    for fd in (pipes[1][0], pipes[2][0]):
        while os.read(fd, 65536):
            pass
        os.close(fd)
    connection.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    connection.close()
"""


@contextmanager
def bare_asgi(program: str = _HELLO, *arguments: str) -> Iterator[Callable[[], None]]:
    """Run a minimal ASGI application, which has `answer(send, status, body)`; yield a function that sends a request."""
    with open_listener("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", program + _SERVE, str(port), *arguments]
    with subprocess.Popen(command) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                until(lambda: _is_ready(client))
                yield partial(_request, client)
        finally:
            process.terminate()


@contextmanager
def bare_command(folder: Path) -> Iterator[Callable[[], None]]:
    """Run both processes; yield a function that runs `true` by them. `folder` holds a bwrap."""
    with bare_runner(folder) as path, bare_asgi(_FRONT, path) as execute:
        yield execute


@contextmanager
def bare_runner(folder: Path) -> Iterator[str]:
    """Run the process that runs commands; yield the path of its socket. `folder` holds a bwrap."""
    bwrap = next(path for path in folder.rglob("bwrap") if path.is_file())
    with (
        tempfile.TemporaryDirectory(prefix="roost-bare-") as shared,
        subprocess.Popen(_sandbox(bwrap, shared)) as runner,
    ):
        try:
            until(Path(shared, "socket").exists)
            yield f"{shared}/socket"
        finally:
            runner.kill()


async def run_bare(path: str) -> None:
    """Run `true` by the runner at this socket."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"true")
    assert await reader.read() == b"0"
    writer.close()


def _sandbox(bwrap: Path, shared: str) -> list[str]:
    """Return the command of the process that runs commands, in the namespaces of an agent's container."""
    command = [str(bwrap), "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    command += ["--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]
    command += ["--proc", "/proc", "--dev", "/dev", "--bind", shared, "/run"]
    return [*command, "/usr/bin/python3", "-S", "-E", "-I", "-c", _RUNNER]


def _request(client: httpx.Client) -> None:
    client.get("/").raise_for_status()


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/").status_code == 200
    except httpx.HTTPError:
        return False
