"""Isolation of a container, over every runtime that has it, tested from inside a real one."""

import socket
from pathlib import Path

import pytest

from roost.drivers.runtime.contract import EngineVersion
from tests.conformance.containers import RunningContainer, Start

CALLS = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"


async def test_programs_run_as_an_ordinary_user_without_capabilities(container: RunningContainer) -> None:
    assert await container.sh("id -u; id -g; id -un; pwd; echo $HOME") == "1000\n1000\nagent\n/workspace\n/home/agent\n"
    for who in ("1", "self"):
        status = await container.sh(f"cat /proc/{who}/status")
        fields = {line.split(":")[0]: line.split()[-1] for line in status.splitlines()}
        assert {int(fields[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
        assert (fields["Seccomp"], fields["NoNewPrivs"]) == ("2", "1")


@pytest.mark.parametrize(
    "place", ["/", "/usr", "/etc", "/dev", "/run", "/run/roost", "/run/warden", "/engine", "/proc"]
)
async def test_the_system_is_read_only(container: RunningContainer, place: str) -> None:
    assert (await container.run("touch", f"{place}/made")).exit_code != 0


async def test_own_folders_are_writable(container: RunningContainer) -> None:
    await container.sh("touch /workspace/a /home/agent/a /tmp/a /var/tmp/b /dev/shm/a && echo x > /dev/null")


async def test_the_engine_is_read_only(start: Start, tmp_path: Path) -> None:
    engine = tmp_path / "engines" / "1"
    engine.mkdir(parents=True)
    engine.parent.chmod(0o700)
    (engine / "file").write_text("content")
    container = await start(engine=EngineVersion("it", "1"))
    assert await container.sh("cat /engine/it/file") == "content"
    assert (await container.run("touch", "/engine/it/file")).exit_code != 0


async def test_a_file_of_the_spec_is_read_only(start: Start) -> None:
    container = await start(files={"/run/trust/one.pem": b"content"})
    assert await container.sh("cat /run/trust/one.pem") == "content"
    for attempt in ("echo x >> /run/trust/one.pem", "rm -f /run/trust/one.pem", "touch /run/trust/two.pem"):
        assert (await container.run("sh", "-c", attempt)).exit_code != 0


async def test_there_is_no_network(container: RunningContainer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        facts = await container.run_python(f"""
def fails(address):
    try: socket.create_connection(address, 2).close()
    except OSError as error: return errno.errorcode[error.errno]
tell([fails(("127.0.0.1", {listener.getsockname()[1]})), fails(("169.254.169.254", 80)), fails(("192.0.2.1", 443)),
      [name for _, name in socket.if_nameindex()], len(open("/proc/net/route").readlines())])""")
    assert facts == ["ECONNREFUSED", "ENETUNREACH", "ENETUNREACH", ["lo"], 1]


async def test_socket_families_and_protocols_have_an_allow_list(container: RunningContainer) -> None:
    facts = await container.run_python("""
def made(*kind):
    try: socket.socket(*kind).close()
    except OSError as error: return errno.errorcode[error.errno]
    return "yes"
allowed = [(1, 1), (2, 1), (2, 2), (10, 1), (2, 1, 6), (10, 2, 17), (16, 3, 0)]
protocols = [(2, 1, 262), (10, 1, 262), (2, 2, 136), (2, 1, 132), (2, 1, 256), (2, 3, 255)]
families = [(16, 3, 12), (40, 1), (38, 5), (17, 3)]
tell([made(*kind) for kind in allowed + protocols + families])""")
    assert facts == [*["yes"] * 7, *["EPROTONOSUPPORT"] * 6, *["EAFNOSUPPORT"] * 4]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("libc.unshare(0x10000000)", "EPERM"),
        ("libc.syscall(425, 1, None)", "EPERM"),  # io_uring_setup, the same number everywhere
        ("libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)", "EPERM"),
        ("libc.setns(0, 0)", "EPERM"),
        ("libc.chroot(b'/tmp')", "EPERM"),
        ("libc.sethostname(b'other', 5)", "EPERM"),
        ("libc.syscall(435, None, 0)", "ENOSYS"),  # clone3
        ("libc.ioctl(0, 0x5412, b'x')", "EPERM"),  # TIOCSTI
        ("libc.ptrace(16, 1, 0, 0)", "EPERM"),  # PTRACE_ATTACH to the warden
        ("libc.kill(1, 0)", ""),  # programs of the agent may end its warden, and so its container
    ],
)
async def test_denied_calls_fail_with_their_error(container: RunningContainer, call: str, answer: str) -> None:
    program = f"result = {call}\ntell(errno.errorcode[ctypes.get_errno()] if result else '')"
    assert await container.run_python(CALLS + program) == answer


async def test_threads_and_children_are_allowed(container: RunningContainer) -> None:
    assert (
        await container.run_python(
            """
import subprocess, threading
threads = [threading.Thread(target=print) for _ in range(4)]
[one.start() for one in threads]; [one.join() for one in threads]
tell(subprocess.run(["sh", "-c", "exit 7"]).returncode)""".replace("target=print", "target=len, args=('',)")
        )
        == 7
    )


@pytest.mark.parametrize(
    "command", ["su -c id", "mount -t tmpfs x /tmp", "unshare -Ur true", "chroot / true", "sudo -n id"]
)
async def test_setuid_programs_have_no_effect(container: RunningContainer, command: str) -> None:
    assert (await container.run("sh", "-c", f"{command} </dev/null")).exit_code != 0


async def test_only_own_processes_are_visible(start: Start) -> None:
    one, two = await start("one"), await start("two")
    await two.warden.start("sleeper", ["sleep", "1000"], env={}, restart=False)
    commands = await one.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sleep" not in commands
    assert '"agent": "two"' not in commands
    assert len((await one.sh("ls -d /proc/[0-9]*")).split()) <= 4


async def test_the_memory_of_the_warden_is_not_readable(container: RunningContainer) -> None:
    for secret in ("environ", "mem", "fd", "maps"):
        assert (
            await container.run("sh", "-c", f"ls /proc/1/{secret}/ 2>&1 && exit 9; cat /proc/1/{secret}")
        ).exit_code == 1


async def test_proc_shows_nothing_of_other_agents(start: Start) -> None:
    one, other = await start("first-agent"), await start("second-agent")
    mounts = await one.sh("cat /proc/self/mountinfo")
    assert one.agent_id in mounts  # as the threat model says
    assert other.agent_id not in mounts
    facts = await one.run_python(
        """
pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
def attempt(call, path):
    try:
        return bool(call(path))
    except OSError as error:
        return errno.errorcode[error.errno]
tell({
    "pids": [1 in pids, max(pids) < 100],
    "pid 1": [attempt(os.listdir, "/proc/1/fd"), attempt(os.readlink, "/proc/1/root"), attempt(open, "/proc/1/mem")],
    "system": len(os.listdir("/sys")) if os.path.exists("/sys") else 0,
    "sockets": sum("/" in line for line in open("/proc/net/unix")),
})
"""
    )
    assert facts == {"pids": [True, True], "pid 1": ["EACCES"] * 3, "system": 0, "sockets": 0}
