"""`roost payments list` and `totals`: what is asked of the server, and what is shown of its answer."""

import json

from tests.cli.terminal import FakeServer

ROOT = "/v3/x402/payments"
PAYMENT = {
    "id": "p1",
    "payment_instruction_id": "i1",
    "payment_instruction_version": 1,
    "cid": "bafy",
    "network": "eip155:8453",
    "asset": "0xa",
    "payer": "0xb",
    "pay_to": "0xc",
    "amount": "10000",
    "state": "settled",
    "transaction": "0xd",
    "reason": None,
    "created_at": "2026-01-02T03:04:05.000006Z",
    "updated_at": "2026-01-02T03:04:05.000006Z",
}


def test_list_filters_payments(server: FakeServer) -> None:
    page = {"data": {"payments": [PAYMENT], "next_page_token": ""}}
    filters = "instruction=i1&cid=bafy&state=settled&limit=5"
    server.answers[f"GET {ROOT}?limit=100"] = server.answers[f"GET {ROOT}?{filters}"] = (200, page)
    shown = server.run("payments", "list")
    assert shown.exit_code == 0, shown.output
    assert "10000" in shown.output
    options = ["--instruction", "i1", "--cid", "bafy", "--state", "settled", "--limit", "5", "-o", "json"]
    assert json.loads(server.run("payments", "list", *options).output) == [PAYMENT]
    assert server.run("payments", "list", "--state", "paid").exit_code == 2


def test_totals_are_summed_by_instruction(server: FakeServer) -> None:
    total = {"payment_instruction_id": "i1", "network": "n", "asset": "0xa", "count": 2, "amount": "20000"}
    server.answers[f"GET {ROOT}/totals"] = (200, {"data": {"totals": [total]}})
    assert json.loads(server.run("payments", "totals", "-o", "json").output) == [total]
    assert "20000" in server.run("payments", "totals").output
