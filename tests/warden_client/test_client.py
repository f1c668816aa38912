"""The client against a hostile warden; `tests/conformance/test_containers.py` tests it with the real one."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from roost.core.machine import unix_socket
from roost.core.problem import Problem, ProblemKind
from roost.warden_client import client
from roost.warden_client import errors as warden_errors
from roost.warden_client.changes import PutFile, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning, WardenDisconnected, WardenFailed
from roost.warden_client.files import Stamp
from roost.warden_client.tree import ScanEntry

OK = b'{"ok": true}\n'
END = b'{"ok": true}'
EXECUTED = b'{"ok": true, "code": 0, "timedOut": false, "truncated": false}'
BOMB = b"[" * 100_000
ScriptedWarden = Callable[[bytes], WardenClient]
Call = Callable[[WardenClient], Awaitable[object]]


def frame(kind: bytes, data: bytes) -> bytes:
    return struct.pack("!cI", kind, len(data)) + data


def items(*values: object) -> bytes:
    return OK + frame(b"d", json.dumps(values).encode()) + frame(b"x", END)


@pytest.fixture
async def scripted(tmp_path: Path) -> AsyncIterator[ScriptedWarden]:
    """Return a client of a warden that answers every request with the given bytes."""
    answer = b""
    leave = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readline()
            writer.write(answer)
            await writer.drain()
            await leave.wait()
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    def script(data: bytes) -> WardenClient:
        nonlocal answer
        answer = data
        return WardenClient(partial(unix_socket.connect_unix, tmp_path / "s"))

    async with await asyncio.start_server(handle, sock=unix_socket.listen_unix(tmp_path / "s")):
        leave.set()
        yield script


async def collect(pieces: Any) -> list[Any]:
    async with aclosing(pieces):
        return [piece async for piece in pieces]


async def collect_output(warden: WardenClient) -> list[Any]:
    async with warden.exec_stream(["true"]) as pieces:
        return [piece async for piece in pieces]


async def collect_file(warden: WardenClient) -> bytes:
    async with warden.files.download("x") as (_, content):
        return b"".join([piece async for piece in content])


async def zeros() -> AsyncIterator[bytes]:
    for _ in range(10):
        yield bytes(100_000)


async def write_files() -> AsyncIterator[TreeChange]:
    yield PutFile("x", 0o644, 1_000_000, zeros())
    yield PutFile("y", 0o644, 1, b"y")


TREES = ("scan", "read files", "apply", "watch")
CALLS: dict[str, Call] = {
    "ping": lambda warden: warden.ping(),
    "exec": lambda warden: warden.exec(["true"]),
    "exec with input": lambda warden: warden.exec(["true"], stdin=b"x" * 1_000_000),
    "exec_stream": collect_output,
    "dial": lambda warden: warden.dial(80),
    "read": lambda warden: warden.read("x", limit=1000),
    "write": lambda warden: warden.write("x", b"x" * 1_000_000),
    "list": lambda warden: warden.list(),
    "tree": lambda warden: warden.files.tree(),
    "download": collect_file,
    "upload": lambda warden: warden.files.upload("x", zeros()),
    "delete": lambda warden: warden.files.delete("x"),
    "move": lambda warden: warden.files.move("x", "y"),
    "make folder": lambda warden: warden.files.make_folder("x"),
    "scan": lambda warden: collect(warden.tree.scan()),
    "read files": lambda warden: collect(warden.tree.read_files(["x"])),
    "apply": lambda warden: warden.tree.apply(write_files()),
    "watch": lambda warden: collect(warden.tree.watch()),
    "start": lambda warden: warden.start("x", ["true"], env={}),
    "stop": lambda warden: warden.stop("x"),
    "processes": lambda warden: warden.processes(),
    "logs": lambda warden: warden.logs(),
    "follow": lambda warden: collect(warden.follow()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    "answer",
    [b"\n", b"{}\n", b"[]\n", b"7\n", b"null\n", b"{", b"\xff\xfe\n", b'{"ok": 1}\n', b'{"ok": false}\n',
     BOMB + b"\n",
     b'{"ok": false, "error": []}\n', b'{"ok": false, "error": "x", "message": 7}\n', b"x" * 200_000,
     b"9" * 5000 + b"\n",
     b'{"ok": false, "error": "x", "message": ""}\n', b"HTTP/1.1 200 OK\r\n\r\n"],
    ids=range(16),
)  # fmt: skip
async def test_malformed_replies_are_failures(scripted: ScriptedWarden, call: Call, answer: bytes) -> None:
    async with asyncio.timeout(5):
        with pytest.raises((WardenFailed, ContainerNotRunning)):
            await call(scripted(answer))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_closed_connection_means_no_container(scripted: ScriptedWarden, call: Call) -> None:
    with pytest.raises(ContainerNotRunning):
        await call(scripted(b""))


@pytest.mark.parametrize(
    "name", ["exec", "exec_stream", "read", "write", "list", "tree", "upload", "logs", "follow", *TREES]
)
@pytest.mark.parametrize(
    "frames",
    [b"", b"x", b"d\0\0", b"x\xff\xff\xff\xff", b"o\xff\xff\xff\xff", b"d\0\0\0\5abc", frame(b"x", b""),
     frame(b"x", b"7"),
     frame(b"x", b"{}"), frame(b"x", BOMB), frame(b"x", b'{"ok": false}'), frame(b"x", b'{"ok": false, "error": {}}'),
     b"d" + struct.pack("!I", (1 << 20) + 1), b"\0" * 100],
    ids=range(14),
)  # fmt: skip
async def test_malformed_frames_are_failures(scripted: ScriptedWarden, name: str, frames: bytes) -> None:
    async with asyncio.timeout(5):
        with pytest.raises(WardenFailed):
            await CALLS[name](scripted(OK + frames))


@pytest.mark.parametrize(
    "name", ["exec", "exec_stream", "read", "write", "list", "tree", "upload", "logs", "follow", *TREES]
)
@pytest.mark.parametrize("frames", [b"", b"d", b"d\0\0\0\5abc"], ids=["nothing", "type", "data"])
async def test_a_reply_that_is_cut_off_is_unavailable(scripted: ScriptedWarden, name: str, frames: bytes) -> None:
    with pytest.raises(WardenDisconnected) as caught:
        await CALLS[name](scripted(OK + frames))
    assert caught.value.kind is ProblemKind.UNAVAILABLE


@pytest.mark.parametrize(
    "reply",
    ['"pid": 1', '"pid": "x", "uptime": 1', '"pid": null, "uptime": 1', '"pid": 1, "uptime": []',
     '"pid": 1e999, "uptime": 1'],
)  # fmt: skip
async def test_malformed_ping_replies(scripted: ScriptedWarden, reply: str) -> None:
    with pytest.raises(WardenFailed):
        await scripted(f'{{"ok": true, {reply}}}\n'.encode()).ping()


@pytest.mark.parametrize(
    "end", [b'{"ok": true}', b'{"ok": true, "code": "x", "timedOut": 0, "truncated": 0}', b"[true]"]
)
async def test_malformed_exec_results(scripted: ScriptedWarden, end: bytes) -> None:
    for name in ("exec", "exec_stream"):
        with pytest.raises(WardenFailed):
            await CALLS[name](scripted(OK + frame(b"x", end)))


@pytest.mark.parametrize(
    "entry",
    [[], 7, None, {}, "abcde", ["a", "file", 1, 1], ["a", "gate", 1, 1, 1], ["a/b", "file", 1, 1, 1],
     ["", "file", 1, 1, 1], ["a\0", "file", 1, 1, 1], [7, "file", 1, 1, 1], ["a", "file", "x", 1, 1],
     ["a", "file", 1, 1, 1e300], ["a", "file", 1, 1, "now"], ["a", [], 1, 1, 1], ["a", "file", 1, None, 1]],
)  # fmt: skip
async def test_malformed_folder_entries(scripted: ScriptedWarden, entry: object) -> None:
    with pytest.raises(WardenFailed):
        await scripted(items(["good", "file", 1, 1, 1], entry)).list()


FILE_MODE, FOLDER_MODE, LINK_MODE = 0o100644, 0o40755, 0o120777
ROW = [0, "b", FILE_MODE, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "batch",
    [7, {}, [], [[ROW]], [[[]], [], []], [[7], [], []], [[ROW[:6]], [], []], [[[*ROW, 1]], [], []],
     *([[[*ROW[:index], value, *ROW[index + 1 :]]], [], []] for index, value in [
        (0, 1), (0, -1), (0, "0"), (0, None), (0, False),
        (1, ""), (1, "."), (1, ".."), (1, "a/b"), (1, "a\0b"), (1, "\ud800"), (1, 7),
        (2, "x"), (2, -1), (2, 1e300), (3, -1), (3, 1 << 64), (3, 0.5), (4, "x"), (5, None), (6, 1 << 70)]),
     [[ROW, ROW], [], []], [[ROW, [0, "a", *ROW[2:]]], [], []], [[ROW, [1, "a", *ROW[2:]]], [], []],
     [[ROW], [[1, "x"]], []], [[ROW], [[0, "a\0"]], []], [[ROW], [[0, "x" * 5000]], []],
     [[ROW], [[0, 7]], []], [[ROW], [], [[0, "x"]]]],
)  # fmt: skip
async def test_malformed_scans_are_failures(scripted: ScriptedWarden, batch: object) -> None:
    frames = frame(b"d", json.dumps(batch).encode()) + frame(b"x", END)
    with pytest.raises(WardenFailed):
        await collect(scripted(OK + frames).tree.scan())


async def test_a_valid_scan_is_parsed(scripted: ScriptedWarden) -> None:
    first = [[[0, "a", FOLDER_MODE, 0, 1, 2, 3], [1, "b\udcff", FILE_MODE, 5, -1, 0, 4]], [], []]
    second = [[[1, "c", LINK_MODE, 1, 1, 2, 5], [0, "b", FOLDER_MODE, 0, 1, 2, 6]], [[0, "x"]], [[1, "pathRefused"]]]
    frames = [frame(b"d", json.dumps(batch).encode()) for batch in (first, second)]
    found = await collect(scripted(OK + b"".join(frames) + frame(b"x", END)).tree.scan())
    assert [entry for batch in found for entry in batch] == [
        ScanEntry("a", "folder", 0, 0o755, Stamp(1, 2, 3)),
        ScanEntry("a/b\udcff", "file", 5, 0o644, Stamp(-1, 0, 4)),
        ScanEntry("a/c", "link", 1, 0o777, Stamp(1, 2, 5), target="x"),
        ScanEntry("b", "folder", 0, 0o755, Stamp(1, 2, 6), error="pathRefused"),
    ]


FILE = [3, 0o644, 1, 1, 1, 3, False]


@pytest.mark.parametrize(
    "frames",
    [[("f", [FILE]), ("d", b"1234")], [("f", [FILE]), ("d", b"1")], [("f", [FILE])], [("d", b"123")],
     [("f", [FILE, FILE]), ("d", b"123456")],
     [("f", [[2, *FILE[1:]]]), ("d", b"123")], [("f", [FILE[:6]]), ("d", b"123")],
     [("f", [["x", *FILE[1:]]]), ("d", b"123")], [("f", 7)], [("f", [])],
     [("f", [[*FILE[:5], -1, False]]), ("d", b"1234"), ("e", False)], [("f", [[*FILE[:5], -1, False]]), ("d", b"123")],
     [("f", [[*FILE[:5], -1, False]]), ("f", [FILE])], [("f", [[*FILE[:5], -2, False]]), ("d", b"123")]],
    ids=range(14),
)  # fmt: skip
async def test_malformed_file_batches(scripted: ScriptedWarden, frames: list[tuple[str, Any]]) -> None:
    sent = [
        frame(kind.encode(), data if isinstance(data, bytes) else json.dumps(data).encode()) for kind, data in frames
    ]
    with pytest.raises(WardenFailed):
        await collect(scripted(OK + b"".join(sent) + frame(b"x", END)).tree.read_files(["x"]))


async def test_only_the_last_file_of_a_batch_is_large(scripted: ScriptedWarden) -> None:
    rows = json.dumps([[*FILE[:5], -1, False], FILE]).encode()
    sent = frame(b"f", rows) + frame(b"d", b"123") + frame(b"e", b"false")
    with pytest.raises(WardenFailed):
        await collect(scripted(OK + sent + frame(b"x", END)).tree.read_files(["x", "y"]))


@pytest.mark.parametrize(
    "changes", [7, [], [["a"]], [7, True], [[7], True], [[""], True], [["/a"], True], [["a/../b"], True],
                [["a\0"], True], [["\ud800"], True]],
)  # fmt: skip
async def test_malformed_changed_paths(scripted: ScriptedWarden, changes: object) -> None:
    with pytest.raises(WardenFailed):
        await collect(scripted(OK + frame(b"d", json.dumps(changes).encode()) + frame(b"x", END)).tree.watch())


@pytest.mark.parametrize("stamps", [7, [7], [[1, 2]], [["x", 1, 1], None], [None], [None] * 3])
async def test_malformed_stamps_are_failures(scripted: ScriptedWarden, stamps: object) -> None:
    with pytest.raises(WardenFailed):
        await scripted(OK + frame(b"d", json.dumps(stamps).encode()) + frame(b"x", END)).tree.apply(write_files())


@pytest.mark.parametrize("line", [[], 7, None, ["x", "y", "z"], [1e300, "a", "b"], [1, "a"], [1, "a", "b", "c"]])
async def test_malformed_log_lines(scripted: ScriptedWarden, line: object) -> None:
    with pytest.raises(WardenFailed):
        await scripted(items([1, "a", "b"], line)).logs()
    with pytest.raises(WardenFailed):
        await collect(scripted(items(line)).follow())


@pytest.mark.parametrize(
    "view",
    [7, None, [], {"state": "flying"}, {"state": []},
     {"state": "running", "pid": "x", "exitCode": None, "startedAt": 1, "restarts": 0},
     {"state": "running", "pid": 1, "exitCode": None, "startedAt": 1e300, "restarts": 0}],
)  # fmt: skip
async def test_malformed_process_states(scripted: ScriptedWarden, view: object) -> None:
    with pytest.raises(WardenFailed):
        await scripted(json.dumps({"ok": True, "processes": {"gateway": view}}).encode() + b"\n").processes()
    with pytest.raises(WardenFailed):
        await scripted(json.dumps({"ok": True, "processes": view}).encode() + b"\n").processes()


async def test_replies_over_the_limits_are_rejected(scripted: ScriptedWarden) -> None:
    with pytest.raises(WardenFailed):
        await scripted(OK + frame(b"d", bytes(600)) * 2 + frame(b"x", END)).read("x", limit=1000)
    with pytest.raises(WardenFailed):
        await scripted(items(*([["a", "file", 1, 1, 1]] * 10_001))).list()
    with pytest.raises(WardenFailed):
        await scripted(OK + frame(b"d", b"[" + b" " * 1_000_000 + b"]") * 40 + frame(b"x", END)).list()
    with pytest.raises(WardenFailed):
        await scripted(OK + frame(b"d", b"[]") + frame(b"x", END)).write("x", b"")


async def test_output_over_the_limit_is_not_kept(scripted: ScriptedWarden) -> None:
    output = frame(b"o", b"a" * 700) * 3 + frame(b"e", b"b" * 700) * 3 + frame(b"z", b"?") + frame(b"x", EXECUTED)
    result = await scripted(OK + output).exec(["true"], output_limit=1000)
    assert (result.stdout, result.stderr) == (b"a" * 1000, b"b" * 1000)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("dialRefused", warden_errors.DialRefused),
        ("pathRefused", warden_errors.PathRefused),
        ("fileMissing", warden_errors.WardenFileNotFound),
        ("notAFile", warden_errors.WardenNotAFile),
        ("fileTooLarge", warden_errors.WardenFileTooLarge),
        ("execRefused", warden_errors.ExecRefused),
        ("running", warden_errors.ProcessAlreadyRunning),
        ("busy", warden_errors.WardenBusy),
        ("diskFull", warden_errors.WardenDiskFull),
        ("watchRefused", warden_errors.WardenWatchRefused),
        ("failed", WardenFailed),
        ("else", WardenFailed),
    ],
)
async def test_error_codes_map_to_problems(scripted: ScriptedWarden, code: str, problem: type[Problem]) -> None:
    error = json.dumps({"ok": False, "error": code, "message": "no\r\n\x1b[31m" + "x" * 5000}).encode()
    for warden in (scripted(error + b"\n"), scripted(OK + frame(b"x", error))):
        with pytest.raises(problem) as raised:
            await warden.read("x", limit=1)
        assert raised.value.message.isprintable()
        assert len(raised.value.message) < 400


async def test_valid_replies_are_parsed(scripted: ScriptedWarden) -> None:
    assert await scripted(b'{"ok": true, "pid": 1, "uptime": 2.5}\n').ping() == client.WardenStatus(1, 2.5)
    (entry,) = await scripted(items(["a\udcff", "link", 3, 0o777, 0])).list()
    assert (entry.name, entry.kind, entry.size, entry.mode, entry.modified_at.year) == (
        "a\udcff",
        "link",
        3,
        0o777,
        1970,
    )
    (line,) = await scripted(items([0.5, "gateway", "text"])).logs()
    assert (line.time.microsecond, line.source, line.text) == (500_000, "gateway", "text")
    pieces = await collect_output(scripted(OK + frame(b"e", b"x") + frame(b"x", EXECUTED)))
    assert [(piece.stream, piece.data, piece.exit_code) for piece in pieces] == [
        ("stderr", b"x", None),
        ("exit", b"", 0),
    ]


async def test_a_dialled_stream_starts_directly_after_the_reply(scripted: ScriptedWarden) -> None:
    reader, writer = await scripted(OK + b"HTTP/1.1 200 OK\r\n").dial(80)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_without_a_container_every_call_fails() -> None:
    async def connect() -> Any:
        raise ContainerNotRunning

    for call in CALLS.values():
        with pytest.raises(ContainerNotRunning):
            await call(WardenClient(connect))
