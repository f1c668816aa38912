"""A folder of this machine in the place of a repository: what Git would see of it, within limits."""

from pathlib import Path

import pytest

from roost.drivers.git import local_folder
from roost.drivers.git.contract import EntryKind
from roost.drivers.git.local_folder import LocalRepository
from roost.drivers.git.remote_contract import RemoteRefused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("x")
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b/c/tool").write_bytes(b"two")
    (tmp_path / "b/c/tool").chmod(0o755)
    (tmp_path / "b/link").symlink_to("c/tool")
    return tmp_path


async def test_files_links_and_modes(folder: Path) -> None:
    async with LocalRepository(folder).fetch("", "", None) as commit:
        assert commit.commit == ""
        assert [(entry.path, entry.kind, entry.size) for entry in commit.entries] == [
            ("a", EntryKind.FILE, 3),
            ("b/c/tool", EntryKind.EXECUTABLE, 3),
            ("b/link", EntryKind.LINK, 6),
        ]
        contents = [b"".join([part async for part in blob.content]) async for blob in commit.read_blobs(commit.entries)]
        assert contents == [b"one", b"two", b"c/tool"]


async def test_limits_of_a_folder_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_folder, "MAX_REMOTE_ENTRIES", 2)
    with pytest.raises(RemoteRefused, match="at most 2 files"):
        async with LocalRepository(folder).fetch("", "", None):
            pass
    with pytest.raises(RemoteRefused, match="No such file"):
        async with LocalRepository(folder / "absent").fetch("", "", None):
            pass
