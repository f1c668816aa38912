"""Bind mounts of a thread; each test runs in its own thread."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from roost.drivers.runtime.bwrap.start import BindStage, is_reachable
from roost.drivers.runtime.contract import RuntimeFailed
from tests.conformance.containers import AS_ROOT

root = pytest.mark.skipif(not AS_ROOT, reason="only root can mount")
T = TypeVar("T")


@pytest.fixture
def run_in_thread() -> Iterator[Callable[[Callable[[], T]], T]]:
    with ThreadPoolExecutor(1) as pool:
        yield lambda call: pool.submit(call).result()


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    folder = tmp_path / "closed" / "engine"
    folder.mkdir(parents=True)
    (folder / "file").write_text("content")
    folder.parent.chmod(0o700)
    return folder


def test_a_reachable_path_is_not_mounted(tmp_path: Path, closed: Path) -> None:
    assert BindStage(tmp_path / "stage").accessible_path(Path("/usr/bin")) == Path("/usr/bin")
    assert not (tmp_path / "stage").exists()
    assert is_reachable(Path("/usr/bin"))
    assert not is_reachable(closed)


@root
def test_a_closed_path_is_mounted_elsewhere(tmp_path: Path, closed: Path, run_in_thread: Callable[..., str]) -> None:
    stage = BindStage(tmp_path / "stage")

    def read_staged() -> str:
        path = stage.accessible_path(closed)
        assert path.parent == tmp_path / "stage"
        assert stage.accessible_path(closed) == path
        assert (tmp_path / "stage").stat().st_mode & 0o001
        return (path / "file").read_text()

    assert run_in_thread(read_staged) == "content"
    # Other threads do not see the mount.
    assert not list((tmp_path / "stage").iterdir())
    assert str(tmp_path / "stage") not in Path("/proc/self/mountinfo").read_text()


@root
def test_a_replaced_folder_is_mounted_again(tmp_path: Path, closed: Path, run_in_thread: Callable[..., str]) -> None:
    stage = BindStage(tmp_path / "stage")
    run_in_thread(partial(stage.accessible_path, closed))
    closed.rename(tmp_path / "closed" / "former")
    closed.mkdir()
    (closed / "file").write_text("new")

    def read() -> str:
        return (stage.accessible_path(closed) / "file").read_text()

    assert run_in_thread(read) == "new"


@root
def test_a_file_can_be_staged(tmp_path: Path, closed: Path, run_in_thread: Callable[..., str]) -> None:
    stage = BindStage(tmp_path / "stage")

    def read() -> str:
        return stage.accessible_path(closed / "file").read_text()

    assert run_in_thread(read) == "content"


def test_a_failed_mount_is_reported_with_a_remedy(tmp_path: Path, closed: Path) -> None:
    (tmp_path / "stage").write_text("not a folder")
    with pytest.raises(RuntimeFailed, match=r"chmod o\+x"):
        BindStage(tmp_path / "stage").accessible_path(closed)
