"""The stage needs mounts, which belong to a thread: each of these runs in one of its own."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from roost.drivers.runtime.bwrap.bind_stage import BindStage, reachable
from roost.drivers.runtime.contract import RuntimeFailed
from tests.drivers.runtime.bwrap.containers import AS_ROOT

root = pytest.mark.skipif(not AS_ROOT, reason="only root has mounts to give")
T = TypeVar("T")


@pytest.fixture
def apart() -> Iterator[Callable[[Callable[[], T]], T]]:
    with ThreadPoolExecutor(1) as pool:
        yield lambda act: pool.submit(act).result()


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    folder = tmp_path / "closed" / "engine"
    folder.mkdir(parents=True)
    (folder / "file").write_text("content")
    folder.parent.chmod(0o700)
    return folder


def test_what_lies_open_is_itself(tmp_path: Path, closed: Path) -> None:
    assert BindStage(tmp_path / "stage").reach(Path("/usr/bin")) == Path("/usr/bin")
    assert not (tmp_path / "stage").exists()
    assert reachable(Path("/usr/bin"))
    assert not reachable(closed)


@root
def test_what_lies_closed_gets_another_name(tmp_path: Path, closed: Path, apart: Callable[..., str]) -> None:
    stage = BindStage(tmp_path / "stage")

    def reach() -> str:
        place = stage.reach(closed)
        assert place.parent == tmp_path / "stage"
        assert stage.reach(closed) == place
        assert (tmp_path / "stage").stat().st_mode & 0o001
        return (place / "file").read_text()

    assert apart(reach) == "content"
    # Nobody else sees it.
    assert not list((tmp_path / "stage").iterdir())
    assert str(tmp_path / "stage") not in Path("/proc/self/mountinfo").read_text()


@root
def test_a_folder_that_was_made_anew_is_bound_anew(tmp_path: Path, closed: Path, apart: Callable[..., str]) -> None:
    stage = BindStage(tmp_path / "stage")
    apart(partial(stage.reach, closed))
    closed.rename(tmp_path / "closed" / "former")
    closed.mkdir()
    (closed / "file").write_text("new")

    def read() -> str:
        return (stage.reach(closed) / "file").read_text()

    assert apart(read) == "new"


@root
def test_a_file_can_be_staged(tmp_path: Path, closed: Path, apart: Callable[..., str]) -> None:
    stage = BindStage(tmp_path / "stage")

    def read() -> str:
        return stage.reach(closed / "file").read_text()

    assert apart(read) == "content"


def test_where_it_cannot_be_done_the_reason_is_told(tmp_path: Path, closed: Path) -> None:
    (tmp_path / "stage").write_text("in the way")
    with pytest.raises(RuntimeFailed, match=r"chmod o\+x"):
        BindStage(tmp_path / "stage").reach(closed)
