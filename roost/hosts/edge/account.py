"""What one request has used so far; told to the gate once, when it is over."""

from roost.hosts.edge.asked import Asked
from roost.hosts.edge.gate import Gate
from roost.web.access import Passage


class Account:
    def __init__(self, gate: Gate, asked: Asked, now: float) -> None:
        self._gate = gate
        self._asked = asked
        self.began = now
        self.status = 0
        self.received = 0
        self.sent = 0

    def close(self, now: float) -> None:
        asked = self._asked
        self._gate.observe(
            Passage(
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
