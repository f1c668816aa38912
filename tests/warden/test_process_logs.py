"""Lines, rings, files and followers. The module is part of a program, but needs nothing of it."""

import asyncio
import os
from pathlib import Path

import pytest

from roost.warden.process_logs import Line, LogFollower, ProcessLog, ProcessLogs


def texts(journal: ProcessLog) -> list[str]:
    return [text for _, _, text in journal.lines]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def journal(home: Path) -> ProcessLog:
    return ProcessLogs(str(home)).of("gateway")


def test_output_is_cut_into_lines_wherever_it_was_cut(journal: ProcessLog) -> None:
    for piece in (b"on", b"e\ntw", b"o\r\n\nfo", b"ur"):
        journal.feed(piece)
    assert texts(journal) == ["one", "two", ""]
    journal.flush()
    journal.flush()
    assert texts(journal) == ["one", "two", "", "four"]


def test_a_line_is_cut_at_its_limit_and_says_so(journal: ProcessLog) -> None:
    for _ in range(5):
        journal.feed(b"x" * 10_000)
    journal.feed(b"\n" + b"y" * 16384 + b"\n")
    assert texts(journal) == ["x" * 16384 + " [cut]", "y" * 16384]


def test_bytes_that_are_no_text_do_no_harm(journal: ProcessLog) -> None:
    journal.feed(b"a\xff\xfe\0b\n")
    assert texts(journal) == ["a\ufffd\ufffd\0b"]


def test_the_ring_holds_so_many_lines_and_so_many_bytes(journal: ProcessLog) -> None:
    journal.add(*(str(number).encode() for number in range(1500)))
    assert texts(journal) == [str(number) for number in range(500, 1500)]
    journal.add(*(b"x" * 16000 for _ in range(200)))
    assert sum(map(len, texts(journal))) <= 1 << 20
    assert len(texts(journal)) > 60


def test_the_file_is_rotated_once(journal: ProcessLog, home: Path) -> None:
    for number in range(500):
        journal.add(f"{number} ".encode() + b"x" * 10_000)
    folder = home / ".roost/logs"
    assert sorted(path.name for path in folder.iterdir()) == ["gateway.log", "gateway.log.1"]
    assert all(path.stat().st_size <= 1 << 20 for path in folder.iterdir())
    kept = (folder / "gateway.log.1").read_text() + (folder / "gateway.log").read_text()
    numbers = [int(line.split()[1]) for line in kept.splitlines()]
    assert numbers == list(range(numbers[0], 500))


def test_a_new_journal_goes_on_with_the_file_that_is_there(tmp_path: Path) -> None:
    for text in (b"first", b"second"):
        ProcessLogs(str(tmp_path)).of("gateway").add(text)
    lines = (tmp_path / ".roost/logs/gateway.log").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["first", "second"]


@pytest.mark.parametrize("trap", ["fifo", "folder", "link", "file in the way", "linked folder"])
def test_a_file_that_cannot_be_written_stops_nobody(journal: ProcessLog, home: Path, tmp_path: Path, trap: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    logs = home / ".roost/logs"
    if trap == "file in the way":
        (home / ".roost").write_text("")
    elif trap == "linked folder":
        (home / ".roost").symlink_to(outside)
    else:
        logs.mkdir(parents=True)
        made = {"fifo": os.mkfifo, "folder": os.mkdir, "link": lambda path: path.symlink_to(outside / "precious")}
        made[trap](logs / "gateway.log")
    journal.add(b"kept anyway")
    assert texts(journal) == ["kept anyway"]
    assert [path.read_text() for path in outside.iterdir()] == ["kept"]


def test_lines_of_all_sources_come_in_order(tmp_path: Path) -> None:
    logs = ProcessLogs(str(tmp_path))
    for text in ("a", "b", "c", "d"):
        logs.of("even" if text in "bd" else "odd").add(text.encode())
    assert [line[2] for line in logs.last(None, 3)] == ["b", "c", "d"]
    assert [line[2] for line in logs.last("odd", 10)] == ["a", "c"]
    assert logs.last("none", 10) == logs.last(None, 0) == logs.last(None, -1) == []


async def test_a_follower_gets_its_lines_until_it_lags(tmp_path: Path) -> None:
    logs, lagged = ProcessLogs(str(tmp_path)), list[str]()
    slow, other = (
        LogFollower("loud", lambda: lagged.append("slow")),
        LogFollower("quiet", lambda: lagged.append("other")),
    )
    logs.followers |= {slow, other}
    logs.of("quiet").add(b"psst")
    logs.of("loud").add(*[b"x"] * 300)
    assert lagged == ["slow"]
    assert logs.followers == {other}
    line: Line = other.lines.get_nowait()
    assert line[1:] == ("quiet", "psst")
    with pytest.raises(asyncio.QueueEmpty):
        other.lines.get_nowait()
