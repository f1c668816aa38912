"""Commands that change who can reach what ask first, in numbers; without a terminal they name `--yes`."""

from typing import Any

import pytest

from tests.cli.terminal import FakeServer

PUBLIC, CLOSED = "g1", "g2"
GROUP = "3f2a8c1e-5b7d-4e6f-9a0b-1c2d3e4f5a6b"
ROUTES, DOMAINS, CHANNELS = (f"/v0/agents/a1/{name}" for name in ("port-forwarding", "domains", "channels"))
SOLD = "/v3/x402/payment_instructions/i1"
OPEN, SHUT = (
    {"pathPrefix": "/o", "port": 3000, "protected": False},
    {"pathPrefix": "/s", "port": 3000, "protected": True},
)
DOMAIN = {"id": "d1", "domain": "app.example.com", "targetPort": 3000, "protected": True}
TELEGRAM = {"enabled": True, "dmPolicy": "open", "allowFrom": ["1", "2"]}

QUESTIONS = [
    ("gateways allow files --token", "Everyone can read 3 public files at files now."),
    ("gateways refuse shut 10.0.0.0/8", "everyone can then read 3 public files there"),
    ("gateways domains remove files site.example.com", "All links through the domain site.example.com stop working"),
    ("routes set Ada /s=3000:open /o=3000:open", "1 path opened to everyone, without a token: /s"),
    ("routes set Ada /s=3000 /o=3001:open", "1 path opened to everyone, without a token: /o"),
    ("routes set Ada /o=3000", "1 path closed to visitors without the gateway token: /o"),
    ("routes set Ada --none", "2 paths removed: /o, /s"),
    ("domains add Ada --subdomain ada --port 3000 --open", "Everyone can then use the program on port 3000 through"),
    ("domains update Ada app.example.com --open", "Everyone can then use the program on port 3000"),
    ("domains remove Ada app.example.com", "leads who has the gateway token to port 3000 now"),
    (f"groups delete {GROUP}", "2 agents can search the group"),
    (f"vectors grant {GROUP} Ada", "Ada can then search 1 file of"),
    (f"vectors revoke {GROUP} Ada", "Ada can then no longer search 1 file of"),
    ("payments instructions attach i1 c1 c2", "Everyone who pays can then read 2 private files."),
    ("payments instructions detach i1 c1", "No one can then buy 1 file with i1."),
    ("payments instructions update i1 --pay-to 0xab --amount 1", "Readers of 2 files then pay by these terms."),
    ("channels set Ada telegram --keep-tokens --allow-anyone", "2 users of the list (1, 2) may write now, then anyone"),
    ("channels set Ada telegram --keep-tokens --allow-from 1", "then 1 user of the list (1)"),
    ("channels set Ada telegram --keep-tokens --disable", "2 users of the list (1, 2) may write now, then no one"),
    ("channels set Ada slack --keep-tokens --dm-policy open", "no one may write now, then anyone"),
]  # fmt: skip
QUIET = [
    "gateways allow shut --token",
    "routes set Ada /o=3000:open /s=3001 /new=3002",
    "domains add Ada --subdomain ada",
    "domains update Ada app.example.com --port 3001",
    "payments instructions update i1 --name texts",
    "channels set Ada telegram --keep-tokens --enable",
    "channels set Ada slack --keep-tokens",
]


def gateway(gateway_id: str, domain: str, addresses: list[Any]) -> dict[str, Any]:
    policies = {"accessTokens": [], "allowedHosts": [], "allowedIPAddresses": addresses}
    return {
        "id": gateway_id,
        "domain": domain,
        "restrict": not addresses,
        "settings": {"restriction_policies": policies},
    }


@pytest.fixture
def server_with_records(server: FakeServer) -> FakeServer:
    agent = {"agentId": "a1", "name": "Ada", "engine": "scripted", "url": "http://a1.agents.localhost"}
    shut = gateway(CLOSED, "shut", [{"id": "c1", "value": "10.0.0.0/8"}])
    domain = {"custom_domain_id": "d1", "domain": "site.example.com"}
    answers: dict[str, Any] = {
        "/v0/agents": {"agents": [agent]},
        "/v0/agents/engines": {"engines": []},
        "/v3/gateways?pageSize=100": {"data": {"count": 2, "rows": [gateway(PUBLIC, "files", []), shut]}},
        "/v3/files/totals": {"data": {"public": {"files": 3}, "private": {"files": 0}}},
        f"/v3/gateways/{PUBLIC}/custom_domain": {"data": [domain]},
        ROUTES: {"mappings": [OPEN, SHUT]},
        DOMAINS: {"domains": [DOMAIN]},
        f"/v3/vectorize/groups/{GROUP}/agents": {"data": {"agents": [{}, {}]}},
        f"/v3/vectorize/groups/{GROUP}/files?limit=100": {"data": {"files": [{}], "next_page_token": None}},
        f"{SOLD}/cids?limit=100": {"data": {"cids": ["c1", "c2"], "next_page_token": None}},
        CHANNELS: {"telegram": TELEGRAM, "slack": None, "version": "1"},
    }
    server.answers.update({f"GET {path}": (200, answer) for path, answer in answers.items()})
    return server


def changes(server: FakeServer) -> list[str]:
    return [line for line, _, _ in server.requests if not line.startswith("GET ")]


@pytest.mark.parametrize(("command", "question"), QUESTIONS)
def test_a_change_for_others_asks_first(server_with_records: FakeServer, command: str, question: str) -> None:
    refused = server_with_records.run(*command.split(), input="n\n")
    assert question in refused.stderr
    assert (refused.exit_code, refused.stdout, changes(server_with_records)) == (1, "", [])
    unanswered = server_with_records.run(*command.split(), input="")
    assert "confirm with `--yes`" in unanswered.stderr
    assert (unanswered.exit_code, changes(server_with_records)) == (2, [])
    for answer in (("--yes",), ()):
        server_with_records.requests.clear()
        server_with_records.run(*command.split(), *answer, input="y\n")
        assert len(changes(server_with_records)) == 1


@pytest.mark.parametrize("command", QUIET)
def test_a_change_for_no_one_asks_nothing(server_with_records: FakeServer, command: str) -> None:
    done = server_with_records.run(*command.split(), input="")
    assert "[y/N]" not in done.stderr
    assert len(changes(server_with_records)) == 1
