"""Records of containers and their processes.

A pid is valid only with its start time and boot id, so that a reused pid is never taken for a container.
"""

import asyncio
import json
import os
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.contract import Container

_PROC = Path("/proc")
_EXITING = 0x4  # PF_EXITING, linux/sched.h
_COMMAND_BYTES = 256 * 1024  # longer than ours; an agent's may be megabytes


@dataclass(frozen=True)
class HostProcess:
    """Process of this machine; `born` is its start in ticks since the boot, from `/proc/<pid>/stat`."""

    pid: int
    born: int

    @classmethod
    def find(cls, pid: int) -> "HostProcess | None":
        """Return the process of a pid, None if it has ended or is a zombie."""
        fields = read_stat(pid)
        return None if fields[0] in {b"Z", b"X"} else cls(pid, int(fields[19]))

    def is_alive(self) -> bool:
        """Return whether the process runs; one that has begun to exit serves no requests any more."""
        fields = read_stat(self.pid)
        return fields[0] not in {b"Z", b"X"} and int(fields[19]) == self.born and not int(fields[6]) & _EXITING

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; ignore processes that are gone or belong to another user."""
        with suppress(ProcessLookupError, PermissionError), _open_pidfd(self) as fd:
            if self.is_alive():  # checked with an open pidfd, so that the pid cannot be reused
                signal.pidfd_send_signal(fd, number)

    async def wait_until_gone(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end of the process, and return whether it is gone."""
        try:
            with _open_pidfd(self) as fd:
                return HostProcess.find(self.pid) != self or await _wait_readable(fd, seconds)
        except ProcessLookupError:
            return True


@dataclass(frozen=True)
class ContainerRecord:
    """Record of a container; `groups` are its control groups, `mark` is that of its data folder."""

    agent_id: str
    boot: str
    warden: HostProcess
    monitor: HostProcess
    started_at: datetime
    groups: tuple[Path, ...] = ()
    mark: str = ""
    delete_only: bool = False

    def is_alive(self) -> bool:
        """Return whether the container's pid 1 runs; the monitor only waits for it."""
        return self.boot == boot_id() and self.warden.is_alive()

    def processes(self) -> tuple[HostProcess, ...]:
        """Return the processes, none after a reboot."""
        return (self.warden, self.monitor) if self.boot == boot_id() else ()

    def to_container(self) -> Container:
        return Container(self.agent_id, self.warden.pid, self.started_at, self.delete_only)

    def save(self, path: Path) -> None:
        values = asdict(self) | {
            "started_at": self.started_at.isoformat(),
            "groups": [str(group) for group in self.groups],
        }
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(values))
        draft.rename(path)


def load_record(path: Path) -> ContainerRecord | None:
    """Return the record, None if it is missing or incomplete."""
    try:
        values = json.loads(path.read_text())
        return ContainerRecord(
            values["agent_id"],
            values["boot"],
            HostProcess(**values["warden"]),
            HostProcess(**values["monitor"]),
            datetime.fromisoformat(values["started_at"]),
            tuple(Path(group) for group in values["groups"]),
            values.get("mark", ""),
            values.get("delete_only", False),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def find_marked(mark: str) -> list[tuple[str, HostProcess]]:
    """Return (agent id, process) of each monitor or warden whose command line has the mark of this data folder.

    An agent can imitate it as pid 1 of a namespace of its own, so use this only to find processes to kill.
    """
    found: list[tuple[str, HostProcess]] = []
    wanted = mark.encode()
    for pid in list_pids():
        # Check the namespace first: a command line is memory of its process, and a read waits for its memory lock.
        # A process of a container can hold that lock for seconds when it forks and has used up its processor time.
        if _is_inside_container(pid):
            continue
        command = _read_command(pid)
        if wanted in command:
            agent_id = plan.parse_agent_id(command.rstrip(b"\0").rpartition(b"\0")[2].decode(errors="replace"), mark)
            process = HostProcess.find(pid)
            if process and agent_id is not None:
                found.append((agent_id, process))
    return found


def list_pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - only the names


def find_tree(top: int, parents: Mapping[int, int | None]) -> set[int]:
    """Return a process with its descendants."""
    tree = {top}
    while children := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= children
    return tree


def read_stat(pid: int) -> list[bytes]:
    """Return the fields of proc_pid_stat(5) from the state on, only `X` (dead) if the process is gone."""
    try:
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return [b"X"]


def _is_inside_container(pid: int) -> bool:
    """Return whether the process is a child of a warden. Between fork and exec, it has the warden's command line."""
    try:
        status = (_PROC / str(pid) / "status").read_bytes()
    except OSError:
        return True  # the process is gone
    pids = next((line.split()[1:] for line in status.splitlines() if line.startswith(b"NSpid:")), list[bytes]())
    return len(pids) > 1 and pids[-1] != b"1"


def _read_command(pid: int) -> bytes:
    try:
        with (_PROC / str(pid) / "cmdline").open("rb") as file:
            return file.read(_COMMAND_BYTES)
    except OSError:
        return b""


@contextmanager
def _open_pidfd(process: HostProcess) -> Generator[int]:
    """Open a pidfd. Raises ProcessLookupError."""
    fd = os.pidfd_open(process.pid)
    try:
        yield fd
    finally:
        os.close(fd)


async def _wait_readable(fd: int, seconds: float) -> bool:
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
