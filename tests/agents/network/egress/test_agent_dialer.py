"""What the server connects to for an agent is within the agent's rules and in its log."""

import pytest
from structlog.testing import capture_logs

from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.net.errors import AddressRefused, HostRefused, InvalidTarget, NameNotResolved, PortRefused
from roost.net.host_port import HostPort
from roost.net.policy import EgressPolicy
from tests.net.loopback import FakeResolver

POLICY = EgressPolicy(deny_hosts=["denied.example"])


def dialer() -> AgentDialer:
    return AgentDialer(POLICY, FakeResolver({"inside.example": ["10.0.0.1"], "example.org": ["93.184.215.14"]}))


@pytest.mark.parametrize(
    ("host", "port", "error", "decision", "reason"),
    [
        ("example.org", 443, None, "allowed", None),
        ("inside.example", 443, AddressRefused, "refused", "address"),
        ("x.denied.example", 443, HostRefused, "refused", "host"),
        ("example.org", 25, PortRefused, "refused", "port"),
        ("unknown.example", 443, NameNotResolved, "failed", "unresolved"),
    ],
)
async def test_each_request_is_logged_with_its_decision(
    host: str, port: int, error: type[Exception] | None, decision: str, reason: str | None
) -> None:
    with capture_logs() as logs:
        if error is None:
            await dialer().resolve("a1", HostPort(host, port))
        else:
            with pytest.raises(error):
                await dialer().resolve("a1", HostPort(host, port))
    told = {"agent": "a1", "host": host, "port": port, "decision": decision, "reason": reason}
    assert logs == [{"event": "egress.requested", "log_level": "info", "logger_name": "egress", **told}]


def test_a_host_is_admitted_before_something_else_connects_to_it() -> None:
    with capture_logs() as logs:
        dialer().admit("a1", "https://api.example.org/bot")
        with pytest.raises(HostRefused):
            dialer().admit("a1", "https://api.denied.example")
        with pytest.raises(InvalidTarget):
            dialer().admit("a1", "ftp://example.org")
    assert [(line["host"], line["port"], line["decision"]) for line in logs] == [
        ("api.example.org", 443, "allowed"),
        ("api.denied.example", 443, "refused"),
    ]
