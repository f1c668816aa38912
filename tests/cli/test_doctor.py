"""What the doctor finds, part by part: what is fine, what is missing, and what stops agents from running."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from roost import app, config
from roost.app import doctor
from roost.cli.server import server as server_commands
from roost.drivers.git import scripts
from roost.drivers.runtime.contract import Capabilities, Enforcement
from roost.http.server.server import lock_data_folder
from roost.settings import Settings
from roost.storage.files.service import FileService
from tests.cli.terminal import FakeAnswer, FakeServer, run, run_on_terminal
from tests.conformance.kubo import run_kubo_node
from tests.platforms.tls import Authority
from tests.storage.storage_env import open_storage_env


def settings(folder: Path, **environment: str) -> Settings:
    return config.load_settings(
        {"ROOST_DATA": str(folder / "data"), "ROOST_ENGINES": str(folder / "engines"), **environment}
    )


def test_a_runtime_with_what_it_enforces_and_what_not() -> None:
    found = Capabilities(True, enforcement=[Enforcement("memory", True, "cgroup"), Enforcement("cpu", False, "none")])
    assert [(row["part"], row["status"], row["detail"]) for row in doctor._runtime("bwrap", found, is_other=False)] == [
        ("runtime bwrap", "ok", "containers start"),
        ("memory", "ok", "cgroup"),
        ("cpu", "no", "none"),
    ]


def test_a_runtime_that_starts_nothing() -> None:
    found = Capabilities(False, "user namespaces are off")
    (row,) = doctor._runtime("bwrap", found, is_other=False)
    assert (row["part"], row["status"], row["detail"]) == ("runtime bwrap", "fail", "user namespaces are off")
    (row,) = doctor._runtime("docker", found, is_other=True)  # the server starts without it
    assert (row["part"], row["status"]) == (row["part"], "no")


def test_a_model_service_with_an_unknown_certificate_is_explained(tmp_path: Path, server: FakeServer) -> None:
    server.socket = Authority("Company").server("localhost").wrap_socket(server.socket, server_side=True)
    (row,) = doctor._models(settings(tmp_path, ROOST_MODEL_URL=f"https://localhost:{server.server_port}/v1"))
    assert row["status"] == "no"
    assert "unable to get local issuer certificate. A certificate is not accepted." in row["detail"]
    assert "SSL_CERT_FILE" in row["detail"]


def test_addresses_without_names_lack_something(tmp_path: Path) -> None:
    (row,) = doctor._addresses(settings(tmp_path, ROOST_DOMAIN="192.0.2.7", ROOST_AGENT_PORTS="9000-9009"))
    assert (row["status"], row["detail"][:49]) == ("no", "agents have the ports 9000-9009 of 192.0.2.7: no ")
    assert not doctor._addresses(settings(tmp_path))


def test_the_free_space_counts_beside_what_agents_leave(tmp_path: Path) -> None:
    row = doctor._disk(settings(tmp_path, ROOST_DATA=str(tmp_path), ROOST_AGENT_DISK="3G"))
    assert row["status"] == "ok"
    assert "agents may use 3.0 GiB each" in row["detail"]
    full = settings(tmp_path, ROOST_DATA="/proc", ROOST_AGENT_DISK="none")  # has no space that counts
    assert (doctor._disk(full)["status"], "without a limit" in doctor._disk(full)["detail"]) == ("ok", True)


@pytest.mark.container
def test_git_runs_in_a_sandbox_or_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = doctor._git(settings(tmp_path))
    assert (row["part"], row["status"], row["detail"][:12]) == ("git", "ok", "git version ")
    scripts.find_git.cache_clear()
    monkeypatch.setattr(scripts, "_PROGRAMS_PATH", str(tmp_path))
    row = doctor._git(settings(tmp_path))
    assert (row["status"], row["detail"]) == ("no", "git is missing: install the package git")


def test_without_an_engine_no_agent_runs(tmp_path: Path) -> None:
    *engines, all_of_them = doctor._engines(settings(tmp_path))
    assert {row["status"] for row in engines} == {"no"}
    assert "roost engines install openclaw` (1.0 GiB of disk" in engines[0]["detail"]
    assert all_of_them["status"] == "fail"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("", "ok"),
        ("postgresql://nobody:very-secret@127.0.0.1:1/none", "fail"),
        ("nonsense", "fail"),
        ("sqlite:////proc/nowhere/roost.db", "fail"),
    ],
)
def test_a_database_that_cannot_be_opened_is_told_in_one_line(tmp_path: Path, url: str, status: str) -> None:
    row = doctor._database(settings(tmp_path, ROOST_DATABASE_URL=url))
    assert row["status"] == status
    assert row["detail"]
    assert "\n" not in row["detail"]
    assert "very-secret" not in row["detail"]


def test_a_database_that_is_open_is_used_and_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = app.open_database(settings(tmp_path))
    monkeypatch.setattr(doctor, "open_database", None)  # calling it would fail
    assert doctor._database(settings(tmp_path), db) == doctor._database(settings(tmp_path), db)
    assert doctor._database(settings(tmp_path), db)["status"] == "ok"
    assert [row["part"] for row in doctor._content(settings(tmp_path), db)] == ["content", "vectors"]
    db.close()
    assert doctor._database(settings(tmp_path), db)["status"] == "fail"


def test_where_the_bytes_of_files_are_kept(tmp_path: Path) -> None:
    assert doctor._blobs(settings(tmp_path))["status"] == "ok"
    for env in ("/proc/nowhere", "s3://"):
        row = doctor._blobs(settings(tmp_path, ROOST_BLOBS=env))
        assert row["status"] == "fail"
        assert row["detail"]
        assert "\n" not in row["detail"]


def test_how_much_is_stored_and_how_much_of_it_is_nobody_s(tmp_path: Path) -> None:
    empty, search = doctor._content(settings(tmp_path))
    assert (empty["part"], empty["status"]) == ("content", "ok")
    assert list(search.values()) == ["vectors", "ok", "vectors are compared with NumPy"]
    db = app.open_database(settings(tmp_path))
    env = open_storage_env(db, tmp_path / "data")

    async def fill() -> None:
        file = await env.file(bytes(3 * 1024**2))
        await env.file(bytes(1024**2))
        await FileService(db).delete(file.tenant_id, file.network, file.id)

    asyncio.run(fill())
    db.close()
    row, _ = doctor._content(settings(tmp_path))
    assert row["detail"] == "4.0 MiB stored, of which 3.0 MiB are deleted and freed within a day"
    assert doctor._content(settings(tmp_path, ROOST_DATABASE_URL="nonsense")) == ()


def test_models_without_their_key(tmp_path: Path) -> None:
    (stand_in,) = doctor._models(settings(tmp_path))
    assert "stand-in" in stand_in["detail"]


@pytest.mark.parametrize(
    ("answer", "models", "status", "detail"),
    [
        ((200, {"data": [{"id": "big"}, {"id": "small"}]}), "", "ok", ", 2 models"),
        ((200, {"data": [{"id": "big"}]}), "big,other", "no", " does not list other"),
        ((404, {"error": {"message": "no such path"}}), "big", "ok", " answers, but does not list its models"),
        ((401, {"error": {"message": "bad key"}}), "big", "no", ": "),
        ((500, "broken"), "", "no", ": "),
    ],
)
def test_the_model_service_is_asked(
    tmp_path: Path, server: FakeServer, answer: FakeAnswer, models: str, status: str, detail: str
) -> None:
    server.answers["GET /v1/models"] = answer
    env = {"ROOST_MODEL_URL": f"{server.url}/v1", "ROOST_MODEL_KEY": "sk-very-secret", "ROOST_MODELS": models}
    (row,) = doctor._models(settings(tmp_path, **env))
    assert row["status"] == status
    assert row["detail"].startswith(f"openai at {server.url}/v1{detail}")
    assert "sk-very" not in row["detail"]
    assert server.requests[0][1]["Authorization"] == "Bearer sk-very-secret"


def test_a_model_service_that_is_away(tmp_path: Path) -> None:
    (row,) = doctor._models(settings(tmp_path, ROOST_MODEL_URL="http://127.0.0.1:1/v1", ROOST_MODELS="big"))
    assert row["status"] == "no"


@pytest.mark.container
def test_a_machine_is_checked_before_its_first_start_and_no_folder_is_made(tmp_path: Path) -> None:
    ended = run("doctor", "-o", "json", ROOST_DATA=str(tmp_path / "d"), ROOST_ENGINES=str(tmp_path / "e"))
    rows = json.loads(ended.stdout)
    assert (rows[0]["part"], rows[0]["status"]) == ("data folder", "no")
    assert {"part": "runtime bwrap", "status": "ok", "detail": "containers start"} in rows
    assert not (tmp_path / "d").exists()


@pytest.mark.container
def test_the_doctor_ends_with_what_it_found(tmp_path: Path) -> None:
    ended = run(
        "doctor", ROOST_DATA=str(tmp_path / "d"), ROOST_ENGINES=str(tmp_path / "e"), ROOST_DATABASE_URL="nonsense"
    )
    assert ended.exit_code == 1
    assert "fail" in ended.stdout
    assert len({line[:4].strip() for line in ended.stdout.splitlines()} - {"ok", "no", "fail"}) == 0


def test_rows_stand_in_columns_on_a_narrow_terminal() -> None:
    code = "from roost.cli.output.output import print_field; print_field('ok', 'part  ' + 'detail ' * 30, 4, 'green')"
    assert all(len(line) < 120 for line in run_on_terminal(code).splitlines())


async def test_the_public_network(tmp_path: Path) -> None:
    async def network(**environment: str) -> tuple[str, str]:
        row = await asyncio.to_thread(doctor._network, settings(tmp_path, **environment))
        return row["status"], row["detail"]

    assert await network() == ("ok", "none; pins by CID find only content of this server")
    assert await network(ROOST_NETWORK="trustless") == ("ok", "gateways: https://trustless-gateway.link")
    async with run_kubo_node(tmp_path / "node", "bearer:secret") as node:
        ours = {"ROOST_NETWORK": "kubo", "ROOST_KUBO_API": node.url}
        found = await network(**ours, ROOST_KUBO_AUTH="bearer:secret")
        assert found == ("ok", f"kubo 0.22.0 at {node.url}")
        status, detail = await network(**ours)
        assert (status, "403" in detail) == ("no", True)
    assert (await network(**ours))[0] == "no"


def test_tls_and_what_it_lacks(tmp_path: Path) -> None:
    own = {"ROOST_TLS": "true", "ROOST_DOMAIN": "example.com", "ROOST_TLS_PORT": "0", "ROOST_TLS_HTTP_PORT": "0"}
    (tmp_path / "data").mkdir()
    assert "roost up --tls" in doctor._tls(settings(tmp_path))["detail"]
    assert "proxy-config" in doctor._tls(settings(tmp_path, ROOST_PUBLIC_SCHEME="https"))["detail"]
    assert doctor._tls(settings(tmp_path, **own))["detail"].startswith("Caddy v")
    missing = doctor._tls(settings(tmp_path, **own, ROOST_CADDY=str(tmp_path / "caddy")))
    assert (missing["status"], "cannot be run" in missing["detail"]) == ("no", True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        row = doctor._tls(settings(tmp_path, **own | {"ROOST_TLS_PORT": port, "ROOST_TLS_HOST": "127.0.0.1"}))
    assert (row["status"], f"port {port}: Address already in use" in row["detail"]) == ("no", True)


def test_a_running_server_with_the_flag_has_tls(tmp_path: Path) -> None:
    """The flags of `roost up` are not in the settings that the doctor reads, but in what the server wrote."""
    environment = {"ROOST_DATA": str(tmp_path), "ROOST_TLS_PORT": "0", "ROOST_TLS_HTTP_PORT": "0"}
    app.open_database(settings(tmp_path, **environment)).close()
    (tmp_path / "cli.json").write_text('{"url": "", "token": "", "domain": "example.com", "tls": true}')
    loaded = settings(tmp_path, **environment)
    assert not server_commands._add_flags_of_server(loaded).tls
    with lock_data_folder(tmp_path):
        running = server_commands._add_flags_of_server(loaded)
        assert (running.tls, running.domain, running.public_scheme) == (True, "example.com", "https")
        (tmp_path / "cli.json").write_text('{"url": ""')
        assert server_commands._add_flags_of_server(loaded) is loaded
