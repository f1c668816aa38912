"""`roost webhooks`: what is asked of the server, and what is shown of its answer."""

import json

from tests.cli.terminal import FakeServer

WEBHOOK = {
    "id": "w1",
    "url": "https://a.example/",
    "description": "",
    "events": ["ipfs.private.file_added"],
    "enabled": True,
    "disabled_reason": None,
    "failing_since": None,
}
DELIVERY = {
    "id": "d1",
    "event_type": "webhook.test",
    "state": "delivered",
    "attempts": 1,
    "status": 200,
    "error": None,
    "created_at": "2026-01-02T03:04:05.000006Z",
    "next_attempt_at": None,
}
ONE = "/v3/webhooks/w1"


def test_list_and_show(server: FakeServer) -> None:
    server.answers["GET /v3/webhooks"] = (200, {"data": {"webhooks": [WEBHOOK]}})
    server.answers[f"GET {ONE}"] = (200, {"data": WEBHOOK})
    assert server.run("webhooks", "list").stdout.splitlines()[1].split()[:3] == [
        *("w1", "https://a.example/", "ipfs.private.file_added")
    ]
    assert json.loads(server.run("webhooks", "list", "-o", "json").stdout) == [WEBHOOK]
    assert json.loads(server.run("webhooks", "show", "w1", "-o", "json").stdout) == WEBHOOK


def test_create_and_rotate_show_the_secret(server: FakeServer) -> None:
    shown = (200, {"data": {**WEBHOOK, "secret": "whsec_x"}})
    server.answers["POST /v3/webhooks"] = server.answers[f"POST {ONE}/rotate_secret"] = shown
    created = server.run("webhooks", "create", "https://a.example/", "--event", "ipfs.private.file_added")
    assert "whsec_x" in created.stdout
    assert "whsec_x" in server.run("webhooks", "rotate-secret", "w1").stdout
    body = {"url": "https://a.example/", "events": ["ipfs.private.file_added"], "description": ""}
    assert server.bodies("POST /v3/webhooks") == [body]


def test_update_and_delete(server: FakeServer) -> None:
    server.answers[f"PUT {ONE}"] = (200, {"data": WEBHOOK})
    server.answers[f"DELETE {ONE}"] = (200, {"data": None})
    assert server.run("webhooks", "update", "w1", "--disable").exit_code == 0
    assert server.run("webhooks", "update", "w1", "--enable", "--all-events").exit_code == 0
    assert server.run("webhooks", "update", "w1").exit_code == 2
    assert server.bodies(f"PUT {ONE}") == [{"enabled": False}, {"events": [], "enabled": True}]
    assert server.run("webhooks", "delete", "w1", "--yes").stdout == "Deleted.\n"
    assert server.run("webhooks", "delete", "w2", "--yes").exit_code == 5


def test_deliveries_are_listed_and_repeated(server: FakeServer) -> None:
    page = {"data": {"deliveries": [DELIVERY], "next_page_token": None}}
    server.answers[f"GET {ONE}/deliveries?state=failed&limit=25"] = (200, page)
    server.answers[f"POST {ONE}/deliveries/d1/redeliver"] = (200, {"data": DELIVERY})
    listed = server.run("webhooks", "deliveries", "w1", "--state", "failed").stdout.splitlines()[1].split()
    assert listed[:5] == ["d1", "webhook.test", "delivered", "1", "200"]
    assert server.run("webhooks", "redeliver", "w1", "d1").exit_code == 0


def test_test_tells_by_its_exit_code(server: FakeServer) -> None:
    server.answers[f"POST {ONE}/test"] = (200, {"data": DELIVERY})
    assert server.run("webhooks", "test", "w1").exit_code == 0
    server.answers[f"POST {ONE}/test"] = (200, {"data": {**DELIVERY, "state": "failed", "status": None, "error": "no"}})
    done = server.run("webhooks", "test", "w1")
    assert (done.exit_code, "error       no" in done.stdout) == (1, True)
