import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import uvloop

from roost.core.machine import unix_socket
from roost.drivers.runtime.bwrap import launch, plan
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from tests.conformance.runtimes import until

UID = 70001

Run = Callable[..., launch.LaunchedBwrap]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a shell script instead of bwrap, with `$INFO` and `$BLOCK`."""
    launched: list[launch.LaunchedBwrap] = []

    def start(script: str, uid: int | None = None) -> launch.LaunchedBwrap:
        def command(fds: plan.InheritedDescriptors) -> list[str]:
            names = f"INFO={fds.info}; BLOCK={fds.block}; SOCKET={fds.socket}; SECCOMP={fds.seccomp};"
            return ["/bin/bash", "-c", names + script]

        with closing(unix_socket.listen_unix(tmp_path / "w.sock")) as socket:
            launched.append(launch.launch_bwrap(command, plan.ETC, socket.fileno(), uid, ContainerLimits()))
        return launched[-1]

    yield start
    for bwrap in launched:
        bwrap.close()


async def test_the_child_pid_may_arrive_in_pieces(run: Run) -> None:
    launched = run("""printf '{"child' >&$INFO; read -t 0.05 <&$BLOCK; printf -- '-pid": 42}' >&$INFO""")
    assert await launched.wait_for_child_pid() == 42


async def test_a_failure_is_reported_with_the_last_error_line(run: Run) -> None:
    with pytest.raises(RuntimeFailed, match="did not start: bwrap: no such thing"):
        await run("echo first >&2; echo bwrap: no such thing >&2").wait_for_child_pid()
    with pytest.raises(RuntimeFailed, match="without an error message"):
        await run("true").wait_for_child_pid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each agent its own user")
async def test_an_agents_user_has_its_own_ids_and_limits(run: Run) -> None:
    limits = ContainerLimits()
    script = "ulimit -n; ulimit -u; ulimit -c; id -ru; id -rg; grep -E '^(Uid|Gid|Groups|CapPrm)' /proc/self/status"
    launched = run(f"echo began >&2; read <&$BLOCK; echo $({script}) >&2", UID)
    await until(lambda: launched.last_error_line() == "began")  # until its program runs, its saved user is still root
    launch.set_limits(launched.monitor, limits, UID)
    launched.unblock()
    with pytest.raises(RuntimeFailed):
        await launched.wait_for_child_pid()
    ids = f"{UID} {UID} {UID} {UID}"
    expected = f"{limits.open_files} {limits.pids} 0 {UID} {UID} Uid: {ids} Gid: {ids} Groups: CapPrm: {0:016x}"
    assert launched.last_error_line() == expected


def test_no_descriptor_of_another_thread_is_closed() -> None:
    """The server's loop (uvloop) closes descriptors of its own only, while threads open and close theirs."""
    over, lost = threading.Event(), list[int]()

    def open_and_close() -> None:
        while not over.is_set():
            for fd in os.pipe2(os.O_CLOEXEC):
                try:
                    os.close(fd)
                except OSError:
                    lost.append(fd)

    async def read_pids() -> None:
        for _ in range(3000):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            with theirs:
                theirs.send(b'{"child-pid": 7}')
                ends = os.dup(theirs.fileno()), os.dup(theirs.fileno())
                launched = launch.LaunchedBwrap(1, ours, *ends, None, ContainerLimits())
            assert await launched.wait_for_child_pid() == 7
            launched.close()

    threads = [threading.Thread(target=open_and_close) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        uvloop.run(read_pids())
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert lost == []


async def test_bwrap_waits_until_it_is_unblocked(run: Run, tmp_path: Path) -> None:
    launched = run(f"""printf '{{"child-pid": 1}}' >&$INFO; read -n 1 <&$BLOCK; touch {tmp_path}/went""")
    await launched.wait_for_child_pid()
    assert not (tmp_path / "went").exists()
    launched.unblock()
    await until((tmp_path / "went").exists)


async def test_only_the_needed_descriptors_are_inherited(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        run(f"ls -l /proc/$$/fd > {tmp_path}/seen; env > {tmp_path}/env; pwd > {tmp_path}/cwd")
        await until((tmp_path / "cwd").exists)
        await until((tmp_path / "cwd").read_text)
    seen = (tmp_path / "seen").read_text()
    assert "secret" not in seen
    assert seen.count("/dev/null") == 2 - (f"{tmp_path}/seen" in seen)
    assert seen.count("memfd:roost") == 2 + len(plan.ETC)
    assert (tmp_path / "cwd").read_text() == "/\n"
    assert not {"HOME", "PATH_INFO", "USER"} & {line.split("=")[0] for line in (tmp_path / "env").read_text().split()}


async def test_the_error_output_is_bounded(run: Run, tmp_path: Path) -> None:
    launched = run(f"head -c 1M /dev/zero | tr '\\0' x >&2; touch {tmp_path}/over")
    await until((tmp_path / "over").exists)
    assert os.fstat(launched.errors).st_size == 64 * 1024
    assert len(launched.last_error_line()) == 500


async def test_ended_monitors_are_reaped(run: Run) -> None:
    launched = run("exit 3")
    stat = Path(f"/proc/{launched.monitor}/stat")
    await until(lambda: " Z " in stat.read_text())
    launch.reap_monitors()
    assert not stat.exists()


def test_limits_are_set_for_our_own_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        launch.set_limits(child.pid, ContainerLimits(file_bytes=1 << 20, open_files=99, pids=1000), None)
        assert resource.prlimit(child.pid, resource.RLIMIT_FSIZE) == (1 << 20, 1 << 20)
        assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE) == (99, 99)
        assert resource.prlimit(child.pid, resource.RLIMIT_CORE) == (0, 0)
        child.communicate(b"\n")


def test_a_missing_program_leaks_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    with pytest.raises(FileNotFoundError):
        launch.launch_bwrap(lambda _: ["/missing/bwrap"], {}, 0, None, ContainerLimits())
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count
