"""`roost keys`: beside a server or without one, straight on the database."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import jwt
import pytest

from roost.identity.model import SCOPES
from tests.architecture.code import ROOT
from tests.cli.terminal import FakeServer, run


def keys(folder: Path, *arguments: str):
    (folder / "data").mkdir(exist_ok=True)
    return run("keys", *arguments, "--data", str(folder / "data"))


def listed(folder: Path, *arguments: str) -> list[dict]:
    return json.loads(keys(folder, "list", "-o", "json", *arguments).stdout)


def test_a_key_is_alone_on_standard_output_and_listed_without_its_token(tmp_path: Path) -> None:
    made = keys(tmp_path, "create", "--name", "ci", "--scope", "org:agents:read", "--days", "2")
    assert (made.exit_code, made.stderr) == (0, "")
    token = made.stdout.removesuffix("\n")
    claims = jwt.decode(token, options={"verify_signature": False})
    (key,) = listed(tmp_path)
    assert claims["jti"] == key["id"]
    assert (key["name"], key["scopes"], key["revoked"]) == ("ci", ["org:agents:read"], False)
    lifetime = datetime.fromisoformat(key["expiresAt"]) - datetime.fromisoformat(key["createdAt"])
    assert lifetime == timedelta(days=2)
    table = keys(tmp_path, "list").stdout
    assert key["id"] in table
    assert token not in table


@pytest.mark.parametrize(
    "command",
    [
        *(["keys", "create"], ["keys", "list"], ["keys", "revoke", "x", "--yes"]),
        *(["secrets", "rotate-key"], ["scrub"], ["hosts", "list"], ["hosts", "remove", "x"]),
    ],
)
@pytest.mark.parametrize("database", ["", "postgresql://nobody@127.0.0.1:1/none"])
def test_no_other_folder_becomes_a_data_folder(tmp_path: Path, command: list[str], database: str) -> None:
    typo = tmp_path / "typo"
    for named in ({"ROOST_DATA": str(typo)}, {}):
        given = [] if named else ["--data", str(typo)]
        refused = run(*command, *given, ROOST_DATABASE_URL=database, **named)
        assert (refused.exit_code, "is no data folder of Roost" in refused.stderr) == (2, True)
        assert not typo.exists()


def test_a_folder_with_other_content_becomes_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    refused = run("keys", "create", "--data", str(tmp_path))
    assert (refused.exit_code, "is no data folder of Roost" in refused.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_key_is_created_in_an_empty_folder_before_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text("port = 8000")
    assert run("keys", "create", "--data", str(tmp_path)).exit_code == 0
    assert (tmp_path / "roost.db").exists()


def test_a_key_for_no_server_in_particular_is_not_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("keys", "create")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        *(["secrets", "rotate-key"], ["scrub"], ["doctor"], ["hosts", "list"]),
        *(["engines", "list"], ["engines", "install"], ["engines", "remove", "openclaw@1"]),
    ],
)
def test_a_server_elsewhere_is_not_mistaken_for_the_folder_here(command: list[str]) -> None:
    refused = run(*command, ROOST_URL="https://roost.example", ROOST_TOKEN="key")
    assert (refused.exit_code, "ROOST_URL" in refused.stderr) == (2, True)


def test_keys_of_a_server_elsewhere(server: FakeServer) -> None:
    fields = {"uses": 0, "max_uses": None, "revoked": False}
    rows = [
        {"id": f"k{n}", "name": "ci", "scopes": {"admin": False, "resources": ["org:read"]}, **fields} for n in "12"
    ]
    server.answers |= {
        "POST /v3/pinata/keys": (200, {"JWT": "a.b.c", "pinata_api_key": "h", "pinata_api_secret": "s"}),
        "GET /v3/pinata/keys?offset=0": (200, {"keys": rows[:1], "count": 2}),
        "GET /v3/pinata/keys?offset=1": (200, {"keys": rows[1:], "count": 2}),
        "POST /v0/keys/k1/revoke": (200, {"agents": [{"agentId": "a1", "agentName": "Ada"}] * 2}),
        "POST /v0/keys/k2/revoke": (200, {"agents": []}),
    }
    assert server.run("keys", "create", "--name", "ci", "--scope", "org:read").stdout == "a.b.c\n"
    assert server.run("keys", "create").exit_code == 0
    limited, admin = server.bodies("POST /v3/pinata/keys")
    assert limited == {"keyName": "ci", "permissions": {"resources": ["org:read"]}}
    assert admin == {"keyName": "key", "permissions": {"admin": True}}
    listed_there = json.loads(server.run("keys", "list", "-o", "json").stdout)
    assert [(key["id"], key["scopes"]) for key in listed_there] == [("k1", ["org:read"]), ("k2", ["org:read"])]
    told = server.run("keys", "revoke", "k1", "--yes").stdout
    assert told.startswith("Revoked.\nThe gateway tokens that its holder has read still work; ")
    assert told.endswith("; replace them with --rotate-tokens: Ada (a1).\n")
    assert "were replaced: Ada (a1).\n" in server.run("keys", "revoke", "k1", "--rotate-tokens", "--yes").stdout
    assert server.run("keys", "revoke", "k2", "--yes").stdout == "Revoked.\n"
    assert server.bodies("POST /v0/keys/k1/revoke") == [{"rotateTokens": False}, {"rotateTokens": True}]
    assert server.run("keys", "revoke", "k", "--yes").exit_code == 2
    several = server.run("keys", "revoke", "ci", "--yes")
    assert (several.exit_code, "use the id (k1, k2)" in several.stderr) == (2, True)
    missing = server.run("keys", "revoke", "k9", "--yes")
    assert (missing.exit_code, "There is no key 'k9'" in missing.stderr) == (5, True)


@pytest.mark.parametrize("option", ["--tenant", "--plan"])
def test_plan_and_data_options_need_the_servers_machine(server: FakeServer, option: str) -> None:
    refused = server.run("keys", "create", option, "paid")
    assert (refused.exit_code, option in refused.stderr, server.requests) == (2, True, [])


def test_tenants_have_their_own(tmp_path: Path) -> None:
    keys(tmp_path, "create", "--tenant", "one", "--plan", "paid")
    keys(tmp_path, "create", "--tenant", "two")
    assert len(listed(tmp_path, "--tenant", "one")) == 1
    assert listed(tmp_path) == []
    assert listed(tmp_path, "--tenant", "unknown") == []


def test_a_revoked_key_stays_revoked(tmp_path: Path) -> None:
    """Revoking it again is no error, because that replaces the tokens that its holder has."""
    keys(tmp_path, "create")
    (key,) = listed(tmp_path)
    for more in ((), ("--rotate-tokens",)):
        assert keys(tmp_path, "revoke", key["id"], "--yes", *more).stdout == "Revoked.\n"
        assert listed(tmp_path)[0]["revoked"] is True
    unknown = keys(tmp_path, "revoke", "x", "--yes")
    assert (unknown.exit_code, "There is no key 'x'" in unknown.stderr) == (5, True)


def test_a_key_is_revoked_by_its_name_or_its_first_characters(tmp_path: Path) -> None:
    for name in ("laptop", "laptop-old"):
        keys(tmp_path, "create", "--name", name, "--tenant", "one")
    assert keys(tmp_path, "revoke", "laptop", "--yes").exit_code == 5
    assert keys(tmp_path, "revoke", "lap", "--tenant", "one", "--yes").exit_code == 2
    assert keys(tmp_path, "revoke", "laptop", "--tenant", "one", "--yes").stdout == "Revoked.\n"
    assert keys(tmp_path, "revoke", "", "--tenant", "one", "--yes").exit_code == 5  # of an empty variable
    assert keys(tmp_path, "revoke", "lap", "--tenant", "one", "--yes").stdout == "Revoked.\n"
    assert [key["revoked"] for key in listed(tmp_path, "--tenant", "one")] == [True, True]


def test_scopes_are_listed_where_one_types_them(tmp_path: Path) -> None:
    wrong = keys(tmp_path, "create", "--scope", "org:agent:read")
    assert wrong.exit_code
    assert "did you mean org:agents:read" in str(wrong.exception)
    told = " ".join(keys(tmp_path, "create", "--help").stdout.replace("\u2502", " ").split())
    table = (ROOT / "docs" / "reference" / "api.md").read_text()
    for scope, meaning in SCOPES.items():
        assert scope in told
        assert f"| `{scope}` | {meaning} |" in table


def test_the_key_of_the_deployment_is_private(tmp_path: Path) -> None:
    keys(tmp_path, "create")
    assert (tmp_path / "data" / "keys" / "kek").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("wrong", [["--plan", "golden"], ["--days", "0"], ["--days", "3651"]])
def test_wrong_usage_creates_no_files(tmp_path: Path, wrong: list[str]) -> None:
    assert keys(tmp_path, "create", *wrong).exit_code == 2
    assert not list((tmp_path / "data").iterdir())
