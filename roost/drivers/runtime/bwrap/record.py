"""Records of running containers, and whether they still run.

A pid counts only with its start time and boot id, so that a pid which the kernel reused is never taken for a container.
"""

import asyncio
import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.contract import Container

_PROC = Path("/proc")
_EXITING = 0x4  # PF_EXITING, linux/sched.h
_COMMAND_BYTES = 256 * 1024  # ours are shorter; an agent's may be megabytes


@dataclass(frozen=True)
class HostProcess:
    """`born` is in ticks since the boot, from `/proc/<pid>/stat`."""

    pid: int
    born: int

    @classmethod
    def find(cls, pid: int) -> "HostProcess | None":
        """The process of that pid unless it has ended; a zombie has."""
        fields = _stat(pid)
        return None if fields[0] in {b"Z", b"X"} else cls(pid, int(fields[19]))

    def alive(self) -> bool:
        """Not when it has begun to end: from then on it serves nobody, though it may take a moment more to be gone."""
        fields = _stat(self.pid)
        return fields[0] not in {b"Z", b"X"} and int(fields[19]) == self.born and not int(fields[6]) & _EXITING

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Another user's process stays: it is none of ours, whatever it says."""
        with suppress(ProcessLookupError, PermissionError), _handle(self) as fd:
            if self.alive():  # asked after the handle was taken: it cannot be another's any more
                signal.pidfd_send_signal(fd, number)

    async def gone(self, seconds: float) -> bool:
        """Wait for its end, at most so long."""
        try:
            with _handle(self) as fd:
                return HostProcess.find(self.pid) != self or await _readable(fd, seconds)
        except ProcessLookupError:
            return True


@dataclass(frozen=True)
class ContainerRecord:
    """One container. `groups` are its control groups."""

    agent_id: str
    boot: str
    warden: HostProcess
    monitor: HostProcess
    started_at: datetime
    groups: tuple[Path, ...] = ()

    def alive(self) -> bool:
        """The container lives as long as its pid 1; the monitor only waits for it."""
        return self.boot == boot() and self.warden.alive()

    def processes(self) -> tuple[HostProcess, ...]:
        """Those that may still be there."""
        return (self.warden, self.monitor) if self.boot == boot() else ()

    def container(self) -> Container:
        return Container(self.agent_id, self.warden.pid, self.started_at)

    def save(self, path: Path) -> None:
        values = asdict(self) | {
            "started_at": self.started_at.isoformat(),
            "groups": [str(group) for group in self.groups],
        }
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(values))
        draft.rename(path)


def load(path: Path) -> ContainerRecord | None:
    """None when there is none, or none that is whole."""
    try:
        values = json.loads(path.read_text())
        return ContainerRecord(
            values["agent_id"],
            values["boot"],
            HostProcess(**values["warden"]),
            HostProcess(**values["monitor"]),
            datetime.fromisoformat(values["started_at"]),
            tuple(Path(group) for group in values["groups"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def find_marked(mark: str) -> list[tuple[str, HostProcess]]:
    """Return (agent, process) of each process whose command line is of a monitor or warden of this data folder.

    An agent can imitate it as pid 1 of a namespace of its own: use this only to find processes to end.
    """
    found: list[tuple[str, HostProcess]] = []
    wanted = mark.encode()
    for entry in os.scandir(_PROC):
        command = _command(entry.name) if entry.name.isdecimal() else b""
        if wanted in command:
            owner = plan.owner(command.rstrip(b"\0").rpartition(b"\0")[2].decode(errors="replace"))
            process = HostProcess.find(int(entry.name))
            if process and owner and owner[0] == mark and not _runs_under_a_warden(entry.name):
                found.append((owner[1], process))
    return found


def _stat(pid: int) -> list[bytes]:
    """The fields of proc_pid_stat(5) from the state on."""
    try:
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return [b"X"]


def _runs_under_a_warden(pid: str) -> bool:
    """Return whether it is a program in a container, which has its warden's command line between fork and exec."""
    try:
        status = (_PROC / pid / "status").read_bytes()
    except OSError:
        return True  # it is gone
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith(b"NSpid:")), list[bytes]())
    return len(numbers) > 1 and numbers[-1] != b"1"


def _command(pid: str) -> bytes:
    try:
        with (_PROC / pid / "cmdline").open("rb") as file:
            return file.read(_COMMAND_BYTES)
    except OSError:
        return b""


@contextmanager
def _handle(process: HostProcess) -> Generator[int]:
    """A pidfd. Raises ProcessLookupError."""
    fd = os.pidfd_open(process.pid)
    try:
        yield fd
    finally:
        os.close(fd)


async def _readable(fd: int, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, lambda: ended.done() or ended.set_result(None))
    try:
        await asyncio.wait_for(ended, seconds)
        return True
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(fd)
