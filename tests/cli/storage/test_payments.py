"""`roost payments ...`: what is asked of the server, and what is shown of its answer."""

import json
from pathlib import Path

import pytest

from roost.storage.payments.instructions.model import BUILT_IN
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


PATH = "/v3/x402/payment_instructions"
ONE = f"{PATH}/i1"
USDC, SEPOLIA = (asset.address for asset in BUILT_IN)
CENT = {"asset": USDC, "pay_to": "0xab", "network": "base", "amount": "10000"}
INSTRUCTION = {
    "id": "i1",
    "version": 1,
    "payment_requirements": [{**CENT, "description": "A cent"}, {**CENT, "network": "base-sepolia", "description": ""}],
    "name": "articles",
    "description": "",
    "created_at": "2026-01-02T03:04:05.000006Z",
}
DONE = (200, {"data": {}})
TERMS = ("--pay-to", "0xab", "--amount", "10000")


def run(server: FakeServer, *arguments: str, code: int = 0) -> str:
    result = server.run("payments", "instructions", *arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_list_shows_payment_instructions(server: FakeServer) -> None:
    page = {"data": {"payment_instructions": [INSTRUCTION], "next_page_token": None}}
    server.answers[f"GET {PATH}?limit=100"] = server.answers[f"GET {PATH}?name=a&cid=b&limit=5"] = (
        200,
        page,
    )
    line = run(server, "list").splitlines()[1]
    assert line.split(maxsplit=3)[:3] == ["i1", "articles", "1"]
    assert "10000 on base, 10000 on base-sepolia" in line
    assert json.loads(run(server, "list", "--name", "a", "--cid", "b", "--limit", "5", "-o", "json")) == [INSTRUCTION]


def test_create_show_update_delete(server: FakeServer) -> None:
    for line in (f"POST {PATH}", f"GET {ONE}", f"PATCH {ONE}"):
        server.answers[line] = (200, {"data": INSTRUCTION})
    server.answers[f"DELETE {ONE}"] = DONE
    shown = run(server, "create", "articles", *TERMS, "--description", "d")
    assert f"10000 of {USDC} on base to 0xab (A cent), 10000 of" in shown
    assert json.loads(run(server, "show", "i1", "-o", "json")) == INSTRUCTION
    run(server, "update", "i1", "--name", "texts")
    run(server, "update", "i1", *TERMS, "--network", "eip155:84532", "-y")
    assert run(server, "delete", "i1", "--yes") == "Deleted.\n"
    assert server.bodies(f"POST {PATH}") == [{"name": "articles", "payment_requirements": [CENT], "description": "d"}]
    sepolia = {**CENT, "asset": SEPOLIA, "network": "eip155:84532"}
    assert server.bodies(f"PATCH {ONE}") == [{"name": "texts"}, {"payment_requirements": [sepolia]}]


def test_requirements_of_a_file(server: FakeServer, tmp_path: Path) -> None:
    server.answers[f"POST {PATH}"] = (200, {"data": INSTRUCTION})
    file = tmp_path / "requirements.json"
    file.write_text(json.dumps([CENT, CENT]))
    run(server, "create", "articles", "--requirements", str(file))
    assert server.bodies(f"POST {PATH}") == [{"name": "articles", "payment_requirements": [CENT, CENT]}]
    file.write_text("[")
    assert "is not JSON" in run(server, "create", "articles", "--requirements", str(file), code=2)
    assert "No such file" in run(server, "create", "articles", "--requirements", str(tmp_path / "none"), code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Give `--pay-to` and `--amount`, or `--requirements`."),
        (("--pay-to", "0xab"), "`--pay-to` and `--amount` belong together."),
        (("--asset", "0xab"), "`--pay-to` and `--amount` belong together."),
        ((*TERMS, "--network", "polygon"), "`--asset` is required on polygon."),
        ((*TERMS, "--requirements", "-"), "Give `--requirements`, or one requirement by options."),
    ],
)
def test_options_that_are_missing_or_contradict(server: FakeServer, options: tuple[str, ...], message: str) -> None:
    assert message in run(server, "create", "articles", *options, code=2)
    assert server.requests == []


def test_an_asset_of_another_network(server: FakeServer) -> None:
    server.answers[f"POST {PATH}"] = (200, {"data": INSTRUCTION})
    run(server, "create", "articles", *TERMS, "--network", "polygon", "--asset", "0xcd")
    (body,) = server.bodies(f"POST {PATH}")
    assert body["payment_requirements"] == [{**CENT, "asset": "0xcd", "network": "polygon"}]


def test_cids_are_attached_and_detached(server: FakeServer) -> None:
    server.answers[f"GET {ONE}/cids?limit=100"] = (200, {"data": {"cids": ["c1", "c2"], "next_page_token": None}})
    for cid in ("c1", "c2"):
        server.answers[f"PUT {ONE}/cids/{cid}"] = server.answers[f"DELETE {ONE}/cids/{cid}"] = DONE
    assert run(server, "cids", "i1").split() == ["CID", "c1", "c2"]
    assert run(server, "attach", "i1", "c1", "c2", "-y") == "Attached to 2.\n"
    assert run(server, "detach", "i1", "c1", "-y") == "Detached from 1.\n"
    run(server, "attach", "i1", "missing", "-y", code=5)
    run(server, "attach", "i1", "c1?x/y", "-y", code=5)
