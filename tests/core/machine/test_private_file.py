"""Private files: their mode from the start, whole content or none, and the lock of a folder."""

import os
import stat
from pathlib import Path

import pytest

from roost.core.machine.private_file import lock_folder, write_private_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_private_before_it_has_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    fdopen = os.fdopen

    def record(descriptor: int, form: str) -> object:
        state = os.fstat(descriptor)
        seen.append((stat.S_IMODE(state.st_mode), state.st_size))
        return fdopen(descriptor, form)

    monkeypatch.setattr(os, "fdopen", record)
    umask = os.umask(0)
    try:
        write_private_file(tmp_path / "key", "new")
    finally:
        os.umask(umask)
    assert seen == [(0o600, 0)]
    assert ((tmp_path / "key").read_text(), mode(tmp_path / "key")) == ("new", 0o600)


def test_a_file_that_others_could_read_is_private_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    write_private_file(path, "new")
    assert (path.read_text(), mode(path), list(tmp_path.iterdir())) == ("new", 0o600, [path])


def test_a_file_stays_if_it_may_not_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_private_file(path, "first", replace=False)
    write_private_file(path, "second", replace=False)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("first", [path])


def test_the_content_is_on_the_disk_before_the_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []

    def record(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), (tmp_path / "key").exists()))

    monkeypatch.setattr(os, "fsync", record)
    write_private_file(tmp_path / "key", "new")
    assert synced == [(False, False), (True, True)]


def test_a_full_disk_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "key"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_private_file(path, "new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_a_lock_is_held_until_the_end(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(BlockingIOError), lock_folder(tmp_path, wait=False):
        pass
    with lock_folder(tmp_path, wait=False):
        pass
