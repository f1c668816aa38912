"""Console and files over HTTP: shapes, statuses, exact messages (cases D1-D10 that need no container)."""

import asyncio
import base64
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from roost.drivers.runtime.bwrap.record import HostProcess
from roost.drivers.runtime.fake import FakeRuntime, _reap, _tree
from tests.support.server import running


@pytest.fixture(scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of one agent's own address."""
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        made = (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        yield server.agent_client(made)


async def run(agent: httpx.AsyncClient, command: str, **body: object) -> dict:
    answer = await agent.post("/v0/console/exec", json={"command": command, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def upload(agent: httpx.AsyncClient, filename: str, content: bytes) -> httpx.Response:
    body = {"filename": filename, "contentBase64": base64.b64encode(content).decode()}
    return await agent.post("/v0/files/upload", json=body)


async def test_a_command_runs_in_the_workspace(agent: httpx.AsyncClient) -> None:
    result = await run(agent, "mkdir -p sub; echo out; echo err >&2; exit 3")
    assert result["stdout"] == "out\n"
    assert result["stderr"] == "err\n"
    assert result["exitCode"] == 3
    assert result["command"].startswith("mkdir")
    assert result["timestamp"].endswith("Z")
    assert (await run(agent, "pwd", cwd="sub"))["stdout"].endswith("/sub\n")


@pytest.mark.parametrize(
    "body",
    [
        {"command": ""},
        {"command": "   "},
        {},
        {"command": "true", "cwd": ""},
        {"command": "true", "cwd": "missing"},
        {"command": "true", "cwd": "/etc"},
        {"command": "true", "cwd": ".."},
        {"command": "true", "cwd": "a\0b"},
        {"command": "a\0b"},
        {"command": "x" * 70_000},
        {"command": 7},
        {"command": "true", "timeoutSeconds": True},
        {"command": "true", "timeoutSeconds": "5"},
        {"command": "true", "timeoutSeconds": 0},
        {"command": None},
        {"command": ["ls"]},
        {"command": "true", "cwd": 7},
        [],
        "ls",
    ],
)
async def test_an_invalid_command_is_400(agent: httpx.AsyncClient, body: object) -> None:
    answer = await agent.post("/v0/console/exec", json=body)
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid command"})


async def test_a_working_directory_that_leads_out_is_refused(agent: httpx.AsyncClient) -> None:
    await run(agent, "ln -sfn /etc out")
    answer = await agent.post("/v0/console/exec", json={"command": "pwd", "cwd": "out"})
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid command"})


async def test_endless_output_is_cut_and_said_so(agent: httpx.AsyncClient) -> None:
    result = await run(agent, "yes | head -c 5000000")
    assert result["truncated"] is True
    assert len(result["stdout"]) <= 1024**2
    keys = await run(agent, "printf x; yes '\U0001f511' | tr -d '\\n' | head -c 5000000")
    assert keys["truncated"] is True
    assert "\ufffd" not in keys["stdout"]


async def test_a_command_that_never_ends_is_ended(agent: httpx.AsyncClient) -> None:
    result = await run(agent, "trap '' TERM; (sleep 600 &) ; sleep 600", timeoutSeconds=0.5)
    assert (result["exitCode"], result["timedOut"]) == (124, True)


async def test_output_that_is_no_text_still_is_an_answer(agent: httpx.AsyncClient) -> None:
    assert "\ufffd" in (await run(agent, "printf '\\377\\376'"))["stdout"]


async def test_a_file_makes_the_round_trip(agent: httpx.AsyncClient) -> None:
    answer = await upload(agent, "note.bin", bytes(range(256)))
    assert answer.json() == {"path": "uploads/note.bin", "filename": "note.bin", "size": 256}
    assert (await agent.get("/v0/files", params={"path": "uploads/note.bin"})).content == bytes(range(256))
    assert (await upload(agent, "note.bin", b"new")).status_code == 200
    assert (await agent.get("/v0/files?path=/workspace/uploads/note.bin")).content == b"new"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "%2e%2e/x", "a%00b", ""])
async def test_a_path_outside_is_400(agent: httpx.AsyncClient, path: str) -> None:
    answer = await agent.get(f"/v0/files?path={path}")
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]


async def test_the_path_is_required(agent: httpx.AsyncClient) -> None:
    assert (await agent.get("/v0/files")).status_code == 400


async def test_links_that_leave_the_workspace_are_404(agent: httpx.AsyncClient) -> None:
    await run(
        agent, "ln -sfn /etc/passwd leak; ln -sfn / root; ln -sfn leak chain; echo in > here; ln -sfn here inside"
    )
    for path in ("leak", "root/etc/passwd", "root/proc/self/environ", "chain", "missing", r"a\b"):
        answer = await agent.get("/v0/files", params={"path": path})
        assert (answer.status_code, answer.json()) == (404, {"error": "File not found"}), path
    assert (await agent.get("/v0/files?path=inside")).content == b"in\n"


async def test_special_files_are_refused_at_once(agent: httpx.AsyncClient) -> None:
    await run(agent, "mkfifo pipe; mkdir -p folder; truncate -s 3G giant")
    assert (await agent.get("/v0/files?path=pipe")).status_code == 400
    assert (await agent.get("/v0/files?path=folder")).status_code == 400
    answer = await agent.get("/v0/files?path=giant")
    assert (answer.status_code, answer.json()) == (413, {"error": "File too large"})


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\0b", ".git/config", "x" * 300, "CON", ".."])
async def test_a_bad_filename_is_400(agent: httpx.AsyncClient, name: str) -> None:
    answer = await upload(agent, name, b"x")
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid filename"})


@pytest.mark.parametrize("content", ["data:text/plain;base64,aGk=", "aGk", "a a=", "é"])
async def test_bad_base64_is_400(agent: httpx.AsyncClient, content: str) -> None:
    answer = await agent.post("/v0/files/upload", json={"filename": "a", "contentBase64": content})
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid contentBase64"})


async def test_a_file_that_is_too_large_is_413(agent: httpx.AsyncClient) -> None:
    for size in (10 * 1024**2 + 1, 14 * 1024**2):
        answer = await upload(agent, "big", bytes(size))
        assert (answer.status_code, answer.json()) == (413, {"error": "File too large"})


async def test_an_uploads_folder_that_leads_out_is_not_followed(agent: httpx.AsyncClient, tmp_path: Path) -> None:
    await run(agent, f"rm -rf uploads; ln -s {tmp_path} uploads")
    answer = await upload(agent, "x", b"x")
    assert answer.status_code == 400
    assert list(tmp_path.iterdir()) == []
    await run(agent, "rm uploads")


def _is_running(pid: int) -> bool:
    _reap(pid)
    return HostProcess.find(pid) is not None


async def test_a_command_whose_container_dies_is_unavailable(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path / "run")
    async with running(tmp_path / "data", runtime=runtime) as server:
        made = (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        agent = server.agent_client(made)
        command = asyncio.create_task(agent.post("/v0/console/exec", json={"command": "touch started; sleep 60"}))
        while (await agent.get("/v0/files?path=started")).status_code == 404:
            await asyncio.sleep(0.01)
        (container,) = await runtime.list()
        assert container.pid
        processes = _tree(container.pid)  # without a namespace of their own, they would stay
        for number in (signal.SIGSTOP, signal.SIGKILL):  # no warden answers for a command that ends first
            for pid in processes:
                os.kill(pid, number)
        answer = await command
        assert (answer.status_code, answer.json()) == (503, {"error": "Agent is not running"})
        async with asyncio.timeout(10):
            while any(_is_running(pid) for pid in processes):
                await asyncio.sleep(0.01)


async def test_a_warden_that_answers_nonsense_fails_the_command(tmp_path: Path) -> None:
    async def answer_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"7\n")
        await writer.drain()
        writer.close()

    async with running(tmp_path / "data", runtime=FakeRuntime(tmp_path / "run")) as server:
        made = (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        (socket,) = tmp_path.glob("run/**/w.sock")
        real = socket.rename(socket.with_name("real.sock"))
        async with await asyncio.start_unix_server(answer_nonsense, socket):
            answer = await server.agent_client(made).post("/v0/console/exec", json={"command": "true"})
        real.rename(socket)
        assert (answer.status_code, answer.json()) == (500, {"error": "Execution failed"})
