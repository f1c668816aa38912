"""`roost gateways`: what is asked of the server, and what is shown of its answer."""

import json
from datetime import UTC, datetime

import pytest

from roost.core import clock
from tests.cli.terminal import FakeServer

GATEWAY = {
    "id": "g1",
    "domain": "ada",
    "url": "http://ada.gateways.localhost",
    "restrict": False,
    "created_at": "2026-01-02T03:04:05.000006Z",
    "settings": {
        "restriction_policies": {
            "accessTokens": [],
            "allowedHosts": [],
            "allowedIPAddresses": [{"id": "c1", "value": "10.0.0.0/8"}],
        }
    },
}
CONTROL = (200, {"data": {"id": "c2", "value": "x"}})
DAY = {"period_start_time": "2026-03-04", "requests": 2, "bandwidth": 10}
DONE = (200, {"data": None})


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v3/gateways?pageSize=100"] = (200, {"data": {"count": 1, "rows": [GATEWAY]}})
    server.answers["GET /v3/gateways/plugins/g1"] = (200, {"data": [{"gateway_id": "g1", "plugin_id": 2}]})
    return server


def test_list_and_show(ada: FakeServer) -> None:
    assert ada.run("gateways", "list").stdout.splitlines()[1].split()[0] == "ada"
    shown = ada.run("gateways", "show", "ada").stdout
    assert "ips         10.0.0.0/8" in shown
    assert json.loads(ada.run("gateways", "show", "g1", "-o", "json").stdout) == {**GATEWAY, "plugins": [2]}
    assert ada.run("gateways", "show", "bob").exit_code == 5


def test_create_and_delete(ada: FakeServer) -> None:
    ada.answers["POST /v3/gateways"] = (200, {"data": GATEWAY})
    ada.answers["DELETE /v3/gateways/g1"] = DONE
    assert ada.run("gateways", "create", "ada").exit_code == 0
    assert ada.bodies("POST /v3/gateways") == [{"domain": "ada"}]
    assert ada.run("gateways", "delete", "ada", input="n\n").exit_code == 1
    assert ada.bodies("DELETE /v3/gateways/g1") == []
    assert ada.run("gateways", "delete", "ada", "-y").stdout == "Deleted.\n"


@pytest.mark.parametrize(
    ("typed", "kind", "body"),
    [
        (("--ip", "10.0.0.0/8"), "ips", {"ip": "10.0.0.0/8"}),
        (("--host", "example.org"), "hosts", {"host": "example.org"}),
        (("--token",), "access_tokens", None),
    ],
)
def test_allow_adds_an_access_control(ada: FakeServer, typed: tuple[str, ...], kind: str, body: object) -> None:
    ada.answers[f"POST /v3/gateways/g1/{kind}"] = CONTROL
    assert "value  x" in ada.run("gateways", "allow", "ada", *typed).stdout
    assert ada.bodies(f"POST /v3/gateways/g1/{kind}") == [body]


@pytest.mark.parametrize("typed", [(), ("--token", "--ip", "::1")])
def test_allow_takes_one(ada: FakeServer, typed: tuple[str, ...]) -> None:
    assert ada.run("gateways", "allow", "ada", *typed).exit_code == 2


def test_refuse_removes_an_access_control(ada: FakeServer) -> None:
    ada.answers["DELETE /v3/gateways/g1/ips/c1"] = DONE
    assert ada.run("gateways", "refuse", "ada", "c1", "-y").stdout == "Removed.\n"
    assert ada.run("gateways", "refuse", "ada", "10.0.0.0/8", "-y").stdout == "Removed.\n"
    assert ada.run("gateways", "refuse", "ada", "c9").exit_code == 5


def test_analytics_cover_the_last_week(ada: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "utc_now", lambda: datetime(2026, 3, 4, tzinfo=UTC))
    span = "start_date=2026-02-26&end_date=2026-03-04&limit=1000&gateway_domain=ada"
    series = {"total_requests": 2, "total_bandwidth": 10, "time_periods": [DAY]}
    ada.answers[f"GET /v3/analytics/gateways/time_series?by=day&{span}"] = (200, {"data": series})
    shown = ada.run("gateways", "analytics", "ada", "--days", "7").stdout.splitlines()
    assert [line.split() for line in shown] == [
        ["PERIOD", "START", "TIME", "REQUESTS", "BANDWIDTH"],
        ["2026-03-04", "2", "10"],
    ]
    told = ada.run("gateways", "analytics", "g1", "--days", "7", "-o", "json").stdout
    assert json.loads(told) == [DAY]
    hostile = {"value": "\x1b[2J[red]agent", "requests": 2, "bandwidth": 10}
    ada.answers[f"GET /v3/analytics/gateways/top?by=user_agent&{span}"] = (200, {"data": [hostile]})
    shown = ada.run("gateways", "analytics", "ada", "--days", "7", "--by", "user_agent").stdout
    assert "[red]agent" in shown
    assert "\x1b" not in shown
    assert ada.run("gateways", "analytics", "bob").exit_code == 5
    assert ada.run("gateways", "analytics", "ada", "--by", "colour").exit_code == 2


def test_plugins_are_installed_and_removed(ada: FakeServer) -> None:
    ada.answers["POST /v3/gateways/plugins/g1"] = ada.answers["DELETE /v3/gateways/plugins/g1/plugin/2"] = DONE
    assert ada.run("gateways", "install", "ada", "2").stdout == "Installed.\n"
    assert ada.bodies("POST /v3/gateways/plugins/g1") == [{"plugin_id": 2}]
    assert ada.run("gateways", "uninstall", "ada", "2").stdout == "Uninstalled.\n"


PATH = "/v3/gateways/g1/custom_domain"
PENDING = {
    "custom_domain_id": "d1",
    "domain": "site.example.com",
    "url": "http://site.example.com",
    "cid": None,
    "domain_validation_status": "pending",
    "ssl_validation_status": "pending",
    "reason": "Add the TXT record _roost-verify.site.example.com with the value v",
}


@pytest.fixture
def files(server: FakeServer) -> FakeServer:
    server.answers["GET /v3/gateways?pageSize=100"] = (200, {"data": {"rows": [{"id": "g1", "domain": "files"}]}})
    server.answers[f"GET {PATH}"] = (200, {"data": [PENDING]})
    for call in (f"POST {PATH}", f"PUT {PATH}/d1", f"POST {PATH}/d1/verify"):
        server.answers[call] = (200, {"data": PENDING})
    server.answers[f"DELETE {PATH}/d1"] = (200, {"data": None})
    return server


def test_commands_add_list_and_remove_domains(files: FakeServer) -> None:
    run = ("gateways", "domains")
    added = files.run(*run, "add", "files", "site.example.com", "--cid", "bafy")
    assert "_roost-verify.site.example.com" in added.stdout
    assert files.bodies(f"POST {PATH}")[-1] == {"domain": "site.example.com", "cid": "bafy"}
    assert json.loads(files.run(*run, "list", "files", "-o", "json").stdout) == [PENDING]
    assert "ownership pending" in files.run(*run, "verify", "files", "Site.Example.com").stdout
    files.run(*run, "update", "files", "d1")
    assert files.bodies(f"PUT {PATH}/d1")[-1] == {"cid": None}
    assert files.run(*run, "remove", "files", "d1", "-y").stdout == "Removed.\n"
    assert files.run(*run, "remove", "files", "other.example.com").exit_code != 0
