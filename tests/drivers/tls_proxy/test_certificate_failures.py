"""What is learnt from the log of Caddy."""

import asyncio
import json
from typing import Any

import pytest

from roost.core import clock
from roost.drivers.tls_proxy.certificate_failures import CertificateFailures, parse_entry

NAME = "app.example.com"
REFUSED = {
    "logger": "tls.obtain",
    "msg": "could not get certificate from issuer",
    "identifier": NAME,
    "error": "HTTP 400",
}
OBTAINED = {"logger": "tls.obtain", "msg": "certificate obtained successfully", "identifier": NAME}


def challenge(kind: str, port: str = "http-01", detail: str = "Timeout") -> dict[str, Any]:
    problem = {"type": f"urn:ietf:params:acme:error:{kind}", "detail": detail}
    return {"msg": "challenge failed", "identifier": NAME, "challenge_type": port, "problem": problem}


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([REFUSED], "HTTP 400"),
        (
            [challenge("connection"), REFUSED],
            "the ACME server could not reach app.example.com on port 80: Timeout",
        ),
        (
            [challenge("connection", "tls-alpn-01"), challenge("dns"), REFUSED],
            (
                "the ACME server could not resolve app.example.com: Timeout; "
                "the ACME server could not reach app.example.com on port 443: Timeout"
            ),
        ),
        (
            [challenge("new", detail="a\x1b[31mb\n"), REFUSED],
            "the ACME server refused app.example.com: ab\N{REPLACEMENT CHARACTER}",
        ),
        ([{**challenge("x"), "problem": None, "error": 7}, REFUSED], "7"),
        ([challenge("connection"), REFUSED, REFUSED], "HTTP 400"),
        ([REFUSED, OBTAINED], None),
        ([{**REFUSED, "identifier": ["x"]}, {}, {**OBTAINED, "identifier": None}], None),
    ],
)
def test_a_failure_is_explained(entries: list[dict[str, Any]], reason: str | None) -> None:
    failures = CertificateFailures()
    for entry in entries:
        failures.read_entry(entry)
    assert failures.explain(NAME) == reason


def test_a_name_waits_longer_after_each_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now)
    failures = CertificateFailures()
    for pause in (60, 240, 960, 3600, 3600):
        assert failures.paused_seconds(NAME) == 0
        failures.read_entry(REFUSED)
        assert failures.paused_seconds(NAME) == pause
        now += pause
    failures.read_entry(OBTAINED)
    failures.read_entry(REFUSED)
    assert failures.paused_seconds(NAME) == 60
    assert failures.paused_seconds("other.example.com") == 0


async def test_waiting_ends_with_the_next_failure() -> None:
    failures = CertificateFailures()
    waiting = [asyncio.create_task(failures.wait(NAME)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    failures.read_entry(REFUSED)
    assert await waiting[1] == "HTTP 400"


@pytest.mark.parametrize("line", [b"", b"Error: x\n", b"[1]", b"\xff", b'"x"'])
def test_lines_of_another_form_are_no_entries(line: bytes) -> None:
    assert parse_entry(line) is None
    assert parse_entry(json.dumps(OBTAINED).encode()) == OBTAINED
