import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import record
from roost.drivers.runtime.bwrap.record import ContainerRecord, HostProcess, boot_id, find_marked, load_record


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def found(pid: int) -> HostProcess:
    process = HostProcess.find(pid)
    assert process
    return process


def a_record(process: HostProcess) -> ContainerRecord:
    now = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    return ContainerRecord("one", boot_id(), process, process, now, (Path("/sys/fs/cgroup/x"),))


async def test_a_process_is_alive_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    process = found(child.pid)
    assert process.is_alive()
    assert not await process.wait_until_gone(0.01)
    process.kill(signal.SIGTERM)
    assert await process.wait_until_gone(10)
    assert not process.is_alive()  # although it is not reaped yet
    assert HostProcess.find(child.pid) is None
    process.kill()
    assert child.wait() == -signal.SIGTERM
    assert await process.wait_until_gone(0)


async def test_a_reused_pid_is_another_process(child: subprocess.Popen[bytes]) -> None:
    former = dataclasses.replace(found(child.pid), born=1)
    assert not former.is_alive()
    former.kill()
    assert await former.wait_until_gone(0)
    assert child.poll() is None


async def test_the_end_is_noticed_while_waiting(child: subprocess.Popen[bytes]) -> None:
    waiting = asyncio.create_task(found(child.pid).wait_until_gone(30))
    child.terminate()
    assert await waiting


def test_a_record_is_saved_and_loaded(tmp_path: Path) -> None:
    kept = a_record(found(os.getpid()))
    kept.save(tmp_path / "container.json")
    assert load_record(tmp_path / "container.json") == kept
    assert kept.is_alive()
    assert kept.to_container().pid == os.getpid()
    assert [file.name for file in tmp_path.iterdir()] == ["container.json"]


def test_a_record_of_another_boot_is_not_alive() -> None:
    assert not dataclasses.replace(a_record(found(os.getpid())), boot="before").is_alive()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"agent_id": "one"}', '{"warden": 3}'])
def test_incomplete_records_are_ignored(tmp_path: Path, content: str) -> None:
    assert load_record(tmp_path / "container.json") is None
    (tmp_path / "container.json").write_text(content)
    assert load_record(tmp_path / "container.json") is None


def test_processes_are_found_by_their_mark() -> None:
    mark = f"mark-of-{os.getpid()}"
    commands = [f'{{"mark": "{mark}", "agent": "one"}}', f'{{"mark": "{mark}-other", "agent": "two"}}', mark]
    wait = [sys.executable, "-c", "input()"]
    children = [subprocess.Popen([*wait, command], stdin=subprocess.PIPE) for command in commands]
    try:
        assert [(agent, process.pid) for agent, process in find_marked(mark)] == [("one", children[0].pid)]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert find_marked(mark) == []


def test_a_giant_command_line_is_not_read() -> None:
    mark = f"giant-mark-of-{os.getpid()}"
    padding = ["x" * 100_000] * 3
    child = subprocess.Popen(
        [sys.executable, "-c", "input()", *padding, f'{{"mark": "{mark}", "agent": "one"}}'], stdin=subprocess.PIPE
    )
    try:
        assert find_marked(mark) == []
    finally:
        child.kill()
        child.communicate()


def test_no_memory_of_a_process_in_a_container_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it waits for a lock that the process can hold for seconds, as while it forks without processor time."""
    asked: set[int] = set()
    monkeypatch.setattr(record, "_read_command", lambda pid: asked.add(pid) or b"")
    command = ["unshare", "--user", "--pid", "--fork", "--kill-child", "sh", "-c", "sleep 1000 & echo begun; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as outer:
        assert outer.stdout
        assert outer.stdout.readline() == b"begun\n"
        (first,) = children_of(outer.pid)
        (inner,) = children_of(first)
        find_marked("mark")
        outer.kill()
    assert {outer.pid, first} <= asked
    assert inner not in asked


def children_of(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def test_the_boot_has_an_id() -> None:
    assert len(record.boot_id()) == 36
