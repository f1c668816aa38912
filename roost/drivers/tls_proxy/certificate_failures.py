"""Reasons why names got no certificate, from the log of Caddy. In memory, bounded."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from roost.core import clock
from roost.core.sanitize import sanitize_line
from roost.core.ttl_cache import TTLCache

_PAUSES = (60.0, 240.0, 960.0, 3600.0)
"""Seconds after each failure in a row: a public ACME server refuses a name after five failures in an hour."""
_NAMES = 1000
_LIFETIME = 2 * 3600.0
_TEXT_LIMIT = 300
_ERROR_PREFIX = "urn:ietf:params:acme:error:"  # RFC 8555, 6.7
_MEANINGS: Mapping[str, str] = {
    "connection": "the ACME server could not reach {name} on port {port}",
    "dns": "the ACME server could not resolve {name}",
    "caa": "the CAA records of {name} do not admit the ACME server",
    "unauthorized": "{name} does not lead to this server on port {port}",
    "rateLimited": "the ACME server limits how many certificates it issues",
    "rejectedIdentifier": "the ACME server issues no certificates for {name}",
}
_CHALLENGE_PORTS = {"http-01": 80, "tls-alpn-01": 443}


@dataclass(frozen=True)
class _Failure:
    reason: str
    count: int
    paused_until: float


class CertificateFailures:
    """The last failure of each name to get its first certificate, and how long it has to wait for its next attempt.

    Renewals (`tls.renew`) do not wait: a refusal would make Caddy drop a certificate that is still valid.
    """

    def __init__(self) -> None:
        self._failures = TTLCache[str, _Failure](_LIFETIME, _NAMES)
        self._challenges = TTLCache[str, Mapping[str, str]](_LIFETIME, _NAMES)  # of the current attempt, by their type
        self._waiters: defaultdict[str, set[asyncio.Future[str]]] = defaultdict(set)

    def read_entry(self, entry: Mapping[str, Any]) -> None:
        """Learn from an entry of Caddy's log."""
        name, logger, message = entry.get("identifier"), str(entry.get("logger", "")), entry.get("msg")
        if not isinstance(name, str):
            return
        if message == "challenge failed":
            kind = str(entry.get("challenge_type"))
            self._challenges.put(name, {**(self._challenges.get(name) or {}), kind: describe_challenge(name, entry)})
        elif logger == "tls.obtain" and message == "certificate obtained successfully":
            self._failures.put(name, _Failure("", 0, 0.0))
        elif logger == "tls.obtain" and message == "could not get certificate from issuer":
            described = self._challenges.get(name) or {"": _shorten(entry.get("error"))}
            self._challenges.put(name, {})
            self._add(name, "; ".join(described[kind] for kind in sorted(described)))

    def explain(self, name: str) -> str | None:
        """Return the reason of the last failure, None if there is none."""
        failure = self._failures.get(name)
        return (failure.reason or None) if failure else None

    async def wait(self, name: str) -> str:
        """Return the reason of the next failure."""
        waiter: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiters[name].add(waiter)
        try:
            return await waiter
        finally:
            self._waiters[name].discard(waiter)
            if not self._waiters[name]:
                del self._waiters[name]

    def paused_seconds(self, name: str) -> float:
        """Return the seconds until the next attempt, 0 if there is nothing to wait for."""
        failure = self._failures.get(name)
        return 0.0 if failure is None else max(0.0, failure.paused_until - clock.monotonic_seconds())

    def _add(self, name: str, reason: str) -> None:
        last = self._failures.get(name)
        count = last.count if last else 0
        pause = _PAUSES[min(count, len(_PAUSES) - 1)]
        self._failures.put(name, _Failure(reason, count + 1, clock.monotonic_seconds() + pause))
        for waiter in self._waiters.get(name, ()):
            if not waiter.done():
                waiter.set_result(reason)


def parse_entry(line: bytes) -> Mapping[str, Any] | None:
    """Return an entry of Caddy's log; None for a line of another form."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return cast("Mapping[str, Any]", entry) if isinstance(entry, dict) else None


def describe_challenge(name: str, entry: Mapping[str, Any]) -> str:
    """Describe a failed challenge in words."""
    if not isinstance(entry.get("problem"), dict):
        return _shorten(entry.get("error"))
    problem: Mapping[str, Any] = entry["problem"]
    kind = str(problem.get("type", "")).removeprefix(_ERROR_PREFIX)
    port = _CHALLENGE_PORTS.get(str(entry.get("challenge_type")), 80)
    meaning = _MEANINGS.get(kind, "the ACME server refused {name}").format(name=name, port=port)
    return f"{meaning}: {_shorten(problem.get('detail') or problem.get('title'))}"


def _shorten(text: object) -> str:
    return sanitize_line(str(text))[:_TEXT_LIMIT]
