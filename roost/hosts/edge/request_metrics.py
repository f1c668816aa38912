"""What one request has used so far; told to the gate once, when it is over."""

from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.proxy_request import ProxyRequest
from roost.web.access_log import AccessRecord


class RequestMetrics:
    def __init__(self, gate: ProxyDependencies, asked: ProxyRequest, now: float) -> None:
        self._gate = gate
        self._asked = asked
        self.began = now
        self.status = 0
        self.received = 0
        self.sent = 0

    def close(self, now: float) -> None:
        asked = self._asked
        self._gate.observe(
            AccessRecord(
                agent_id=asked.agent_id,
                method=asked.method,
                path=asked.path,
                status=self.status,
                seconds=now - self.began,
                received=self.received,
                sent=self.sent,
                request_id=asked.request_id,
            )
        )
