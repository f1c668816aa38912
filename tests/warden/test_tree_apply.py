"""Changes of a tree that a crash interrupts between two paths."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from roost.warden.tree_apply import StagedChanges
from roost.warden.tree_read import STAGING_NAME


class Killed(BaseException):
    pass


def stage(root: Path) -> StagedChanges:
    changes = StagedChanges(str(root))
    changes.add_changes([["file", "closed/a", 0o644, 3], ["file", "open/b", 0o644, 3]])
    changes.write(b"newnew")
    return changes


def modes(root: Path) -> list[int]:
    return [stat.S_IMODE((root / name).stat().st_mode) for name in ("closed", "open")]


def test_a_repeated_apply_restores_the_modes_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    for name, mode in (("closed", 0o500), ("open", 0o750)):
        (root / name).mkdir(parents=True)
        (root / name).chmod(mode)
    rename, renamed = os.rename, list[object]()

    def rename_once(*arguments: Any, **folders: int) -> None:
        if renamed:
            raise Killed
        renamed.append(rename(*arguments, **folders))

    killed = stage(root)
    monkeypatch.setattr(os, "rename", rename_once)
    with pytest.raises(Killed):
        killed.commit()
    monkeypatch.undo()
    assert (modes(root), (root / "closed/a").exists(), (root / "open/b").exists()) == ([0o700, 0o750], True, False)
    again = stage(root)
    again.commit()
    again.close()
    assert modes(root) == [0o500, 0o750]
    assert sorted(path.name for path in root.rglob("*")) == ["a", "b", "closed", "open"]


@pytest.mark.parametrize(
    "record", [b"500 ../outside\0", b"777", b"x open\0", b"500 \0" * 3, b"500 open/../open\0", None]
)
def test_a_forged_record_reaches_no_other_folder(tmp_path: Path, record: bytes | None) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / STAGING_NAME, root / "closed", root / "open", outside):
        folder.mkdir(parents=True, mode=0o755)
    if record is None:
        os.mkfifo(root / STAGING_NAME / "modes")
    else:
        (root / STAGING_NAME / "modes").write_bytes(record)
    changes = stage(root)
    changes.commit()
    changes.close()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert modes(root) == [0o755, 0o755]
