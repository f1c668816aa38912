"""Agents' folders are counted without trust in what is in them."""

import os
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import disk_meter
from roost.drivers.runtime.bwrap.agent_paths import remove_tree
from roost.drivers.runtime.bwrap.disk_meter import HostDiskMeter, measure_folder
from roost.drivers.runtime.contract import RuntimeFailed

MIB = 1024**2


def fill(file: Path, size: int = MIB) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(os.urandom(size))
    return file


def mib(folder: Path) -> int:
    usage = measure_folder(folder, 0)
    assert usage.is_complete
    return round(usage.size / MIB)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_all_files_of_a_tree_count(tmp_path: Path) -> None:
    fill(tmp_path / "a/b/c/file", 3 * MIB)
    fill(tmp_path / b"a/\xff".decode(errors="surrogateescape"), 2 * MIB)
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "fifo")
    assert mib(tmp_path) == 5


def test_a_missing_folder_is_empty(tmp_path: Path) -> None:
    assert measure_folder(tmp_path / "missing", 0).size == 0


def test_a_file_with_several_names_counts_once(tmp_path: Path) -> None:
    fill(tmp_path / "one", 2 * MIB)
    for number in range(4):
        os.link(tmp_path / "one", tmp_path / f"link{number}")
    assert mib(tmp_path) == 2


def test_holes_of_a_file_do_not_count(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1000 * MIB)
    assert mib(tmp_path) == 0


def test_links_are_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "outside/file", 2 * MIB)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "tree/file").symlink_to(tmp_path / "outside/file")
    (tmp_path / "tree/loop").symlink_to(".")
    assert mib(tmp_path / "tree") == 0
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(NotADirectoryError):
        measure_folder(tmp_path / "link", 0)


def test_nothing_is_hidden_in_a_folder_without_permissions(tmp_path: Path) -> None:
    """Root needs none; `test_rootless.py` runs this as a plain user."""
    fill(tmp_path / "hidden/file", 2 * MIB).parent.chmod(0)
    assert mib(tmp_path) == 2


def test_a_nested_or_wide_tree_is_not_counted_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3_000):  # longer than a path may be
        os.mkdir("deep", dir_fd=folder)
        child = os.open("deep", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = child
    os.close(folder)
    before = open_files()
    assert not measure_folder(tmp_path, 0).is_complete
    assert open_files() == before
    remove_tree(tmp_path / "deep")  # too deep for the cleanup of the tests
    monkeypatch.setattr(disk_meter, "_MAX_ENTRIES", 3)
    for number in range(4):
        fill(tmp_path / f"wide/{number}")
    assert measure_folder(tmp_path / "wide", 0).size == 3 * MIB
    assert not measure_folder(tmp_path / "wide", 0).is_complete


def test_a_count_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        (tmp_path / str(number)).touch()
    rests: list[float] = []
    monkeypatch.setattr(disk_meter, "_ENTRIES_PER_PAUSE", 5)
    monkeypatch.setattr(disk_meter.time, "sleep", rests.append)
    measure_folder(tmp_path, 0)
    assert not rests
    measure_folder(tmp_path, 4)
    assert len(rests) == 2


async def test_only_a_name_is_an_agent(tmp_path: Path) -> None:
    meter = HostDiskMeter(tmp_path)
    fill(tmp_path / "agents/ada/home/file")
    assert (await meter.measure("ada", paced=False)).size >= MIB
    with pytest.raises(RuntimeFailed):
        await meter.measure("../agents", paced=False)
