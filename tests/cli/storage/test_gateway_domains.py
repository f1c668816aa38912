"""`roost gateways domains`: what is asked of the server, and what is shown of its answer."""

import json

import pytest

from tests.cli.terminal import FakeServer

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
