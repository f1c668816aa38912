"""`roost cp` on a real server: files and folders in both directions."""

import asyncio
import os
import resource
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import RunningServer, running

Result = tuple[int | None, str, str]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        assert (await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})).status_code == 201
        yield server


@pytest.fixture
async def shell_server(server: RunningServer) -> AsyncIterator[RunningServer]:
    """Return the server; the workspace of its agent is empty afterwards."""
    yield server
    await roost(server, "exec", "Ada", "find . -mindepth 1 -delete")


async def roost(server: RunningServer, *arguments: str, cwd: Path | None = None, **options: Any) -> Result:
    environment = {**os.environ, "ROOST_URL": f"http://127.0.0.1:{server.port}", "ROOST_TOKEN": server.key()}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roost", *arguments), env=environment, cwd=cwd, stdout=PIPE, stderr=PIPE, **options
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


def make_tree(folder: Path) -> None:
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "deep" / "data").write_bytes(bytes(range(256)) * 2000)
    (folder / "tool").write_text("#!/bin/sh\necho ran\n")
    (folder / "tool").chmod(0o755)
    (folder / "ä b").write_text("")
    (folder / "link").symlink_to("tool")
    os.mkfifo(folder / "pipe")


def tree_of(folder: Path) -> dict[str, tuple[bytes | None, bool]]:
    """Return content and the executable bit of files, None for folders."""
    return {
        str(path.relative_to(folder)): (None, False)
        if path.is_dir()
        else (path.read_bytes(), bool(path.stat().st_mode & 0o111))
        for path in folder.rglob("*")
        if not path.is_symlink() and (path.is_file() or path.is_dir())
    }


async def test_a_folder_goes_there_and_back(shell_server: RunningServer, tmp_path: Path) -> None:
    make_tree(tmp_path / "src")
    code, out, err = await roost(shell_server, "cp", "src", "Ada:", cwd=tmp_path)
    assert (code, out) == (0, "Copied 3 files.\n")
    assert sorted(err.splitlines()) == ["Skipped src/link: a link", "Skipped src/pipe: not a regular file"]
    assert (await roost(shell_server, "exec", "Ada", "src/tool; ln -s tool src/link; mkfifo src/pipe"))[:2] == (
        0,
        "ran\n",
    )
    code, out, err = await roost(shell_server, "cp", "Ada:src", "back", cwd=tmp_path)
    assert (code, out) == (0, "Copied 3 files.\n")
    assert sorted(err.splitlines()) == ["Skipped src/link: a link", "Skipped src/pipe: not a regular file"]
    assert tree_of(tmp_path / "back") == tree_of(tmp_path / "src")
    assert (await roost(shell_server, "cp", "Ada:/workspace/src", "back", cwd=tmp_path))[0] == 0
    assert tree_of(tmp_path / "back" / "src") == tree_of(tmp_path / "src")
    assert not list(tmp_path.rglob("*.part"))


async def test_where_a_source_goes(shell_server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "two").write_text("2")
    for source, target in (("one", "renamed"), ("one", "new/"), ("folder", "to"), ("folder", "to"), ("folder/.", "in")):
        assert (await roost(shell_server, "cp", source, f"Ada:{target}", cwd=tmp_path))[0] == 0
    found = (await roost(shell_server, "exec", "Ada", "find . -type f | sort"))[1]
    assert found.split() == ["./in/two", "./new/one", "./renamed", "./to/folder/two", "./to/two"]
    for source, target in (("Ada:renamed", "."), ("Ada:renamed", "other"), ("Ada:to/.", "folder"), ("Ada:", "whole")):
        assert (await roost(shell_server, "cp", source, target, cwd=tmp_path))[0] == 0
    assert (tmp_path / "renamed").read_text() == (tmp_path / "other").read_text() == "1"
    assert (tmp_path / "folder" / "folder" / "two").read_text() == "2"
    assert set(os.listdir(tmp_path / "whole")) == {"in", "new", "renamed", "to"}  # noqa: PTH208 - the names
    assert await roost(shell_server, "cp", "Ada:renamed", "-") == (0, "1", "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["one", "two"], 2, "Name an agent on one side"),
        (["Ada:x", "Ada:y"], 2, "Name an agent on one side"),
        (["missing", "Ada:x"], 2, "missing: No such file or directory"),
        (["Ada:missing", "x"], 5, "There is no 'missing' in the workspace of Ada."),
        (["Ada:../x", "x"], 2, "'../x' is not in the workspace."),
        (["Ada:/etc/passwd", "x"], 2, "'/etc/passwd' is not in the workspace."),
        (["Nobody:x", "x"], 5, "There is no agent 'Nobody'"),
        (["Ada:", "-"], 2, "'' is a folder; only a file can go to standard output."),
    ],
)
async def test_errors_are_one_line(
    server: RunningServer, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    found, out, err = await roost(server, "cp", *arguments, cwd=tmp_path)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(f"Error: {message}")


async def test_odd_names_come_out_and_do_not_go_in(shell_server: RunningServer, tmp_path: Path) -> None:
    await roost(
        shell_server,
        "exec",
        "Ada",
        r"""mkdir f; echo x > f/ok; touch "$(printf 'f/a\377')" "$(printf 'f/b\nb')" 'f/c\c'""",
    )
    code, out, err = await roost(shell_server, "cp", "Ada:f", str(tmp_path / "f"))
    assert (code, out, err) == (0, "Copied 4 files.\n", "")
    assert {os.fsencode(file.name) for file in (tmp_path / "f").iterdir()} == {b"ok", b"a\xff", b"b\nb", b"c\\c"}
    code, out, err = await roost(shell_server, "cp", str(tmp_path / "f"), "Ada:g")
    assert (code, out, err.count("Skipped"), err.count("not printable")) == (1, "Copied 1 file.\n", 3, 2), err


async def test_nothing_is_written_through_a_local_link(shell_server: RunningServer, tmp_path: Path) -> None:
    await roost(shell_server, "exec", "Ada", "mkdir -p f/sub; echo new > f/sub/file; echo new > f/plain")
    (tmp_path / "outside").mkdir()
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "sub").symlink_to("../outside")
    (tmp_path / "kept").write_text("old")
    (tmp_path / "f" / "plain").symlink_to("../kept")
    code, _, err = await roost(shell_server, "cp", "Ada:f/.", "f", cwd=tmp_path)
    assert (code, "is a link" in err) == (2, True)
    assert not list((tmp_path / "outside").iterdir())
    assert (tmp_path / "kept").read_text() == "old"
    assert (tmp_path / "f" / "plain").read_text() == "new\n"


async def test_memory_does_not_grow_with_a_file(shell_server: RunningServer, tmp_path: Path) -> None:
    size = 300 << 20
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (size // 2, size // 2))

    for source, target in (("big", "Ada:big"), ("Ada:big", "back")):
        found = await roost(shell_server, "cp", source, target, cwd=tmp_path, preexec_fn=limit_memory)
        assert found == (0, "Copied 1 file.\n", "")
    assert (tmp_path / "back").stat().st_size == size


pytestmark = pytest.mark.container


async def run(server: RunningServer, cwd: Path, *command: str) -> tuple[int | None, str]:
    environment = {
        **os.environ,
        "ROOST_URL": f"http://127.0.0.1:{server.port}",
        "ROOST_TOKEN": server.key(),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PYTHONPATH": str(Path.cwd()),
    }
    process = await asyncio.create_subprocess_exec(*command, cwd=cwd, env=environment, stdout=PIPE, stderr=STDOUT)
    async with asyncio.timeout(60):
        output = (await process.communicate())[0].decode()
    return process.returncode, output


async def test_a_clone_pulls_and_pushes_without_a_stored_token(tmp_path: Path) -> None:
    roost, git = (sys.executable, "-m", "roost"), ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    async with running(tmp_path / "data") as server:
        agent = (await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})).json()["agent"]
        client = server.agent_client(agent)
        await client.put("/v0/files/content?path=file", content=b"one\n")
        code, output = await run(server, tmp_path, *roost, "clone", "Ada")
        assert code == 0, output
        assert (tmp_path / "Ada/file").read_text() == "one\n"
        assert agent["gatewayToken"] not in (tmp_path / "Ada/.git/config").read_text()
        await client.put("/v0/files/content?path=file", content=b"two\n")
        assert await run(server, tmp_path / "Ada", *git, "pull", "-q") == (0, "")
        (tmp_path / "Ada/file").write_text("three\n")
        assert await run(server, tmp_path / "Ada", *git, "commit", "-qam", "three") == (0, "")
        code, output = await run(server, tmp_path / "Ada", *git, "push", "-q")
        assert code == 0, output
        assert (await client.get("/v0/files?path=file")).content == b"three\n"
        code, output = await run(server, tmp_path, *roost, "clone", "nobody")
        assert (code, "There is no agent 'nobody'" in output) == (5, True)
