"""Supervisor of one sandbox: confines a command by Landlock and seccomp, watches it, and ends all its processes.

`python3 -S -E -I confine.py FD`: the socket FD brings a `Confinement` by `marshal`, gets the command's pid once it is
confined, and its end ends the sandbox. The command leads a process group that its processes cannot leave, so that one
signal ends all of them at the same moment, however fast they fork. Standard library only, and little of it, because
each command waits for the imports.
"""

import ctypes
import marshal
import os
import resource
import select
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    class Confinement(TypedDict):
        """A command and what it may use. `rights` are Landlock's, by path; `limits` are by number of the resource."""

        abi: int
        filter: bytes
        arguments: list[str]
        environment: Mapping[str, str]
        folder: str
        rights: Sequence[tuple[str, int]]
        limits: Mapping[int, int]
        memory_bytes: int
        threads: int
        ends_orphans: bool


# linux/landlock.h
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER, _REMOVE = 1, 2, 4, 8, 16 | 32
_MAKE_FOLDER, _MAKE_FILE, _MAKE_LINK, _MOVE, _TRUNCATE = 128, 256, 4096, 8192, 16384
_RIGHTS_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_ALL_RIGHTS, _DEVICE_CONTROL = 2 * _TRUNCATE - 1, 2 * _TRUNCATE  # the latter from version 5 on
_TCP, _SOCKETS_AND_SIGNALS = 3, 3  # from versions 4 and 6 on

OLDEST_ABI, SIGNALS_ABI = 3, 6
"""Linux 6.2, since which files cannot be truncated by path; Linux 6.12, since which signals are confined."""
READABLE = _READ_FILE | _READ_FOLDER
EXECUTABLE = READABLE | _EXECUTE
WRITABLE = READABLE | _WRITE_FILE | _REMOVE | _MAKE_FOLDER | _MAKE_FILE | _MAKE_LINK | _MOVE | _TRUNCATE
DEVICE = _READ_FILE | _WRITE_FILE

# linux/prctl.h
_SET_DEATH_SIGNAL, _SET_SECCOMP, _DROP_CAPABILITY, _SET_SUBREAPER, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 22, 24, 36, 38, 47
_FILTER_MODE, _CLEAR_ALL = 2, 4
_SIGKILL = 9  # the module `signal` takes milliseconds to import
_OOM_SCORE = b"300"
_TICK_MILLISECONDS = 250

_libc = ctypes.CDLL(None, use_errno=True)


def find_abi() -> int:
    """Return the version of Landlock in this kernel, 0 for none."""
    return max(0, _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _GET_VERSION))


def run_confined(control: int) -> None:
    """Run the command that the socket brings until it ends, exceeds its limits or the socket is closed."""
    os.set_inheritable(control, False)
    with open(control, "rb", closefd=False) as file:
        confinement: Confinement = marshal.load(file)  # noqa: S302 - the server wrote it
    _call_prctl(_SET_SUBREAPER, 1)
    confined, failure = os.pipe()
    supervisor = os.getpid()
    command = os.fork()
    if command == 0:
        try:
            _become_command(confinement, supervisor)
        except BaseException as error:  # noqa: BLE001 - nothing may run unconfined
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os.write(failure, b"!")
        os._exit(1)
    os.close(failure)
    try:
        if not os.read(confined, 1):  # the start of the command closed the pipe
            os.write(control, b"%d\n" % command)
            _watch_command(command, control, confinement)
    finally:
        _end_processes(command)


def _watch_command(command: int, control: int, confinement: "Confinement") -> None:
    """Wait until the command ends or exceeds its limits, or the server has ended."""
    events = select.poll()
    for fd in (control, os.pidfd_open(command)):
        events.register(fd, select.POLLIN)
    while not events.poll(_TICK_MILLISECONDS) and not _exceeds(command, confinement):
        pass


def _become_command(confinement: "Confinement", supervisor: int) -> None:
    os.setsid()
    _call_prctl(_SET_DEATH_SIGNAL, _SIGKILL)
    if os.getppid() != supervisor:
        raise ProcessLookupError("the supervisor has ended")
    with open("/proc/self/oom_score_adj", "wb") as file:  # noqa: PTH123 - as above
        file.write(_OOM_SCORE)
    os.chdir(confinement["folder"])
    _drop_rights()
    for kind, limit in confinement["limits"].items():
        _, most = resource.getrlimit(kind)
        lowered = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (lowered, lowered))
    _restrict_files(confinement["abi"], confinement["rights"])
    code = ctypes.create_string_buffer(confinement["filter"])
    program = struct.pack("HP", len(confinement["filter"]) // 8, ctypes.addressof(code))
    _call_prctl(_SET_SECCOMP, _FILTER_MODE, program)
    arguments = confinement["arguments"]
    os.execve(arguments[0], arguments, confinement["environment"])  # noqa: S606 - the server's


def _drop_rights() -> None:
    """Drop what a server that runs as root, or with capabilities, would pass on."""
    capability = 0
    while _libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0) == 0:
        capability += 1
    _call_prctl(_AMBIENT, _CLEAR_ALL)
    _call_prctl(_NO_NEW_PRIVILEGES, 1)


def _restrict_files(abi: int, rights: "Sequence[tuple[str, int]]") -> None:
    """Refuse all files but these, TCP, and signals to processes outside, as far as the kernel can."""
    handled = _ALL_RIGHTS | (_DEVICE_CONTROL if abi >= 5 else 0)
    attributes = [handled, *([_TCP] if abi >= 4 else []), *([_SOCKETS_AND_SIGNALS] if abi >= SIGNALS_ABI else [])]
    packed = struct.pack(f"{len(attributes)}Q", *attributes)
    ruleset = _check(_libc.syscall(_CREATE_RULESET, packed, ctypes.c_size_t(len(packed)), 0))
    for path, allowed in rights:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        fit = allowed if os.path.isdir(path) else allowed & _RIGHTS_OF_FILES  # noqa: PTH112 - as above
        _check(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", fit, beneath), 0))
        os.close(beneath)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _exceeds(command: int, confinement: "Confinement") -> bool:
    """Return whether the command's processes are too many or too large together.

    The kernel's own limit counts all processes of a user, and those of other containers, too.
    """
    threads = kib = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if not name.isdecimal():
            continue
        try:
            state, parent, group, *rest = _read_file(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if int(group) != command:
                continue
            threads += int(rest[14])
            if int(parent) == os.getpid() and int(name) != command:
                if state == b"Z":
                    os.waitpid(int(name), os.WNOHANG)
                elif confinement["ends_orphans"]:
                    return True
            lines = _read_file(f"/proc/{name}/status").splitlines()
            kib += sum(int(line.split()[1]) for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))
        except (OSError, ValueError):  # the process has ended
            continue
    return threads > confinement["threads"] or kib * 1024 > confinement["memory_bytes"]


def _end_processes(command: int) -> None:
    """End the command with all its processes, and wait until they are gone."""
    try:
        os.kill(command, _SIGKILL)
        os.killpg(command, _SIGKILL)
    except ProcessLookupError:  # it has no group before it is confined
        pass
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


def _read_file(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
        return file.read(8192) or b""


def _call_prctl(option: int, first: "int | bytes", second: "int | bytes" = 0) -> None:
    values = (value if isinstance(value, bytes) else ctypes.c_ulong(value) for value in (first, second))
    _check(_libc.prctl(option, *values, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    run_confined(int(sys.argv[1]))
