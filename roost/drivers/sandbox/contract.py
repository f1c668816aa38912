"""Contract of sandboxes: a program of ours reads hostile input on the server's machine, with none of its rights.

Guarantees of every sandbox: a user of its own where the server is root, no capability, no network but its own loopback,
limited memory, processes and CPU time where the machine allows it, and no file but the interpreter, the system's
libraries and the named packages, all read-only. It ends with the server. A command also has one folder, which belongs
to a user that no other folder has. Decision 0022 says why.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime.contract import ContainerLimits

COMMAND_FOLDER, SCRIPT_FOLDER = "/folder", "/scripts"
"""Paths of a command's folder, which is its working directory, and of its scripts.

Where a sandbox has no file system of its own, they have other paths, and it replaces values of the environment that
are these paths.
"""


@dataclass(frozen=True)
class SandboxProgram:
    """A Python file, and the folders of packages that it imports by their names.

    The program gets the descriptor of its socket as its first argument, and sends a newline when it is ready. Its
    signals reach the processes of its sandbox only.
    """

    file: Path
    packages: Mapping[str, Path] = field(default_factory=dict[str, Path])
    limits: ContainerLimits = field(default_factory=ContainerLimits)


@dataclass(frozen=True)
class SandboxCommand:
    """A script for the system's `/bin/sh`, with programs of the system and one folder.

    Its standard input is a socket for its data in both directions, its standard output a second one for control.
    folder: owned by the command's user under root; read-only unless `is_writable`.
    programs: files and folders of this machine by their paths in the sandbox, beside the system's libraries; where it
        has no file system of its own, they stay where they are.
    scripts: executable files of ours by their names in `SCRIPT_FOLDER`.
    """

    script: str
    arguments: Sequence[str]
    folder: Path
    is_writable: bool
    programs: Mapping[str, Path]
    environment: Mapping[str, str]
    scripts: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    limits: ContainerLimits = field(default_factory=ContainerLimits)


class SandboxProcess(ABC):
    """A running program; `reader` and `writer` are the other end of its socket, `pid` is the host's."""

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self.reader = reader
        self.writer = writer

    @abstractmethod
    def is_alive(self) -> bool:
        """Return whether the program still runs."""

    @abstractmethod
    async def kill(self) -> None:
        """End the program with all its processes, and wait until they are gone. Idempotent."""


class CommandProcess(ABC):
    """A running command. `reader` has its output to the last byte; `control` is the other end of its control socket."""

    reader: asyncio.StreamReader
    control: Stream

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send input, at the speed at which the command reads it. Raises ConnectionError when it reads no more."""

    @abstractmethod
    def send_eof(self) -> None:
        """End the input."""

    @abstractmethod
    def read_error(self) -> str:
        """Return the last line of its standard error."""

    @abstractmethod
    async def kill(self) -> None:
        """End the command with all its processes, and wait until they are gone. Idempotent."""


class Sandbox(ABC):
    @abstractmethod
    async def start(self, program: SandboxProgram) -> SandboxProcess:
        """Start a program and return once it is ready, within 10 s. Raises RuntimeFailed."""

    @abstractmethod
    async def run(self, command: SandboxCommand) -> CommandProcess:
        """Start a command, creating its folder if it is missing. Raises RuntimeFailed."""

    @abstractmethod
    async def remove_folder(self, folder: Path) -> None:
        """Remove the folder of commands that have ended, and free its user. Idempotent. Raises OSError."""
