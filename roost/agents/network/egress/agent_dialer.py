"""Connections that the server makes because an agent asked for them: within the agent's rules, and in its log."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from roost.core import log
from roost.net.addresses import Address
from roost.net.dialer import PublicDialer
from roost.net.errors import EgressProblem, EgressRefused
from roost.net.guarded_transport import parse_url_target
from roost.net.host_port import HostPort

_log = log.get_logger("egress")


class AgentDialer(PublicDialer):
    """Dialer that logs each request of an agent, its subject; the egress proxy logs its own connections."""

    async def resolve(self, subject: str, target: HostPort) -> tuple[Sequence[Address], int]:
        with _logged(subject, target):
            return await super().resolve(subject, target)

    def admit(self, agent_id: str, url: str) -> None:
        """Check the host of a connection that something else makes. Raises EgressProblem."""
        target = parse_url_target(url)
        with _logged(agent_id, target):
            self.policy.check_target(target)


@contextmanager
def _logged(agent_id: str, target: HostPort) -> Generator[None]:
    decision, reason = "allowed", None
    try:
        yield
    except EgressProblem as problem:
        decision, reason = "refused" if isinstance(problem, EgressRefused) else "failed", problem.reason
        raise
    finally:
        _log.info(
            "egress.requested", agent=agent_id, host=target.host, port=target.port, decision=decision, reason=reason
        )
