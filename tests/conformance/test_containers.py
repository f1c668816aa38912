"""Processes in a container, over every runtime: commands, supervised processes and their logs."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from roost.warden_client.client import LogLine, WardenClient
from roost.warden_client.errors import ExecRefused, ProcessAlreadyRunning, WardenBusy, WardenFailed
from tests.conformance.runtimes import AGENT, CASES, RuntimeEnv, open_runtime_env, sleeper, sleeping, until


@pytest.fixture(params=CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    async with open_runtime_env(request.param, tmp_path) as found:
        yield found


@pytest.fixture
async def container(env: RuntimeEnv) -> WardenClient:
    return await env.container()


async def test_a_command_returns_its_output_and_exit_code(container: WardenClient) -> None:
    result = await container.exec(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 3)
    assert not result.timed_out
    assert not result.truncated


async def test_a_signal_shows_in_the_exit_code(container: WardenClient) -> None:
    assert (await container.exec(["sh", "-c", "kill -9 $$"])).exit_code == 128 + 9


async def test_a_command_runs_in_the_workspace_or_a_folder_of_it(container: WardenClient) -> None:
    root = (await container.exec(["pwd"])).stdout.decode().strip()
    await container.exec(["mkdir", "-p", "a/b"])
    for cwd in ("a/b", f"{root}/a/b", "a/../a/./b"):
        assert (await container.exec(["pwd"], cwd=cwd)).stdout.decode().strip() == f"{root}/a/b"
    assert (await container.exec(["pwd"], cwd=root)).stdout.decode().strip() == root


@pytest.mark.parametrize("cwd", ["", "missing", "..", "a/../..", "/", "/etc", "file", "out", "a\0b", "file/.."])
async def test_a_command_runs_in_no_other_folder(container: WardenClient, cwd: str) -> None:
    await container.exec(["sh", "-c", "touch file; ln -s / out"])
    with pytest.raises(ExecRefused):
        await container.exec(["pwd"], cwd=cwd)


@pytest.mark.parametrize("argv", [[], [""], ["no-such-program"], ["/etc"], ["./file"], ["a\0b"], ["true", "\0"]])
async def test_a_malformed_command_is_refused(container: WardenClient, argv: Sequence[str]) -> None:
    await container.exec(["touch", "file"])
    with pytest.raises(ExecRefused):
        await container.exec(argv)
    assert (await container.exec(["true"])).exit_code == 0


async def test_a_command_that_is_too_long_is_refused(container: WardenClient) -> None:
    for length in (200_000, 2_000_000):
        with pytest.raises(ExecRefused):
            await container.exec(["true", "x" * length])


async def test_a_command_gets_its_environment_and_finds_programs_by_it(container: WardenClient) -> None:
    await container.write("bin/hello", b"#!/bin/sh\necho hello $NAME\n", mode=0o755)
    result = await container.exec(["hello"], env={"PATH": "bin:/usr/bin", "NAME": "you"})
    assert result.stdout == b"hello you\n"


async def test_input_of_any_size_arrives(container: WardenClient) -> None:
    data = bytes(range(256)) * 20_000
    result = await container.exec(["cat"], stdin=data, output_limit=10 << 20)
    assert result.stdout == data
    assert (await container.exec(["cat"])).stdout == b""


async def test_a_command_can_ignore_its_input(container: WardenClient) -> None:
    assert (await container.exec(["true"], stdin=b"x" * 5_000_000)).exit_code == 0
    result = await container.exec(["sleep", "60"], stdin=b"x" * 5_000_000, timeout=0.2)
    assert result.timed_out


async def test_output_over_the_limit_is_truncated(container: WardenClient) -> None:
    result = await container.exec(["sh", "-c", "head -c 50000000 /dev/zero; echo end >&2; exit 5"], output_limit=1000)
    assert result.stdout == bytes(1000)
    assert (result.stderr, result.exit_code, result.truncated) == (b"end\n", 5, True)
    exact = await container.exec(["head", "-c", "1000", "/dev/zero"], output_limit=1000)
    assert (exact.stdout, exact.truncated) == (bytes(1000), False)


async def test_endless_output_ends_at_the_timeout(container: WardenClient) -> None:
    result = await container.exec(["yes"], timeout=0.3, output_limit=100)
    assert (result.stdout[:4], len(result.stdout)) == (b"y\ny\n", 100)
    assert (result.exit_code, result.timed_out, result.truncated) == (124, True, True)


async def test_output_before_the_timeout_is_kept(container: WardenClient) -> None:
    result = await container.exec(["sh", "-c", "echo before; sleep 60"], timeout=0.3)
    assert (result.stdout, result.exit_code, result.timed_out) == (b"before\n", 124, True)


async def test_a_timeout_ends_all_processes_of_a_command(container: WardenClient) -> None:
    durations = [sleeper() for _ in range(5)]
    plain, group, session, orphan, ignoring = durations
    script = (
        f"sleep {plain} & setsid sleep {session} & (env -i setsid sleep {orphan} &); "
        f"trap '' TERM HUP INT; (trap '' TERM; sleep {ignoring}) & sleep {group}"
    )
    running = asyncio.create_task(container.exec(["sh", "-c", script], timeout=3))
    await until(lambda: all(map(sleeping, durations)))
    assert (await running).timed_out
    assert not any(map(sleeping, durations))


async def test_no_process_survives_a_timeout_by_changing_its_limits(container: WardenClient) -> None:
    duration = sleeper()
    program = f"""
import os, resource
kind = resource.RLIMIT_RTTIME
soft, hard = resource.getrlimit(kind)
for change in (lambda: resource.setrlimit(kind, (hard, hard)), lambda: resource.prlimit(0, kind, (1, 1))):
    try: change()
    except (OSError, ValueError): print("denied", flush=True)
if os.fork() == 0 and (os.setsid() or os.fork()) == 0:
    os.execvp("sleep", ["sleep", "{duration}"])
"""
    running = asyncio.create_task(container.exec(["sh", "-c", 'python3 -c "$0"; sleep 60', program], timeout=2))
    await until(lambda: sleeping(duration))
    result = await running
    assert (result.stdout, result.timed_out) == (b"denied\ndenied\n", True)
    assert not sleeping(duration)


async def test_a_fork_storm_ends_at_the_timeout(container: WardenClient) -> None:
    duration = sleeper()
    storm = f"n=0; while [ $n -lt 60 ]; do n=$((n+1)); setsid sleep {duration} & done; wait"
    assert (await container.exec(["sh", "-c", storm], timeout=1)).timed_out
    assert not sleeping(duration)


async def test_a_background_process_survives_and_does_not_delay_the_end(container: WardenClient) -> None:
    duration = sleeper()
    result = await container.exec(["sh", "-c", f"sleep {duration} & echo done"], timeout=30)
    assert (result.stdout, result.timed_out) == (b"done\n", False)
    await until(lambda: sleeping(duration))


async def test_a_stream_yields_output_immediately(container: WardenClient) -> None:
    script = "echo one; read line; echo two >&2; exit 4"
    newlines = asyncio.Queue[bytes]()

    async def type_lines() -> AsyncIterator[bytes]:
        while line := await newlines.get():
            yield line

    async with container.exec_stream(["sh", "-c", script], stdin=type_lines()) as pieces:
        seen = [await anext(pieces)]
        newlines.put_nowait(b"\n")
        seen += [piece async for piece in pieces]
    assert sorted((piece.stream, piece.data, piece.exit_code) for piece in seen) == [
        ("exit", b"", 4),
        ("stderr", b"two\n", None),
        ("stdout", b"one\n", None),
    ]
    assert seen[-1].stream == "exit"


async def test_closing_the_stream_ends_the_command(container: WardenClient) -> None:
    duration = sleeper()
    async with container.exec_stream(["sh", "-c", f"echo x; setsid sleep {duration} & sleep {duration}"]) as pieces:
        await anext(pieces)
        await until(lambda: sleeping(duration))
    await until(lambda: not sleeping(duration))


async def test_cancelling_with_pending_input_ends_the_command(container: WardenClient) -> None:
    duration = sleeper()
    running = asyncio.create_task(container.exec(["sleep", duration], stdin=b"x" * 5_000_000))
    await until(lambda: sleeping(duration))
    running.cancel()
    await until(lambda: not sleeping(duration))


async def test_a_slow_reader_slows_the_command(container: WardenClient, env: RuntimeEnv) -> None:
    count = env.workspace() / "count"
    script = "i=0; while :; do i=$((i+1)); echo $i > count; head -c 100000 /dev/zero; done"
    async with container.exec_stream(["sh", "-c", script]) as pieces:
        await anext(pieces)
        still = await _stable_number(count)
        assert still < 100  # of 100,000 bytes each: only what the pipe and the sockets buffer
        received = 0
        async for piece in pieces:
            received += len(piece.data)
            if received > 20_000_000:
                break
    assert int(count.read_text() or 1000) > still


async def test_concurrent_commands_are_limited(container: WardenClient) -> None:
    results = await asyncio.gather(*(container.exec(["sh", "-c", f"echo {number}"]) for number in range(64)))
    assert [int(result.stdout) for result in results] == list(range(64))
    duration = sleeper()
    held = [asyncio.create_task(_exec_when_free(container, ["sleep", duration])) for _ in range(64)]
    with pytest.raises(WardenBusy):
        await _until_refused(container)
    for task in held:
        task.cancel()
    await until(lambda: not sleeping(duration))
    assert (await container.exec(["true"])).exit_code == 0


async def test_zombies_are_reaped(container: WardenClient) -> None:
    await container.exec(["sh", "-c", "for i in 1 2 3 4 5; do (setsid true &); done"])
    mine = f"awk '/^State/ {{s=$2}} /^PPid/ {{if (s == \"Z\" && $2 == {(await container.ping()).pid}) print FILENAME}}'"

    async def zombies() -> bytes:
        return (await container.exec(["sh", "-c", f"{mine} /proc/[0-9]*/status 2>/dev/null"])).stdout

    async with asyncio.timeout(10):
        while await zombies():
            await asyncio.sleep(0.01)


async def test_the_wardens_memory_is_not_readable(container: WardenClient) -> None:
    if (await container.exec(["id", "-u"])).stdout == b"0\n":
        pytest.skip("root can read everything")
    for name in ("environ", "mem", "fd/3"):
        assert (await container.exec(["cat", f"/proc/{(await container.ping()).pid}/{name}"])).exit_code == 1


async def test_a_supervised_process_is_listed_and_stopped(container: WardenClient) -> None:
    duration = sleeper()
    await container.start("gateway", ["sh", "-c", f"setsid sleep {duration} & sleep {duration}"], env={})
    await until(lambda: sleeping(duration))
    process = (await container.processes())["gateway"]
    assert (process.state, process.exit_code, process.restarts) == ("running", None, 0)
    assert process.pid is not None
    with pytest.raises(ProcessAlreadyRunning):
        await container.start("gateway", ["true"], env={})
    for _ in range(2):
        await container.stop("gateway", grace=5)
        assert not sleeping(duration)
    process = (await container.processes())["gateway"]
    assert (process.state, process.pid, process.exit_code) == ("exited", None, 128 + 15)
    await container.stop("never-was")


async def test_a_stubborn_process_is_killed_after_the_grace(container: WardenClient) -> None:
    duration = sleeper()
    await container.start("gateway", ["sh", "-c", f"trap '' TERM; sleep {duration}; sleep {duration}"], env={})
    await until(lambda: sleeping(duration))
    await container.stop("gateway", grace=0.1)
    assert not sleeping(duration)
    assert (await container.processes())["gateway"].exit_code == 128 + 9


async def test_a_process_is_restarted_with_growing_delays(container: WardenClient) -> None:
    await container.start("gateway", ["sh", "-c", "echo $VALUE; exit 7"], env={"VALUE": "42"})
    lines = await _lines(container, "gateway", 3)
    first, second, third = [line.time for line in lines if line.text == "42"][:3]
    assert 0.9 < (second - first).total_seconds() < (third - second).total_seconds()
    assert any("exited with code 7" in line.text for line in lines)
    assert (await container.processes())["gateway"].restarts >= 2
    await container.stop("gateway")
    assert (await container.processes())["gateway"].state == "exited"


async def test_a_process_without_restart(container: WardenClient) -> None:
    await container.start("once", ["sh", "-c", "echo last words; exit 2"], env={}, restart=False)
    async with asyncio.timeout(10):
        while (await container.processes())["once"].state != "exited":
            await asyncio.sleep(0.01)
    assert (await container.processes())["once"].exit_code == 2
    assert [line.text for line in await container.logs(source="once")] == ["last words"]
    await container.start("once", ["sleep", "60"], env={}, restart=False)
    assert (await container.processes())["once"].state == "running"


@pytest.mark.parametrize("name", ["", "..", "a/b", "warden", "a b", "x" * 65])
async def test_a_malformed_name_is_refused(container: WardenClient, name: str) -> None:
    with pytest.raises(WardenFailed):
        await container.start(name, ["true"], env={})
    assert not await container.processes()


async def test_a_process_that_cannot_start_is_refused(container: WardenClient) -> None:
    with pytest.raises(ExecRefused):
        await container.start("gateway", ["no-such-program"], env={})
    assert not await container.processes()


async def test_logs_are_ordered_and_stored_in_the_home(container: WardenClient, env: RuntimeEnv) -> None:
    for name in ("one", "two"):
        await container.start(
            name, ["sh", "-c", f"echo {name} 1; echo {name} 2 >&2; printf 'no end'; exec sleep 60"], env={}
        )
    await _lines(container, "one", 2, "one")
    lines = [line for line in await _lines(container, None, 4) if line.source != "warden"]
    assert [line.text for line in lines if line.source == "two"] == ["two 1", "two 2"]
    assert lines == sorted(lines, key=lambda line: line.time)
    assert [line.text for line in await container.logs(source="one", limit=1)] == ["one 2"]
    assert "one 1" in (env.home() / ".roost/logs/one.log").read_text()
    await container.stop("one")
    assert (await container.logs(source="one"))[-1].text == "no end"


async def test_logs_are_limited(container: WardenClient) -> None:
    await container.start(
        "loud", ["sh", "-c", "yes | head -n 5000; head -c 3000000 /dev/zero; echo; echo end"], env={}, restart=False
    )
    async with asyncio.timeout(30):
        while not (lines := await container.logs(source="loud", limit=5000)) or lines[-1].text != "end":
            await asyncio.sleep(0.02)
    assert len(lines) <= 1000
    assert lines[-2].text == "\0" * 16384 + " [cut]"


async def test_a_follower_receives_lines_immediately(container: WardenClient, env: RuntimeEnv) -> None:
    async with aclosing(container.follow(source="gateway")) as lines:
        first = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        await container.start("other", ["echo", "not this"], env={}, restart=False)
        script = "until test -e go; do sleep 0.02; done; echo one; echo two; exec sleep 60"
        await container.start("gateway", ["sh", "-c", script], env={})
        await container.write("go", b"")
        assert (await asyncio.wait_for(first, 10)).text == "one"
        assert (await asyncio.wait_for(anext(lines), 10)).text == "two"


async def test_a_slow_follower_is_disconnected(container: WardenClient) -> None:
    async with aclosing(container.follow()) as lines:
        first = asyncio.ensure_future(anext(lines))
        await container.start("loud", ["yes", "x" * 1000], env={})
        with pytest.raises(WardenFailed):
            await asyncio.wait_for(_read_slowly(first, lines), 20)
    await container.stop("loud")


async def _lines(container: WardenClient, source: str | None, count: int, start: str = "") -> Sequence[LogLine]:
    async with asyncio.timeout(20):
        while True:
            lines = await container.logs(source=source)
            if sum(line.text.startswith(start) and "[warden]" not in line.text for line in lines) >= count:
                return lines
            await asyncio.sleep(0.02)


async def _stable_number(file: Path) -> int:
    """Return the number in a file once it has not changed for 0.3 s."""
    last, since = "", time.monotonic()
    while time.monotonic() - since < 0.3:
        now = file.read_text()
        last, since = (last, since) if now == last else (now, time.monotonic())
        await asyncio.sleep(0.01)
    return int(last)


async def _exec_when_free(container: WardenClient, argv: list[str]) -> None:
    while True:  # another call can have been first
        with contextlib.suppress(WardenBusy):
            await container.exec(argv)
            return
        await asyncio.sleep(0.01)


async def _until_refused(container: WardenClient) -> None:
    async with asyncio.timeout(10):
        while True:
            await container.exec(["true"])


async def _read_slowly(first: "asyncio.Future[LogLine]", lines: AsyncIterator[LogLine]) -> None:
    await first
    async for _ in lines:
        await asyncio.sleep(0.005)


async def test_priorities_are_hints_that_never_fail(env: RuntimeEnv) -> None:
    env.runtime.prefer("nobody")
    await env.container()
    env.runtime.prefer(AGENT)
    assert env.runtime.start_slots() >= 1
