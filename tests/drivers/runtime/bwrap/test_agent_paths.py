import os
import stat
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.contract import RuntimeFailed
from tests.drivers.runtime.bwrap.containers import AS_ROOT

root = pytest.mark.skipif(not AS_ROOT, reason="only root can give agents users of their own")


@pytest.fixture
def places(tmp_path: Path) -> AgentPaths:
    return AgentPaths(tmp_path / "data", tmp_path / "claims")


def uid_of(places: AgentPaths, agent_id: str) -> int:
    uid = places.prepare(agent_id)
    assert uid is not None
    return uid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_made_and_kept(places: AgentPaths) -> None:
    places.prepare("one")
    (places.workspace("one") / "file").write_text("kept")
    places.home("one").chmod(0o750)
    places.prepare("one")
    assert (places.workspace("one") / "file").read_text() == "kept"
    assert mode(places.home("one")) == 0o750
    assert places.known() == ["one"]


def test_nobody_else_may_look_around(places: AgentPaths) -> None:
    places.prepare("one")
    assert mode(places.folder) == 0o700
    for folder in (places.workspace("one").parent, places.run("one"), places.relays("one")):
        assert mode(folder) == 0o711
    assert mode(places.workspace("one")) == mode(places.home("one")) == 0o700


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/a", "a\0b", "-x", ".x", "x" * 65, "ä"])
def test_names_that_are_none(places: AgentPaths, name: str) -> None:
    with pytest.raises(RuntimeFailed):
        places.prepare(name)
    with pytest.raises(RuntimeFailed):
        places.relay("one", name)


def test_a_mark_belongs_to_a_folder(tmp_path: Path) -> None:
    assert AgentPaths(tmp_path / "a").mark == AgentPaths(tmp_path / "a").mark != AgentPaths(tmp_path / "b").mark


def test_nothing_is_known_of_an_empty_folder(places: AgentPaths) -> None:
    assert places.known() == []
    places.remove("one")


def test_removal_leaves_nothing(places: AgentPaths) -> None:
    places.prepare("one")
    places.prepare("two")
    places.remove("one")
    places.remove("one")
    assert places.known() == ["two"]
    assert [folder.name for folder in (places.folder / "agents").iterdir()] == ["two"]


@pytest.mark.skipif(AS_ROOT, reason="root gives agents users of their own")
def test_without_root_all_is_ours(places: AgentPaths) -> None:
    assert places.prepare("one") is None
    assert places.workspace("one").stat().st_uid == os.geteuid()


@root
def test_each_agent_has_a_uid_that_stays(places: AgentPaths) -> None:
    one, two = uid_of(places, "one"), uid_of(places, "two")
    assert one != two
    assert uid_of(places, "one") == one
    assert places.workspace("one").stat().st_uid == places.home("one").stat().st_uid == one
    assert places.workspace("one").parent.stat().st_uid == os.geteuid()


@root
def test_two_servers_never_give_out_the_same(tmp_path: Path) -> None:
    here, there = (AgentPaths(tmp_path / name, tmp_path / "claims") for name in ("here", "there"))
    assert uid_of(here, "one") != uid_of(there, "one")


@root
def test_a_uid_comes_back_only_when_the_folders_are_gone(places: AgentPaths) -> None:
    one = uid_of(places, "one")
    assert uid_of(places, "two") != one
    places.remove("one")
    assert uid_of(places, "three") == one


@root
def test_a_claim_of_what_vanished_is_void(tmp_path: Path) -> None:
    gone = AgentPaths(tmp_path / "gone", tmp_path / "claims")
    uid = uid_of(gone, "one")
    gone.folder.rename(tmp_path / "elsewhere")
    assert uid_of(AgentPaths(tmp_path / "data", tmp_path / "claims"), "one") == uid


@root
def test_a_copy_of_the_data_gets_uids_of_its_own(places: AgentPaths, tmp_path: Path) -> None:
    uid = uid_of(places, "one")
    copy = AgentPaths(tmp_path / "copy", tmp_path / "claims")
    for path in (copy.workspace("one"), copy.home("one")):
        path.mkdir(parents=True)
        os.chown(path, uid, uid)
    (copy.home("one") / "file").write_text("x")
    (copy.home("one") / "link").symlink_to("/etc/passwd")
    fresh = uid_of(copy, "one")
    assert fresh != uid
    assert {path.lstat().st_uid for path in (copy.workspace("one"), *copy.home("one").iterdir())} == {fresh}
    assert Path("/etc/passwd").stat().st_uid == 0


@root
def test_folders_of_an_ordinary_user_are_taken_over(places: AgentPaths) -> None:
    places.prepare("one")
    for folder in (places.home("one"), places.workspace("one")):
        os.chown(folder, 1234, 1234)
    uid = uid_of(places, "one")
    assert {places.home("one").stat().st_uid, places.workspace("one").stat().st_uid} == {uid}
    assert uid >= 60_600
