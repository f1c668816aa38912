"""`roost files`: what is asked of the server, what is read and written here, and CIDs without a server."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from multipart import MultipartParser

from roost.cli import main
from tests.cli.terminal import FakeServer, run

CID = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"  # "hello world"
FILE = {
    "id": "01990000-0000-7000-8000-000000000001",
    "name": "hello.txt",
    "cid": CID,
    "size": 11,
    "mime_type": "text/plain",
    "group_id": None,
    "keyvalues": {},
    "created_at": "2026-01-02T03:04:05.000006Z",
}
OPEN = {"domain": "ada", "restrict": True}
ONE = f"/v3/files/private/{FILE['id']}"


def page(*files: dict[str, Any], token: str | None = None) -> tuple[int, Any]:
    return 200, {"data": {"files": list(files), "next_page_token": token}}


def parts(form: bytes) -> list[tuple[str | None, str | None, bytes]]:
    """Name, file name and content of each part."""
    boundary = form[2 : form.index(b"\r\n")].decode()
    return [
        (part.name, part.filename, part.raw)
        for part in MultipartParser(io.BytesIO(form), boundary, spool_limit=len(form))
    ]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "trip"
    (folder / "days" / "none").mkdir(parents=True)
    (folder / "b.txt").write_bytes(b"b")
    (folder / "days" / 'a "1".txt').write_bytes(b"a" * 300_000)
    return folder


def test_list_shows_files_of_the_storage_address(server: FakeServer) -> None:
    server.answers["GET /v3/files/private?limit=100"] = page(FILE)
    head, row = run("files", "list", **server.environment).stdout.splitlines()
    assert head.split()[:3] == ["ID", "NAME", "CID"]
    assert row.split()[1:4] == ["hello.txt", CID, "11"]
    assert server.requests[0][1]["Host"] == f"api.localhost:{server.server_port}"


def test_list_turns_pages_as_far_as_it_is_to(server: FakeServer) -> None:
    server.answers["GET /v3/files/public?name=h&group=null&limit=100"] = page(*[FILE] * 100, token="t 1")
    server.answers["GET /v3/files/public?name=h&group=null&limit=20&pageToken=t+1"] = page(*[FILE] * 20, token="t2")
    options = ("--public", "--name", "h", "--group", "null", "--limit", "120")
    assert len(json.loads(server.run("files", "list", *options, "-o", "json").stdout)) == 120
    assert len(server.requests) == 2


def test_show_by_id_and_by_cid(server: FakeServer) -> None:
    server.answers[f"GET {ONE}"] = (200, {"data": FILE})
    server.answers[f"GET /v3/files/private?cid={CID}&limit=1"] = page(FILE)
    assert f"cid         {CID}" in server.run("files", "show", FILE["id"]).stdout
    assert json.loads(server.run("files", "show", CID, "-o", "json").stdout) == FILE
    server.answers[f"GET /v3/files/private?cid={CID}&limit=1"] = page()
    for given in (CID, "nothing", FILE["id"].replace("1", "2")):
        missing = server.run("files", "show", given)
        assert (missing.exit_code, "roost files list" in missing.stderr, "--public" in missing.stderr) == (
            5,
            True,
            True,
        )


def test_upload_a_file(server: FakeServer, tmp_path: Path) -> None:
    server.answers["POST /v3/files"] = (200, {"data": FILE})
    path = tmp_path / "hello.txt"
    path.write_bytes(b"hello world")
    options = ("--public", "--group", "g", "--name", "greeting", "-k", "a=1", "-k", "b=x=y", "--profile", "v0")
    done = server.run("files", "upload", str(path), *options)
    assert (done.exit_code, f"cid         {CID}" in done.stdout) == (0, True)
    (form,) = server.bodies("POST /v3/files")
    *fields, file = parts(form)
    assert file == ("file", "hello.txt", b"hello world")
    assert {name: value.decode() for name, _, value in fields} == {
        "network": "public",
        "cid_version": "v0",
        "name": "greeting",
        "group_id": "g",
        "keyvalues": '{"a": "1", "b": "x=y"}',
    }


def test_upload_a_folder(server: FakeServer, tree: Path) -> None:
    server.answers["POST /v3/files"] = (200, {"data": FILE})
    assert server.run("files", "upload", str(tree)).exit_code == 0
    (form,) = server.bodies("POST /v3/files")
    sent = {filename: len(content) for name, filename, content in parts(form) if name == "file"}
    assert sent == {"trip/b.txt": 1, 'trip/days/a "1".txt': 300_000}


def test_links_and_devices_are_not_uploaded(server: FakeServer, tree: Path) -> None:
    (tree / "link").symlink_to(tree / "b.txt")
    refused = server.run("files", "upload", str(tree))
    assert (refused.exit_code, "links are not followed" in refused.stderr) == (2, True)
    assert server.run("files", "upload", str(tree / "days" / "none")).exit_code == 2
    assert server.run("files", "upload", str(tree / "missing")).exit_code == 2
    assert server.run("files", "upload", str(tree / "b.txt"), "-k", "novalue").exit_code == 2
    (tree / "a%22.txt").touch()
    assert server.run("files", "upload", str(tree / "a%22.txt")).exit_code == 2
    assert server.run("files", "upload", "").exit_code == 2
    assert server.run("files", "upload", "/dev/null").exit_code == 2
    assert server.requests == []


def test_a_profile_that_there_is_not(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["roost", "files", "cid", str(tree), "--profile", "v7"])
    with pytest.raises(SystemExit) as left:
        main.run_cli()
    assert left.value.code == 2
    assert "v1, unixfs-v1-2025, v0" in capsys.readouterr().err


def test_without_a_terminal_nothing_but_answers_is_printed(server: FakeServer, tree: Path, tmp_path: Path) -> None:
    server.answers["POST /v3/files"] = (200, {"data": FILE})
    assert server.run("files", "upload", str(tree)).stderr == ""
    assert run("files", "cid", str(tree)).stderr == ""


def test_update_changes_given_fields_only(server: FakeServer) -> None:
    server.answers[f"GET {ONE}"] = server.answers[f"PUT {ONE}"] = (200, {"data": FILE})
    assert server.run("files", "update", FILE["id"], "--name", "x", "-k", "a=").exit_code == 0
    assert server.bodies(f"PUT {ONE}") == [{"name": "x", "keyvalues": {"a": ""}}]
    assert server.run("files", "update", FILE["id"]).exit_code == 2


@pytest.mark.parametrize(("typed", "deleted"), [("y\n", True), ("n\n", False), ("", False)])
def test_delete_asks_first(server: FakeServer, typed: str, deleted: bool) -> None:
    server.answers[f"GET {ONE}"] = (200, {"data": FILE})
    server.answers[f"DELETE {ONE}"] = (200, {"data": None})
    assert (server.run("files", "delete", FILE["id"], input=typed).exit_code == 0) is deleted
    assert len(server.bodies(f"DELETE {ONE}")) == int(deleted)


@pytest.fixture
def served(server: FakeServer) -> FakeServer:
    """A server whose gateway is at `ada`, and has the file."""
    url = f"http://ada.gateways.localhost:{server.server_port}"
    server.answers["GET /v3/gateways?pageSize=100"] = (200, {"data": {"count": 1, "rows": [OPEN | {"url": url}]}})
    server.answers[f"GET {ONE}"] = (200, {"data": FILE})
    server.answers["POST /v3/files/private/download_link"] = (200, {"data": f"{url}/files/{CID}?X-Signature=s"})
    server.answers[f"GET /files/{CID}?X-Signature=s"] = (200, "hello world")
    return server


def test_get_a_private_file_by_a_link(served: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert served.run("files", "get", FILE["id"]).stdout == "Wrote hello.txt.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["hello.txt"]
    assert (tmp_path / "hello.txt").read_bytes() == b"hello world"
    _, headers, _ = served.requests[-1]
    assert headers["Host"] == f"ada.gateways.localhost:{served.server_port}"
    assert "Authorization" not in headers
    (asked,) = served.bodies("POST /v3/files/private/download_link")
    assert (asked["url"].endswith(f"/files/{CID}"), asked["method"]) == (True, "GET")
    assert served.run("files", "get", FILE["id"]).exit_code == 2
    assert served.run("files", "get", FILE["id"], "--to", "-").stdout == "hello world"


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "..", "", None, "a\x1bb"])
def test_a_file_is_written_here_whatever_it_is_called(
    served: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    served.answers[f"GET {ONE}"] = (200, {"data": {**FILE, "name": name}})
    assert served.run("files", "get", FILE["id"]).exit_code == 0
    (written,) = (tmp_path / "here").iterdir()
    assert written.name in {"evil", CID}
    assert list(tmp_path.iterdir()) == [tmp_path / "here"]


def test_get_a_public_file(served: FakeServer, tmp_path: Path) -> None:
    served.answers[f"GET /v3/files/public?cid={CID}&limit=1"] = page(FILE)
    served.answers[f"GET /ipfs/{CID}"] = (200, "hello world")
    assert served.run("files", "get", CID, "--public", "--to", str(tmp_path / "x")).exit_code == 0
    assert (tmp_path / "x").read_bytes() == b"hello world"


def test_get_leaves_nothing_when_it_fails(served: FakeServer, tmp_path: Path) -> None:
    served.answers[f"GET /files/{CID}?X-Signature=s"] = (404, "ERR_ID:00006")
    failed = served.run("files", "get", FILE["id"], "--to", str(tmp_path / "x"))
    assert (failed.exit_code, list(tmp_path.iterdir())) == (5, [])
    assert "ERR_ID:00006" in failed.stderr


@pytest.mark.parametrize("public", [False, True])
def test_a_folder_comes_as_a_tar(
    served: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    where = ONE.replace("private", "public") if public else ONE
    served.answers[f"GET {where}"] = (200, {"data": {**FILE, "name": "trip", "mime_type": "directory"}})
    served.answers[f"GET /ipfs/{CID}?format=tar"] = (200, "a tar")
    link = f"http://ada.gateways.localhost:{served.server_port}/files/{CID}?format=tar&X-Signature=s"
    served.answers["POST /v3/files/private/download_link"] = (200, {"data": link})
    served.answers[f"GET /files/{CID}?format=tar&X-Signature=s"] = (200, "a tar")
    got = served.run("files", "get", FILE["id"], *(["--public"] if public else []))
    assert got.stdout == "Wrote trip.tar.\n"
    assert (tmp_path / "trip.tar").read_text() == "a tar"
    asked = served.bodies("POST /v3/files/private/download_link")
    assert [one["url"].endswith(f"/files/{CID}?format=tar") for one in asked] == ([] if public else [True])


def test_a_gateway_that_asks_for_no_token_is_taken(served: FakeServer, tmp_path: Path) -> None:
    port = served.server_port
    shut = {"domain": "shut", "restrict": False, "url": f"http://shut.gateways.localhost:{port}"}
    rows = [shut, OPEN | {"url": f"http://ada.gateways.localhost:{port}"}]
    served.answers["GET /v3/gateways?pageSize=100"] = (200, {"data": {"count": 2, "rows": rows}})
    served.answers[f"GET /v3/files/public?cid={CID}&limit=1"] = page(FILE)
    served.answers[f"GET /ipfs/{CID}"] = (200, "hello world")
    assert served.run("files", "get", CID, "--public", "--to", str(tmp_path / "x")).exit_code == 0
    assert served.requests[-1][1]["Host"] == f"ada.gateways.localhost:{port}"


@pytest.mark.parametrize(
    ("profile", "cid"), [("v1", CID), ("unixfs-v1-2025", CID), ("v0", "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD")]
)
def test_cid_of_a_file(tmp_path: Path, profile: str, cid: str) -> None:
    path = tmp_path / "hello.txt"
    path.write_bytes(b"hello world")
    assert run("files", "cid", str(path), "--profile", profile).stdout == f"{cid}\n"


def test_usage_prints_limits_and_stored_bytes(server: FakeServer) -> None:
    told = {"max_size": 1024, "max_files": 3, "stored": 17, "max_stored": 2048}
    server.answers["GET /v3/files/limits"] = (200, {"data": told})
    done = run("files", "usage", "-o", "json", **server.environment)
    assert (done.exit_code, json.loads(done.stdout)) == (0, told)


def test_cid_of_a_folder_needs_no_server(tree: Path) -> None:
    told = json.loads(run("files", "cid", str(tree), "-o", "json").stdout)
    assert told["cid"].startswith("bafybei")
    assert (told["size"], told["number_of_files"], told["cid_version"]) == (300_001, 2, "v1")
