"""Addresses of this installation: the part that a Host header names, and the public origin of each part. Pure.

Configuration alone defines the addresses; the Host of a request selects one of them. Unknown names have none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from roost.web.url_rule import HostKind

_HOST = re.compile(r"(\[::1\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*)\.?(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_LENGTH_LIMIT = 260  # a DNS name of 253 characters, a dot and a port
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class HostAddress:
    """An address with its kind, public origin and agent.

    gateway: the name of the storage gateway. cid: the raw CID, if the origin belongs to one CID.
    """

    host_kind: HostKind
    origin: str
    agent_id: str | None = None
    gateway: str | None = None
    cid: str | None = None


class HostAddresses:
    """The addresses under one domain.

    The loopback names are always the local address; a bare domain other than `localhost` is a management address.
    """

    def __init__(self, domain: str = "localhost", public_port: int | None = None, scheme: str = "http") -> None:
        self.domain = domain.lower().rstrip(".")
        self.scheme = scheme
        self._port = "" if public_port in (None, _DEFAULT_PORTS.get(scheme)) else f":{public_port}"
        self._agents = f"agents.{self.domain}"
        self._gateways = f"gateways.{self.domain}"
        self._api, self._uploads = f"api.{self.domain}", f"uploads.{self.domain}"
        self._fixed = {
            self.domain: HostAddress(HostKind.MANAGEMENT, self._origin(self.domain)),
            self._agents: HostAddress(HostKind.MANAGEMENT, self._origin(self._agents)),
            self._api: HostAddress(HostKind.STORAGE, self._origin(self._api)),
            self._uploads: HostAddress(HostKind.STORAGE, self._origin(self._uploads)),
            **{name: HostAddress(HostKind.LOCAL, self._origin(name)) for name in _LOOPBACK},
        }
        self.parse = lru_cache(maxsize=4096)(self._parse)

    @property
    def agents_url(self) -> str:
        """The management address."""
        return self._origin(self._agents)

    @property
    def api_url(self) -> str:
        """The address of the storage API."""
        return self._origin(self._api)

    @property
    def uploads_url(self) -> str:
        """The address of uploads ({upload_url}); its paths start with `/v3`."""
        return self._origin(self._uploads)

    def gateway_origin(self, name: str) -> str:
        """Return the public origin of a storage gateway."""
        return self._origin(f"{name}.{self._gateways}")

    def agent_origin(self, agent_id: str) -> str:
        """Return the public origin of an agent's own address."""
        return self._origin(f"{agent_id}.{self._agents}")

    def _parse(self, host: str) -> HostAddress | None:
        """Return the address that a Host header names; None for an unknown one (answer 404)."""
        match = _HOST.fullmatch(host) if len(host) <= _LENGTH_LIMIT else None
        if match is None:
            return None
        name = match[1].lower()
        if (fixed := self._fixed.get(name)) is not None:
            return fixed
        if name.endswith(f".{self._gateways}"):
            return self._gateway(name, name.removesuffix(f".{self._gateways}").split("."))
        label, _, parent = name.partition(".")
        if parent != self._agents or _LABEL.fullmatch(label) is None:
            return None
        return HostAddress(HostKind.AGENT, self.agent_origin(label), label)

    def _gateway(self, host: str, labels: Sequence[str]) -> HostAddress | None:
        """Parse `name`, or `cid.ipfs.name` for the origin of one CID."""
        if not all(map(_LABEL.fullmatch, labels)):
            return None
        match labels:
            case [name]:
                return HostAddress(HostKind.STORAGE_GATEWAY, self._origin(host), gateway=name)
            case [cid, "ipfs", name]:
                return HostAddress(HostKind.STORAGE_GATEWAY, self._origin(host), gateway=name, cid=cid)
            case _:
                return None

    def _origin(self, name: str) -> str:
        return f"{self.scheme}://{name}{self._port}"
