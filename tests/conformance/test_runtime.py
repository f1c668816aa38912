"""The contract of a runtime; `test_containers.py` and `test_container_files.py` test its containers."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from roost.core.machine.unix_socket import StreamHandler
from roost.drivers.runtime.contract import ContainerSpec, RuntimeFailed
from roost.warden_client.errors import ContainerNotRunning, WardenFileTooLarge
from tests.conformance import runtimes
from tests.conformance.runtimes import (
    AGENT,
    RUNTIME_CASES,
    Make,
    RuntimeEnv,
    open_runtime_env,
    sleeper,
    sleeping,
    until,
)

FETCH = "import socket; print(socket.create_connection(('127.0.0.1', 8799)).makefile().read())"


@pytest.fixture(params=RUNTIME_CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    make: Make = request.param
    async with open_runtime_env(make, tmp_path) as found:
        yield found


async def test_a_container_runs_until_it_is_stopped(env: RuntimeEnv) -> None:
    container = await env.runtime.start(ContainerSpec(AGENT))
    assert container.agent_id == AGENT
    assert list(await env.runtime.list()) == [container]
    assert (await env.warden().exec(["true"])).exit_code == 0
    await env.runtime.stop(AGENT)
    assert not await env.runtime.list()


async def test_start_is_idempotent(env: RuntimeEnv) -> None:
    first, second = await asyncio.gather(*(env.runtime.start(ContainerSpec(AGENT)) for _ in range(2)))
    third = await env.runtime.start(ContainerSpec(AGENT, env={"OTHER": "1"}))
    assert first == second == third
    assert len(await env.runtime.list()) == 1


async def test_a_list_does_not_end_new_processes(env: RuntimeEnv) -> None:
    """For a moment, a new process in a container looks like a second warden."""
    container = await env.container()
    over = asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            await env.runtime.list()
            await asyncio.sleep(0)

    async def run() -> set[int]:
        return {(await container.exec(["true"])).exit_code for _ in range(60)}

    looking = asyncio.create_task(look())
    codes = await asyncio.gather(*(run() for _ in range(3)))
    over.set()
    await looking
    assert set.union(*codes) == {0}


async def test_the_folders_persist(env: RuntimeEnv) -> None:
    container = await env.container()
    await container.write("kept", b"in the workspace")
    await container.write("kept", b"in the home", root="home")
    await env.runtime.stop(AGENT)
    assert (env.workspace() / "kept").read_bytes() == b"in the workspace"
    container = await env.container()
    assert await container.read("kept", limit=100) == b"in the workspace"
    assert await container.read("kept", root="home", limit=100) == b"in the home"


async def test_agents_have_separate_workspaces(env: RuntimeEnv) -> None:
    await (await env.container(ContainerSpec("one"))).write("file", b"one")
    await (await env.container(ContainerSpec("two"))).write("file", b"two")
    assert await env.warden("one").read("file", limit=10) == b"one"
    assert {container.agent_id for container in await env.runtime.list()} == {"one", "two"}


async def test_stop_and_delete_are_idempotent(env: RuntimeEnv) -> None:
    await env.runtime.stop(AGENT)
    await env.runtime.delete(AGENT)
    await env.container()
    for end in (env.runtime.stop, env.runtime.stop, env.runtime.delete, env.runtime.delete):
        await end(AGENT)


async def test_the_environment_is_from_the_spec(env: RuntimeEnv) -> None:
    container = await env.container(ContainerSpec(AGENT, env={"GREETING": "a b\n'c'"}))
    result = await container.exec(["sh", "-c", 'printf %s "$GREETING"'])
    assert result.stdout == b"a b\n'c'"


async def test_a_stop_ends_every_process(env: RuntimeEnv) -> None:
    container, durations = await env.container(), [sleeper() for _ in range(3)]
    plain, session, orphan = durations
    await container.exec(
        ["sh", "-c", f"trap '' TERM; sleep {plain} & setsid sleep {session} & (env -i setsid sleep {orphan} &)"]
    )
    await until(lambda: all(map(sleeping, durations)))
    await env.runtime.stop(AGENT)
    assert not any(map(sleeping, durations))


async def test_a_stop_gives_supervised_processes_time_to_end(env: RuntimeEnv) -> None:
    container = await env.container()
    await container.start(
        "gateway", ["sh", "-c", "trap 'echo bye > last; exit' TERM; : > ready; while :; do sleep 0.05; done"], env={}
    )
    await until((env.workspace() / "ready").exists)
    await env.runtime.stop(AGENT)
    assert (env.workspace() / "last").read_text() == "bye\n"


async def test_a_stop_waits_no_longer_than_the_grace(env: RuntimeEnv) -> None:
    container, duration = await env.container(), sleeper()
    await container.start("gateway", ["sh", "-c", f"trap '' TERM; : > ready; sleep {duration}"], env={})
    await until(lambda: sleeping(duration))
    async with asyncio.timeout(env.end_seconds):
        await env.runtime.stop(AGENT, grace=0.1)
    assert not sleeping(duration)


async def test_a_delete_removes_everything_and_follows_no_link(env: RuntimeEnv, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    container = await env.container()
    (env.workspace() / "file").symlink_to(outside / "precious")
    (env.workspace() / "folder").symlink_to(outside)
    await container.exec(["sh", "-c", "mkdir -p closed/inner && touch closed/inner/x && chmod 0 closed/inner closed"])
    await env.runtime.delete(AGENT)
    assert (outside / "precious").read_text() == "kept"
    assert not env.workspace().parent.exists()
    assert not list(env.folder.glob("run/*"))


async def test_the_next_server_finds_the_containers(env: RuntimeEnv) -> None:
    container = await env.runtime.start(ContainerSpec(AGENT))
    born = (await env.warden().ping()).uptime
    after = env.again()
    assert list(await after.list()) == [container]
    assert await after.start(ContainerSpec(AGENT)) == container
    assert (await env.warden().ping()).uptime > born
    await after.stop(AGENT)
    assert not await env.runtime.list()


async def test_a_container_without_a_record_is_ended(env: RuntimeEnv) -> None:
    env.skip_docker("the engine has the records")
    container, duration = await env.container(), sleeper()
    await container.exec(["sh", "-c", f"setsid sleep {duration} &"])
    await until(lambda: sleeping(duration))
    (env.folder / "run" / AGENT / "container.json").unlink()
    assert not await env.again().list()
    await until(lambda: not sleeping(duration))  # killed processes end a moment later


async def test_a_truncated_record_is_ignored(env: RuntimeEnv) -> None:
    env.skip_docker("the engine has the records")
    await env.container()
    (env.folder / "run" / AGENT / "container.json").write_text('{"pid": 1')
    assert not await env.again().list()
    assert (await (await env.container()).exec(["true"])).exit_code == 0


async def test_a_list_does_not_end_a_starting_container(env: RuntimeEnv) -> None:
    starting = asyncio.create_task(env.runtime.start(ContainerSpec(AGENT)))
    while not starting.done():
        await env.runtime.list()
        await asyncio.sleep(0.005)
    assert list(await env.runtime.list()) == [await starting]
    assert (await env.warden().exec(["true"])).exit_code == 0


async def test_the_containers_of_a_killed_server_are_adopted(env: RuntimeEnv) -> None:
    name = env.runtime.name if env.runtime.name in ("bwrap", "docker", "kubernetes") else type(env.runtime).__name__
    program = (
        "import asyncio, os, pathlib, signal\n"
        f"from tests.conformance.runtimes import AGENT, ContainerSpec, {name} as make\n"
        f"asyncio.run(make(pathlib.Path({str(env.folder)!r})).start(ContainerSpec(AGENT)))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert [container.agent_id for container in await env.runtime.list()] == [AGENT]
    assert (await env.warden().exec(["echo", "here"])).stdout == b"here\n"
    await env.runtime.stop(AGENT)
    assert not await env.runtime.list()


async def test_connecting_needs_a_running_container(env: RuntimeEnv) -> None:
    with pytest.raises(ContainerNotRunning):
        await env.runtime.connect(AGENT)
    await env.container()
    await env.runtime.stop(AGENT)
    with pytest.raises(ContainerNotRunning):
        await env.runtime.connect(AGENT)


async def test_a_container_ends_with_its_warden(env: RuntimeEnv) -> None:
    container = await env.runtime.start(ContainerSpec(AGENT))
    os.kill(container.pid or env.skip("its processes are those of another machine"), signal.SIGKILL)
    with pytest.raises(ContainerNotRunning):
        await _ping_forever(env)  # its processes end a moment later
    async with asyncio.timeout(10):
        while await env.runtime.list():
            await asyncio.sleep(0.01)
    again = await env.runtime.start(ContainerSpec(AGENT))
    assert again != container


async def test_a_start_that_fails_leaves_nothing(env: RuntimeEnv) -> None:
    env.skip_kubernetes("its files have no folder before a pod starts; tests of its pods have what fails")
    env.workspace().parent.mkdir(parents=True)
    env.workspace().write_text("not a folder")
    with pytest.raises(RuntimeFailed):
        await env.runtime.start(ContainerSpec(AGENT))
    assert not await env.runtime.list()
    env.workspace().unlink()
    assert (await (await env.container()).exec(["true"])).exit_code == 0


@pytest.mark.parametrize("agent_id", ["", ".", "..", "a/b", "../b", "/etc", "a\0", "a" * 200])
async def test_a_malformed_agent_id_is_refused(env: RuntimeEnv, agent_id: str) -> None:
    with pytest.raises(RuntimeFailed):
        await env.runtime.start(ContainerSpec(agent_id))
    with pytest.raises(RuntimeFailed):
        await env.runtime.delete(agent_id)


async def test_a_relay_leads_to_the_present_server(env: RuntimeEnv) -> None:
    with closing(await env.runtime.listen(AGENT, "api", answer_with(b"first"))):
        container = await env.container(ContainerSpec(AGENT, relays={8799: "api"}))
        assert (await container.exec(["/usr/bin/python3", "-c", FETCH])).stdout == b"first\n"
        with closing(await env.again().listen(AGENT, "api", answer_with(b"second"))):
            assert (await container.exec(["/usr/bin/python3", "-c", FETCH])).stdout == b"second\n"


async def test_a_closed_relay_keeps_open_streams(env: RuntimeEnv) -> None:
    echo = "import socket; s = socket.create_connection(('127.0.0.1', 8799)); s.sendall(b'ping'); print(s.recv(4))"
    opened, closed = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.set()
        await closed.wait()
        writer.write(await reader.readexactly(4))
        writer.close()

    listener = await env.runtime.listen(AGENT, "api", answer)
    container = await env.container(ContainerSpec(AGENT, relays={8799: "api"}))
    running = asyncio.create_task(container.exec(["/usr/bin/python3", "-c", echo], timeout=10))
    await opened.wait()
    listener.close()
    closed.set()
    assert (await running).stdout == b"b'ping'\n"


async def test_a_handler_can_take_over_the_transport(env: RuntimeEnv) -> None:
    """A handler can pass the transport to a server of another protocol, because no byte has been read yet."""
    received = asyncio.get_running_loop().create_future()

    class Receiver(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            received.set_result(data)

    def take_over(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.transport.set_protocol(Receiver())

    writers: list[asyncio.StreamWriter] = []
    with closing(await env.runtime.listen(AGENT, "api", take_over)):
        container = await env.container(ContainerSpec(AGENT, relays={8799: "api"}))
        send = "s = socket.create_connection(('127.0.0.1', 8799)); s.sendall(b'all of it'); print(s.recv(1))"
        running = asyncio.create_task(container.exec(["/usr/bin/python3", "-c", f"import socket; {send}"], timeout=10))
        async with asyncio.timeout(10):
            assert await received == b"all of it"
        writers[0].transport.abort()
        assert b"all of it" not in (ended := await running).stdout
        assert not ended.timed_out


async def test_files_of_the_spec_are_in_the_container(env: RuntimeEnv) -> None:
    files = {"/run/trust/one.pem": b"first \0\xff", "/run/trust/two.pem": b"x" * 500_000}
    variables = {"ONE": "/run/trust/one.pem", "TWO": "/run/trust/two.pem"}
    container = await env.container(ContainerSpec(AGENT, env=variables, files=files))
    read = await container.exec(["sh", "-c", 'cat "$ONE" && cat "$TWO"'], output_limit=1 << 20)
    assert read.stdout == b"".join(files.values())


async def test_a_relay_without_a_server_ends_at_once(env: RuntimeEnv) -> None:
    (await env.runtime.listen(AGENT, "api", runtimes.drop_stream)).close()
    container = await env.container(ContainerSpec(AGENT, relays={8799: "api"}))
    result = await container.exec(["/usr/bin/python3", "-c", FETCH], timeout=10)
    assert not result.timed_out
    assert result.stdout in {b"", b"\n"}


async def test_a_relay_is_accessible_to_one_user(env: RuntimeEnv) -> None:
    env.skip_bridged("its relays are no sockets")
    with closing(await env.runtime.listen(AGENT, "api", runtimes.drop_stream)):
        (path,) = env.folder.glob("run/*/out/api")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_probe_runs_a_container_and_removes_it(env: RuntimeEnv) -> None:
    found = await env.runtime.probe()
    assert found.usable, found.error
    assert found.enforcement
    assert all(item.reason for item in found.enforcement if not item.enforced)
    assert not await env.runtime.list()
    assert not list(env.folder.glob("agents/*"))


async def test_a_probe_returns_the_error(env: RuntimeEnv, tmp_path: Path) -> None:
    env.skip_docker("it has no folder; tests of its images and of its API have what fails")
    (tmp_path / "file").write_text("not a folder")
    found = await env.make(tmp_path / "file").probe()
    assert (found.usable, bool(found.error)) == (False, True)


def answer_with(answer: bytes) -> StreamHandler:
    async def write_answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    return write_answer


async def _ping_forever(env: RuntimeEnv) -> None:
    async with asyncio.timeout(10):
        while await env.warden().ping():
            await asyncio.sleep(0.01)


async def test_files_are_only_read_and_deleted_in_a_container_for_that(env: RuntimeEnv) -> None:
    container = await env.container()
    await container.write("file", b"content")
    first = (await env.runtime.list())[0]
    container = await env.container(ContainerSpec(AGENT, delete_only=True))
    (second,) = await env.runtime.list()
    assert (first.delete_only, second.delete_only) == (False, True)
    assert second.pid is None or second.pid != first.pid
    assert await container.read("file", limit=100) == b"content"
    with pytest.raises(WardenFileTooLarge):
        await container.write("file", b"other")
    for command in ("echo x > new", "echo x >> file", "cp file /tmp/copy", "ulimit -f unlimited && echo x > new"):
        assert (await container.exec(["sh", "-c", command])).exit_code != 0, command
    assert await container.read("file", limit=100) == b"content"
    assert (await container.exec(["rm", "file"])).exit_code == 0
    assert list(await env.again().list()) == [second]
    container = await env.container()
    await container.write("file", b"again")


async def test_the_disk_of_a_container_is_measured(env: RuntimeEnv) -> None:
    container = await env.container()
    before = (await env.runtime.disk.measure(AGENT, paced=False)).size
    await container.exec(["sh", "-c", "head -c 3000000 /dev/urandom > file; cp file ~; sync file ~/file"])
    after = (await env.runtime.disk.measure(AGENT, paced=False)).size
    assert 6_000_000 <= after - before < 6_200_000
    assert env.runtime.disk.read_space().free > 0


async def test_writes_of_a_container_are_known_also_of_processes_that_ended(env: RuntimeEnv) -> None:
    env.skip_kubernetes("the processes are those of another machine")
    if not _counts_writes(env.folder):
        pytest.skip("the kernel does not count what is written to this file system")
    container, _ = await env.container(), await env.container(ContainerSpec("other"))
    before = env.runtime.disk.written_bytes(await env.runtime.list())
    await container.exec(["sh", "-c", "setsid head -c 3000000 /dev/urandom > file; rm file"])
    after = env.runtime.disk.written_bytes(await env.runtime.list())
    assert after[AGENT] - before[AGENT] >= 3_000_000
    assert after["other"] - before["other"] < 1_000_000


def _counts_writes(folder: Path) -> bool:
    counter = Path("/proc/self/io")
    if not counter.exists():
        return False
    before = counter.read_text()
    (folder / "counted").write_bytes(bytes(1_000_000))
    return before.partition("write_bytes")[2] != counter.read_text().partition("write_bytes")[2]
