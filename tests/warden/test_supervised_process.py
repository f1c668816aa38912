"""Logs of processes: lines, rings, files and followers."""

import os
from pathlib import Path

import pytest

from roost.warden.event_loop import EventLoop
from roost.warden.supervised_process import Line, LogFollower, ProcessLog, ProcessLogs


def texts(log: ProcessLog) -> list[str]:
    return [text for _, _, text in log.lines]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def log(home: Path) -> ProcessLog:
    return ProcessLogs(str(home)).get_log("gateway")


def test_output_in_any_chunks_becomes_lines(log: ProcessLog) -> None:
    for chunk in (b"on", b"e\ntw", b"o\r\n\nfo", b"ur"):
        log.feed(chunk)
    assert texts(log) == ["one", "two", ""]
    log.flush()
    log.flush()
    assert texts(log) == ["one", "two", "", "four"]


def test_a_line_over_the_limit_is_cut_and_marked(log: ProcessLog) -> None:
    for _ in range(5):
        log.feed(b"x" * 10_000)
    log.feed(b"\n" + b"y" * 16384 + b"\n")
    assert texts(log) == ["x" * 16384 + " [cut]", "y" * 16384]


def test_a_cut_divides_no_character(log: ProcessLog) -> None:
    for before in range(4):
        log.feed(b"x" * before + "\U0001f511".encode() * 5000 + b"\n")
    assert [text.count("\ufffd") for text in texts(log)] == [0] * 4
    assert all(text.endswith("\U0001f511 [cut]") for text in texts(log))


def test_bytes_that_are_not_utf_8_are_replaced(log: ProcessLog) -> None:
    log.feed(b"a\xff\xfe\0b\n")
    assert texts(log) == ["a\ufffd\ufffd\0b"]


def test_the_ring_is_bounded_by_lines_and_bytes(log: ProcessLog) -> None:
    log.add_lines(*(str(number).encode() for number in range(1500)))
    assert texts(log) == [str(number) for number in range(500, 1500)]
    log.add_lines(*(b"x" * 16000 for _ in range(200)))
    assert sum(map(len, texts(log))) <= 1 << 20
    assert len(texts(log)) > 60


def test_the_file_is_rotated_once(log: ProcessLog, home: Path) -> None:
    for number in range(500):
        log.add_lines(f"{number} ".encode() + b"x" * 10_000)
    folder = home / ".roost/logs"
    assert sorted(path.name for path in folder.iterdir()) == ["gateway.log", "gateway.log.1"]
    assert all(path.stat().st_size <= 1 << 20 for path in folder.iterdir())
    kept = (folder / "gateway.log.1").read_text() + (folder / "gateway.log").read_text()
    numbers = [int(line.split()[1]) for line in kept.splitlines()]
    assert numbers == list(range(numbers[0], 500))


def test_a_new_log_appends_to_an_existing_file(tmp_path: Path) -> None:
    for text in (b"first", b"second"):
        ProcessLogs(str(tmp_path)).get_log("gateway").add_lines(text)
    lines = (tmp_path / ".roost/logs/gateway.log").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["first", "second"]


@pytest.mark.parametrize("trap", ["fifo", "folder", "link", "file in the way", "linked folder"])
def test_lines_are_kept_if_the_file_cannot_be_written(log: ProcessLog, home: Path, tmp_path: Path, trap: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").write_text("kept")
    logs = home / ".roost/logs"
    if trap == "file in the way":
        (home / ".roost").write_text("")
    elif trap == "linked folder":
        (home / ".roost").symlink_to(target)
    else:
        logs.mkdir(parents=True)
        create = {"fifo": os.mkfifo, "folder": os.mkdir, "link": lambda path: path.symlink_to(target / "precious")}
        create[trap](logs / "gateway.log")
    log.add_lines(b"kept anyway")
    assert texts(log) == ["kept anyway"]
    assert [path.read_text() for path in target.iterdir()] == ["kept"]


def test_lines_of_all_sources_come_in_order(tmp_path: Path) -> None:
    logs = ProcessLogs(str(tmp_path))
    for text in ("a", "b", "c", "d"):
        logs.get_log("even" if text in "bd" else "odd").add_lines(text.encode())
    assert [line[2] for line in logs.last_lines(None, 3)] == ["b", "c", "d"]
    assert [line[2] for line in logs.last_lines("odd", 10)] == ["a", "c"]
    assert logs.last_lines("none", 10) == logs.last_lines(None, 0) == logs.last_lines(None, -1) == []


def test_a_follower_gets_its_lines_until_it_lags(tmp_path: Path) -> None:
    logs, lagged = ProcessLogs(str(tmp_path)), list[str]()
    slow, other = (
        LogFollower("loud", lambda: lagged.append("slow")),
        LogFollower("quiet", lambda: lagged.append("other")),
    )
    logs.followers |= {slow, other}

    async def follow() -> list[Line]:
        logs.get_log("quiet").add_lines(b"psst")
        logs.get_log("loud").add_lines(*[b"x"] * 300)
        return await other.take_lines()

    loop = EventLoop(lambda error: pytest.fail(str(error)))
    assert [line[1:] for line in loop.run(follow())] == [("quiet", "psst")]
    assert lagged == ["slow"]
    assert logs.followers == {other}
