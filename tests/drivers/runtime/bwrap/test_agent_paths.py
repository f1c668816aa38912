import os
import stat
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.agent_paths import AgentPaths, claim_start, is_start_claimed
from roost.drivers.runtime.contract import RuntimeFailed
from tests.conformance.containers import AS_ROOT

root = pytest.mark.skipif(not AS_ROOT, reason="only root can give each agent its own user")


@pytest.fixture
def paths(tmp_path: Path) -> AgentPaths:
    return AgentPaths(tmp_path / "data", tmp_path / "claims")


def uid_of(paths: AgentPaths, agent_id: str) -> int:
    uid = paths.prepare(agent_id)
    assert uid is not None
    return uid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_created_and_kept(paths: AgentPaths) -> None:
    paths.prepare("one")
    (paths.workspace("one") / "file").write_text("kept")
    paths.home("one").chmod(0o750)
    paths.prepare("one")
    assert (paths.workspace("one") / "file").read_text() == "kept"
    assert mode(paths.home("one")) == 0o750
    assert paths.list_agents() == ["one"]


def test_other_users_cannot_list_the_folders(paths: AgentPaths) -> None:
    paths.prepare("one")
    assert mode(paths.folder) == 0o700
    for folder in (paths.workspace("one").parent, paths.run("one"), paths.relays("one")):
        assert mode(folder) == 0o711
    assert mode(paths.workspace("one")) == mode(paths.home("one")) == 0o700


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/a", "a\0b", "-x", ".x", "x" * 65, "ä"])
def test_invalid_names_are_refused(paths: AgentPaths, name: str) -> None:
    with pytest.raises(RuntimeFailed):
        paths.prepare(name)
    with pytest.raises(RuntimeFailed):
        paths.relay("one", name)


def test_a_mark_belongs_to_a_folder(tmp_path: Path) -> None:
    mark = AgentPaths(tmp_path / "a").mark
    assert mark == AgentPaths(tmp_path / "a").mark != AgentPaths(tmp_path / "b").mark
    (tmp_path / "a").rename(tmp_path / "moved")
    assert mark == AgentPaths(tmp_path / "moved").mark != AgentPaths(tmp_path / "a").mark


def test_an_empty_folder_has_no_agents(paths: AgentPaths) -> None:
    assert paths.list_agents() == paths.list_stored() == []
    paths.prepare("one")
    assert paths.list_agents() == paths.list_stored() == ["one"]
    paths.remove("one")


def test_remove_deletes_all_files(paths: AgentPaths) -> None:
    paths.prepare("one")
    paths.prepare("two")
    paths.remove("one")
    paths.remove("one")
    assert paths.list_agents() == ["two"]
    assert [folder.name for folder in (paths.folder / "agents").iterdir()] == ["two"]


@pytest.mark.skipif(AS_ROOT, reason="root gives each agent its own user")
def test_without_root_folders_have_our_uid(paths: AgentPaths) -> None:
    assert paths.prepare("one") is None
    assert paths.workspace("one").stat().st_uid == os.geteuid()


@root
def test_each_agent_has_a_uid_that_stays(paths: AgentPaths) -> None:
    one, two = uid_of(paths, "one"), uid_of(paths, "two")
    assert one != two
    assert uid_of(paths, "one") == one
    assert paths.workspace("one").stat().st_uid == paths.home("one").stat().st_uid == one
    assert paths.workspace("one").parent.stat().st_uid == os.geteuid()


@root
def test_two_servers_never_use_the_same_uid(tmp_path: Path) -> None:
    here, there = (AgentPaths(tmp_path / name, tmp_path / "claims") for name in ("here", "there"))
    assert uid_of(here, "one") != uid_of(there, "one")


@root
def test_a_uid_is_reused_only_after_its_folders_are_gone(paths: AgentPaths) -> None:
    one = uid_of(paths, "one")
    assert uid_of(paths, "two") != one
    paths.remove("one")
    assert uid_of(paths, "three") == one


@root
def test_a_claim_of_a_missing_workspace_expires(tmp_path: Path) -> None:
    gone = AgentPaths(tmp_path / "gone", tmp_path / "claims")
    uid = uid_of(gone, "one")
    gone.folder.rename(tmp_path / "elsewhere")
    assert uid_of(AgentPaths(tmp_path / "data", tmp_path / "claims"), "one") == uid


@root
def test_a_copy_of_the_data_gets_uids_of_its_own(paths: AgentPaths, tmp_path: Path) -> None:
    uid = uid_of(paths, "one")
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
def test_folders_of_an_ordinary_user_are_given_to_the_agent(paths: AgentPaths) -> None:
    paths.prepare("one")
    for folder in (paths.home("one"), paths.workspace("one")):
        os.chown(folder, 1234, 1234)
    uid = uid_of(paths, "one")
    assert {paths.home("one").stat().st_uid, paths.workspace("one").stat().st_uid} == {uid}
    assert uid >= 60_600


@pytest.mark.parametrize("name", ["", "..", "../one", "a/b", "a\0b", "x" * 65, "unknown"])
def test_names_of_hostile_command_lines_claim_no_start(paths: AgentPaths, name: str) -> None:
    paths.prepare("one")
    assert not is_start_claimed(paths, name)
    with claim_start(paths, "one"):
        assert is_start_claimed(paths, "one")
        assert not is_start_claimed(paths, name)
    assert not is_start_claimed(paths, "one")
