"""The addresses of this installation: which part of it a Host header names, and the public origin of each part.

Pure. What an address is comes from configuration alone; a request's Host only selects among the addresses that exist.
Names of other parts (`api.`, `uploads.`, `*.gateways.`) and unknown names are no address here.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from roost.identity.door import Surface

_HOST = re.compile(r"(\[::1\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*)\.?(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_LONGEST = 260  # a DNS name of 253 characters, a dot and a port
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """One address: its surface, its own public origin, and the agent whose address it is."""

    surface: Surface
    origin: str
    agent_id: str | None = None


class Addresses:
    """The addresses under one domain.

    The loopback names are always the local surface; a bare domain other than `localhost` is a management address.
    """

    def __init__(self, domain: str = "localhost", public_port: int | None = None, scheme: str = "http") -> None:
        self._domain = domain.lower().rstrip(".")
        self.scheme = scheme
        self._port = "" if public_port in (None, _DEFAULT_PORTS.get(scheme)) else f":{public_port}"
        self._agents = f"agents.{self._domain}"
        self._fixed = {
            self._domain: Address(Surface.MANAGEMENT, self._origin(self._domain)),
            self._agents: Address(Surface.MANAGEMENT, self._origin(self._agents)),
            **{name: Address(Surface.LOCAL, self._origin(name)) for name in _LOOPBACK},
        }
        self.parse = lru_cache(maxsize=4096)(self._parse)

    @property
    def agents_url(self) -> str:
        """The management address."""
        return self._origin(self._agents)

    def agent_origin(self, agent_id: str) -> str:
        """The public origin of one agent's own address."""
        return self._origin(f"{agent_id}.{self._agents}")

    def _parse(self, host: str) -> Address | None:
        """The address that a Host header names, None when there is none such (answer 404)."""
        match = _HOST.fullmatch(host) if len(host) <= _LONGEST else None
        if match is None:
            return None
        name = match[1].lower()
        if (fixed := self._fixed.get(name)) is not None:
            return fixed
        label, _, parent = name.partition(".")
        if parent != self._agents or _LABEL.fullmatch(label) is None:
            return None
        return Address(Surface.AGENT, self.agent_origin(label), label)

    def _origin(self, name: str) -> str:
        return f"{self.scheme}://{name}{self._port}"
