"""A person at a terminal: types to a program on a pseudo-terminal and reads its screen."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

DEADLINE = 30.0


class TerminalUser:
    """The process and its screen; `cooked` are the modes of its terminal before it started."""

    def __init__(self, process: Process, fd: int, cooked: list[object]) -> None:
        self.process, self.cooked = process, cooked
        self.text = b""
        self._fd = fd
        self._arrived = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, self._read)

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def resize(self, columns: int, rows: int) -> None:
        set_size(self._fd, columns, rows)

    async def resize_shell(self, columns: int, rows: int) -> None:
        """Resize, and ask the shell for its size until it has the new one."""
        self.resize(columns, rows)
        async with asyncio.timeout(DEADLINE):
            while True:
                self.type(b"stty size\r")
                if (await self.find(rb"(\d+ \d+)\r\n"))[1] == b"%d %d" % (rows, columns):
                    return

    def modes(self) -> list[object]:
        return termios.tcgetattr(self._fd)

    async def find(self, pattern: bytes) -> re.Match[bytes]:
        """Wait until the screen has the pattern, and forget what is before its end."""
        async with asyncio.timeout(DEADLINE):
            while not (found := re.search(pattern, self.text)):
                self._arrived.clear()
                try:
                    await self._arrived.wait()
                except asyncio.CancelledError:
                    raise AssertionError(f"{pattern!r} is not in {self.text[-1000:]!r}") from None
        self.text = self.text[found.end() :]
        return found

    async def exit_code(self) -> int:
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            self.text += os.read(self._fd, 65536)
        except OSError:  # the program has ended
            asyncio.get_running_loop().remove_reader(self._fd)
        self._arrived.set()


@asynccontextmanager
async def run_on_pty(
    *arguments: str, columns: int = 80, rows: int = 24, **environment: str
) -> AsyncIterator[TerminalUser]:
    """Run `python -m roost` on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    set_size(ours, columns, rows)
    cooked = termios.tcgetattr(theirs)
    process = await asyncio.create_subprocess_exec(
        *("setsid", "--ctty", sys.executable, "-m", "roost", *arguments),  # a controlling terminal sends SIGWINCH
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        env=_environment(environment),
    )
    os.close(theirs)
    user = TerminalUser(process, ours, cooked)
    try:
        yield user
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        user.close()


def set_size(fd: int, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _environment(more: Mapping[str, str]) -> Mapping[str, str]:
    return {**os.environ, "TERM": "xterm-256color", **more}
