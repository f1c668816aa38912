"""What is uploaded out of a folder, and the form that carries it, as a server reads it."""

import os
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest
import typer
from multipart import MultipartParser, parse_options_header

from roost.cli.output.output import ExitCode
from roost.cli.storage import local_files
from roost.cli.storage.local_files import LocalFile, MultipartForm, find_files, import_files
from roost.storage.content.unixfs.dagpb import UnixfsKind, decode_node
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES, ImportProfile


def refused(capsys: pytest.CaptureFixture[str], code: ExitCode, act: Callable[[], object]) -> str:
    with pytest.raises(typer.Exit) as left:
        act()
    assert left.value.exit_code == code
    return capsys.readouterr().err


def read(made: MultipartForm) -> tuple[dict[str, str], dict[str, bytes]]:
    """The fields and the files, as another reader of forms finds them."""
    body = b"".join(made)
    assert made.headers["Content-Length"] == str(len(body))
    _, options = parse_options_header(made.headers["Content-Type"])
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for part in MultipartParser(BytesIO(body), options["boundary"]):
        given = part.raw
        part.close()
        if part.filename:
            files[part.filename] = given
        else:
            assert part.name is not None
            fields[part.name] = given.decode()
    return fields, files


def folder(place: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


FILES = {"a.txt": b"a", "in/b.bin": bytes(range(256)) * 9000, "in/deep/c": b"", "\u00fc \u6f22;=.txt": b"\r\n--x\r\n"}


def test_a_file_is_itself(tmp_path: Path) -> None:
    path = folder(tmp_path, FILES) / "a.txt"
    assert local_files.find_files(path) == [LocalFile(path, "a.txt", 1)]


def test_a_folder_is_all_files_below_it(tmp_path: Path) -> None:
    found = local_files.find_files(folder(tmp_path / "top", FILES))
    assert {one.name: one.size for one in found} == {f"top/{name}": len(data) for name, data in FILES.items()}
    assert [one.name for one in found] == sorted(one.name for one in found)


def test_the_present_folder_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(tmp_path / "top", {"in/a": b""}) / "in")
    assert [one.name for one in local_files.find_files(Path())] == ["in/a"]
    assert [one.name for one in local_files.find_files(Path(".."))] == ["top/in/a"]


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (folder(tmp_path, {"a.txt": b"a"}) / "link").symlink_to("a.txt")
    (found,) = local_files.find_files(tmp_path / "link")
    assert (found.name, found.size) == ("a.txt", 1)


@pytest.mark.parametrize(("name", "reason"), [("missing", "does not exist"), ("empty", "contains no files")])
def test_nothing_to_upload(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str) -> None:
    (tmp_path / "empty" / "in").mkdir(parents=True)
    assert reason in refused(capsys, ExitCode.USAGE, lambda: local_files.find_files(tmp_path / name))


def test_special_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "one", {"a": b""})
    (tmp_path / "one" / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder(tmp_path / "two", {"a": b""}) / "pipe")
    for name in ("one", "two"):
        told = refused(capsys, ExitCode.USAGE, lambda name=name: local_files.find_files(tmp_path / name))
        assert "neither a file nor a folder" in told


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "tab\t"])
def test_names_that_no_server_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder(tmp_path / "top", {"a": b"", name: b""})
    told = refused(capsys, ExitCode.USAGE, lambda: local_files.find_files(tmp_path / "top"))
    assert "Invalid file name" in told
    assert str(tmp_path / "top") in told


def test_folders_that_are_too_deep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "top", {"/".join("d" * 31): b""})
    assert "at most 32" in refused(capsys, ExitCode.USAGE, lambda: local_files.find_files(tmp_path))
    assert local_files.find_files(tmp_path / "top")


def test_a_pipe_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "neither a file nor a folder" in refused(
        capsys, ExitCode.USAGE, lambda: local_files.find_files(tmp_path / "pipe")
    )


def test_the_form_carries_everything(tmp_path: Path) -> None:
    files = local_files.find_files(folder(tmp_path / "top", FILES))
    fields = {"network": "public", "keyvalues": '{"a":"\u00fc"}', "name": "n"}
    assert read(MultipartForm(fields, files)) == (fields, {f"top/{name}": data for name, data in FILES.items()})
    assert read(MultipartForm({}, files[:1]))[0] == {}


def test_every_form_has_a_boundary_of_its_own() -> None:
    assert len({MultipartForm({}, []).headers["Content-Type"] for _ in range(50)}) == 50


def test_a_form_is_read_more_than_once(tmp_path: Path) -> None:
    made = MultipartForm({"a": "b"}, local_files.find_files(folder(tmp_path, FILES)))
    assert b"".join(made) == b"".join(made)


@pytest.mark.parametrize("name", ["a%22b", "a%0Ab", "a%0Db"])
def test_names_that_a_form_cannot_carry(capsys: pytest.CaptureFixture[str], name: str) -> None:
    made = MultipartForm({}, [LocalFile(Path("/nowhere"), name, 0)])
    assert "cannot carry this name" in refused(capsys, ExitCode.USAGE, lambda: made.headers)


def test_a_name_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As old disks have them: bytes that are no UTF-8."""
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_bytes(b"a")
    for given in (path, tmp_path):
        assert "the name is not UTF-8 text" in refused(
            capsys, ExitCode.USAGE, lambda given=given: local_files.find_files(given)
        )


@pytest.mark.parametrize("name", ['say "hi".txt', "a\nb", "a\rb", "tab\t", "a;b=c"])
def test_names_that_need_care(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"a")
    body = b"".join(MultipartForm({}, [LocalFile(tmp_path / "file", name, 1)]))
    head = body.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert len(head) == 2
    assert head[1].count(b'"') == 4


def test_a_file_that_became_shorter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    told = refused(capsys, ExitCode.FAILED, lambda: list(local_files.read_content(LocalFile(tmp_path / "a", "a", 4))))
    assert "became shorter" in told


def test_a_file_that_became_longer_is_sent_as_it_was_found(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcdef")
    assert b"".join(local_files.read_content(LocalFile(tmp_path / "a", "a", 3))) == b"abc"


def test_a_file_that_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, ExitCode.USAGE, lambda: list(local_files.read_content(LocalFile(tmp_path / "a", "a", 3))))
    assert "No such file" in told


def test_notes_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert local_files.parse_keyvalues(["a=1", "b=", "c=d=e", "=f"]) == {"a": "1", "b": "", "c": "d=e", "": "f"}
    assert local_files.parse_keyvalues([]) == {}
    assert "NAME=VALUE" in refused(capsys, ExitCode.USAGE, lambda: local_files.parse_keyvalues(["a=1", "b"]))


def test_fields_that_have_a_value() -> None:
    given = {"a": "x", "b": "", "c": None, "d": {"k": "v"}, "e": {}}
    assert local_files.form_fields(given) == {"a": "x", "d": '{"k": "v"}'}


EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
BIG = bytes(range(256)) * 5000


def imported(profile: ImportProfile, data: bytes) -> DagTree:
    importer = UnixfsImporter(profile)
    importer.update(data)
    return importer.finish()


def entry(name: str, tree: DagTree) -> DirectoryEntry:
    return DirectoryEntry(name, tree.cid, tree.size, tree.tsize)


@EVERY_PROFILE
@pytest.mark.parametrize("data", [b"", b"hello", BIG], ids=["empty", "small", "big"])
def test_cid_of_a_file_is_that_of_an_import(tmp_path: Path, profile: ImportProfile, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    read: list[int] = []
    assert import_files(find_files(tmp_path / "a"), profile, read.append) == imported(profile, data)
    assert sum(read) == len(data)


@EVERY_PROFILE
def test_cid_of_a_folder_is_that_of_an_import(tmp_path: Path, profile: ImportProfile) -> None:
    (tmp_path / "top" / "in").mkdir(parents=True)
    for name, data in (("a", b"a"), ("in/b", BIG), ("in/\u00fc", b"")):
        (tmp_path / "top" / name).write_bytes(data)
    inner = build_folder(profile, [entry("b", imported(profile, BIG)), entry("\u00fc", imported(profile, b""))])
    outer = build_folder(profile, [entry("a", imported(profile, b"a")), entry("in", inner)])
    found = import_files(find_files(tmp_path / "top"), profile, lambda _: None)
    assert (found.cid, found.size, found.tsize) == (outer.cid, outer.size, outer.tsize)


def test_a_folder_without_files_in_it_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "top" / "empty").mkdir(parents=True)
    (tmp_path / "top" / "a").write_bytes(b"a")
    found = import_files(find_files(tmp_path / "top"), PROFILES["v1"], lambda _: None)
    assert [link.name for link in decode_node(found.nodes[-1].data).links] == ["a"]


def test_a_large_folder_is_sharded(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    for number in range(1500):
        (tmp_path / "top" / f"{number:05}{'n' * 150}").touch()
    found = import_files(find_files(tmp_path / "top"), PROFILES["v1"], lambda _: None)
    assert decode_node(found.nodes[-1].data).unixfs.kind is UnixfsKind.SHARD
