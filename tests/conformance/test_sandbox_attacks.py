"""Programs in sandboxes that attack the server and its machine."""

import os
import shutil
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.start import get_controllers
from tests.conformance.sandboxes import (
    ATTEMPT,
    PROCESSES,
    REFUSED,
    Attack,
    MakeSandbox,
    RunCommand,
    attack,
    bwrap,
    command,
    find_processes,
    folder,
    make,
    sandbox,
)

__all__ = ["attack", "command", "folder", "make", "sandbox"]


async def test_a_killed_command_is_gone_with_all_that_it_forked(command: RunCommand, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    program = (
        ATTEMPT
        + """
for leaves in (os.setsid, lambda: os.setpgid(0, 0), lambda: None):
    if os.fork() == 0:
        attempt(leaves)
        if os.fork() == 0:
            attempt(leaves)
            tell("forked")
            while True:
                pass
        os._exit(0)
time.sleep(1000)
"""
    )
    process = await command('exec python3 -I -S -c "$@"', program, mark)
    for _ in range(3):
        assert await process.reader.readline() == b'"forked"\n'
    assert len(find_processes(mark)) >= 4
    await process.kill()
    assert not find_processes(mark)
    await process.kill()
    assert process.read_error() == ""


async def test_a_fork_bomb_is_stopped(command: RunCommand, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    bomb = ATTEMPT + "while attempt(os.fork) != 'EAGAIN':\n    time.sleep(0.1)\ntell('refused')\ntime.sleep(1000)"
    process = await command('exec python3 -I -S -c "$@"', bomb, mark)
    assert await process.reader.readline() in (b'"refused"\n', b"")  # the latter if all its processes were ended
    assert len(find_processes(mark)) <= PROCESSES
    await process.kill()
    assert not find_processes(mark)


@pytest.mark.parametrize(
    "bomb",
    [
        "held = [bytearray(1024**2) for _ in range(1024)]",
        "import mmap\nheld = mmap.mmap(-1, 1024**3)\nfor at in range(0, 1024**3, 4096): held[at] = 1",
        (
            "import mmap\nparts = [mmap.mmap(-1, 128 * 1024**2) for _ in range(8)]\nfor part in parts:\n"
            "    part.write(bytes(128 * 1024**2))\n    libc = ctypes.CDLL(None)\n"
            "    start = ctypes.addressof(ctypes.c_char.from_buffer(part))\n"
            "    assert libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(127 * 1024**2)) == 0"
        ),
        "for _ in range(8):\n    if os.fork() == 0: break\nheld = bytearray(b'x') * (128 * 1024**2)\ntime.sleep(1000)",
    ],
)
async def test_memory_is_limited(command: RunCommand, make: MakeSandbox, bomb: str) -> None:
    if make is bwrap and "memory" in get_controllers().unavailable:
        pytest.skip("no control group for memory")
    process = await command('exec python3 -I -S -c "$@"', f"{ATTEMPT}{bomb}\ntell('held')")
    assert await process.reader.read() == b""


async def test_files_of_the_server_are_out_of_reach(attack: Attack, tmp_path: Path, folder: Path) -> None:
    secret, closed = tmp_path / "data/secret", tmp_path / "data/commands/b"
    closed.mkdir(parents=True)
    for path in (secret, closed / "file"):
        path.write_text("secret")
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    (folder / "out").symlink_to(tmp_path)
    before = [secret.stat(), closed.stat(), tmp_path.stat()]
    answers = await attack(
        """
secret, closed, server = sys.argv[1:]
paths = [secret, closed + "/file", "link", "out/data/secret", "../b/file", "../../secret"]
names = ("environ", "mem", "maps", "cwd/x", "root/etc/passwd")
paths += [f"/proc/{pid}/{name}" for pid in (1, server) for name in names]
modes = ("r", "w", "r+", "a")
tell([
    *(attempt(open, path, mode) for path in paths for mode in modes),
    *(attempt(os.truncate, path, 0) for path in paths),
    *(attempt(os.link, path, f"hard{number}") for number, path in enumerate((secret, closed + "/file"))),
    *(attempt(call, secret, "moved") for call in (os.rename, os.replace)),
    *(attempt(os.unlink, path) for path in (secret, closed + "/file")),
    *(attempt(os.mkdir, path + "/new") for path in (closed, "..", "out")),
    attempt(os.rename, ".", "../c"), attempt(os.rmdir, closed), attempt(os.listdir, closed),
    attempt(os.mknod, "device", 0o20666, 0x103), attempt(os.symlink, "x", closed + "/x"),
])
""",
        secret, closed, os.getpid(),
    )  # fmt: skip
    assert set(answers) <= REFUSED | {"EBUSY", "EXDEV", "EINVAL"}
    assert secret.read_text() == (closed / "file").read_text() == "secret"
    assert [(info.st_mode, info.st_mtime_ns) for info in before] == [
        (info.st_mode, info.st_mtime_ns) for info in (secret.stat(), closed.stat(), tmp_path.stat())
    ]


async def test_metadata_of_the_servers_files_stay(attack: Attack, tmp_path: Path, folder: Path) -> None:
    secret = tmp_path / "data/secret"
    secret.parent.mkdir()
    secret.write_text("secret")
    before = secret.stat()
    await attack(
        """
path = sys.argv[1]
attempt(os.chmod, path, 0o777)
attempt(os.chmod, os.path.dirname(path), 0)
attempt(os.chown, path, 1000, 1000)
attempt(os.utime, path, (1, 1))
attempt(os.setxattr, path, "user.name", b"value")
tell(0)
""",
        secret,
    )
    after = secret.stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (before.st_mode, before.st_uid, before.st_mtime_ns)
    assert os.listxattr(secret) == []
    assert secret.parent.stat().st_mode & 0o777


async def test_the_server_gets_no_signal_and_keeps_its_limits(attack: Attack) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            answers = await attack(
                """
import signal
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *values):
    if getattr(libc, name)(*values) < 0:
        raise OSError(ctypes.get_errno(), name)
def prlimit(pid):
    call("prlimit", pid, resource.RLIMIT_NOFILE, (ctypes.c_ulong * 2)(1, 1), None)
def attach(pid):
    libc.ptrace.restype = ctypes.c_long
    call("ptrace", 16, pid, None, None)
def peek(pid):
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    call("process_vm_readv", pid, vector, 1, vector, 1, 0)
pids = [*map(int, sys.argv[1:]), os.getppid()]
tell([
    attempt(act, pid) for pid in pids if pid > 1
    for act in (lambda pid: os.kill(pid, signal.SIGKILL), lambda pid: os.killpg(pid, signal.SIGKILL), prlimit, attach,
                peek, lambda pid: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL),
                lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda pid: os.sched_setaffinity(pid, {0}))
])
""",
                os.getpid(), other.pid,
            )  # fmt: skip
            assert set(answers) <= {"EPERM", "ESRCH"}
            assert other.poll() is None
        finally:
            other.kill()


async def test_a_signal_to_all_processes_stays_in_the_sandbox(attack: Attack) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            assert await attack("attempt(os.kill, -1, 9)\ntell('alive')") == "alive"
            assert other.poll() is None
        finally:
            other.kill()


async def test_no_socket_leaves_the_sandbox(attack: Attack, tmp_path: Path) -> None:
    path, name = tmp_path / "s", f"\0{os.getpid()}-{tmp_path.name}"
    with (
        closing(socket.socket(socket.AF_UNIX)) as stream,
        closing(socket.socket(socket.AF_UNIX)) as abstract,
        closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as datagrams,
    ):
        stream.bind(str(path))
        stream.listen()
        abstract.bind(name)
        abstract.listen()
        datagrams.bind(name + "d")
        datagrams.setblocking(False)
        answers = await attack(
                """
path, name = sys.argv[1], "\\0" + sys.argv[2]
def connect(family, kind, address):
    socket.socket(family, kind).connect(address)
def send(address):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"x", address)
tell([
    attempt(connect, socket.AF_UNIX, socket.SOCK_STREAM, path),
    attempt(connect, socket.AF_UNIX, socket.SOCK_STREAM, name),
    attempt(connect, socket.AF_UNIX, socket.SOCK_DGRAM, name + "d"),
    attempt(connect, socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    attempt(connect, socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 53)),
    attempt(send, name + "d"), attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 16),
    attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
])
""",
                path, name[1:],
            )  # fmt: skip
        assert set(answers) <= {"EAFNOSUPPORT", "ENETUNREACH", "ENOENT", "ECONNREFUSED", "EPERM"}
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)


async def test_other_programs_and_privileged_calls_are_refused(attack: Attack, tmp_path: Path) -> None:
    shutil.copy("/usr/bin/env", tmp_path / "env")
    answers = await attack(
        """
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *values):
    if getattr(libc, name)(*values) < 0:
        raise OSError(ctypes.get_errno(), name)
def run(path):
    if os.fork() == 0:
        os._exit(0 if attempt(os.execv, path, [path]) in ("EACCES", "ENOENT") else 1)
    return os.wait()[1]
open("own", "w").write("#!/bin/sh\\n")
attempt(os.chmod, "own", 0o755)
tell([
    [run("/usr/bin/env"), run("/usr/bin/id"), run(sys.argv[1])],
    [attempt(call, "unshare", 0x10000000), attempt(call, "setns", 0, 0), attempt(call, "chroot", b"."),
     attempt(call, "mount", b"none", b".", b"tmpfs", 0, None), attempt(call, "syscall", 425, 1, None),
     attempt(call, "syscall", 298, None, 0, 0, 0, 0), attempt(call, "syscall", 250, 0, 0)],
])
""",
        tmp_path / "env",
    )
    assert answers[0] == [0, 0, 0]
    assert set(answers[1]) <= {"EPERM", "ENOSYS"}


async def test_descriptors_of_the_server_are_not_inherited(attack: Attack, tmp_path: Path) -> None:
    (tmp_path / "open").write_text("secret")
    with (tmp_path / "open").open() as file:
        os.set_inheritable(file.fileno(), True)
        answers = await attack("tell([attempt(os.fstat, fd) for fd in range(256)])")
    opened = [answer for answer in answers if not answer.startswith("E")]
    assert 4 <= len(opened) <= 5  # input, output, errors and control
    assert not [answer for answer in opened if f"st_ino={(tmp_path / 'open').stat().st_ino}," in answer]
