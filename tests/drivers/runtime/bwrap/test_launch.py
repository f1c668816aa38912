import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import launch, plan
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from tests.conformance.runtimes import until

Run = Callable[[str], launch.LaunchedBwrap]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a shell script instead of bwrap, with `$INFO` and `$BLOCK`."""
    launched: list[launch.LaunchedBwrap] = []

    def start(script: str) -> launch.LaunchedBwrap:
        def command(fds: plan.InheritedDescriptors) -> list[str]:
            names = f"INFO={fds.info}; BLOCK={fds.block}; LISTENER={fds.listener}; SECCOMP={fds.seccomp};"
            return ["/bin/bash", "-c", names + script]

        launched.append(launch.launch_bwrap(command, plan.ETC, tmp_path / "w.sock", None, ContainerLimits()))
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
        launch.set_limits(child.pid, ContainerLimits(file_bytes=1 << 20, open_files=99, pids=1000))
        assert resource.prlimit(child.pid, resource.RLIMIT_FSIZE) == (1 << 20, 1 << 20)
        assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE) == (99, 99)
        assert resource.prlimit(child.pid, resource.RLIMIT_CORE) == (0, 0)
        child.communicate(b"\n")


def test_a_missing_program_leaks_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    with pytest.raises(FileNotFoundError):
        launch.launch_bwrap(lambda _: ["/missing/bwrap"], {}, tmp_path / "w.sock", None, ContainerLimits())
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count
