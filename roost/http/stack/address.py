"""Addresses of this installation: the part that a Host header names, and the public origin of each part. Pure.

Configuration alone defines the addresses; the Host of a request selects one of them. Unknown names have none. Without
names below the domain, each agent has a port, and the port at which a request arrives selects the agent.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from ipaddress import IPv6Address
from types import MappingProxyType
from typing import Protocol

from roost.agents.registry.agent_ports import AgentPorts
from roost.core import ids
from roost.domain_names.model import Domain, DomainOwnerKind
from roost.identity.credentials import session_cookie
from roost.net.addresses import parse_address
from roost.net.host_port import parse_host_port
from roost.web.url_rule import HostAddress, HostKind

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*)\.?(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_LENGTH_LIMIT = 260  # a DNS name of 253 characters, a dot and a port
_CACHE_SIZE = 16 * 1024  # names of at most 260 characters
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}

GATEWAY_PATH = "/gateways/"
"""Begins the paths of storage gateways that have no origin of their own; their names follow."""


class RegisteredDomains(Protocol):
    def get(self, key: str, /) -> Domain | None:
        """Return the verified domain of a host name. No I/O."""
        ...


@dataclass(slots=True)
class _HostName:
    """A Host header as it was parsed: the name, if it can be a registered one, and the platform's own address of it.

    `domain` is what was last registered as that name, and `address` is its address.
    """

    name: str | None
    own: HostAddress | None
    domain: Domain | None = None
    address: HostAddress | None = None


def cookie_prefix(port: int) -> str:
    """Return what the names of the cookies of a port begin with: browsers send them to all ports of the host."""
    return f"p{port}_"


def _peer_name(peer_address: str) -> str:
    """Return the host of a peer address as a Host header spells it."""
    found = parse_host_port(peer_address)
    return f"[{found.host}]" if isinstance(found.address, IPv6Address) else found.host


class HostAddresses:
    """The addresses under one domain, and the registered names of `domains`.

    The loopback names are always the local address; a bare domain other than `localhost` is a management address. With
    `ports` the domain alone is the address of both APIs, and each agent has a port. The host of `peer_address` is a
    management address, too, because metrics are read from each server.
    """

    def __init__(
        self,
        domain: str = "localhost",
        public_port: int | None = None,
        scheme: str = "http",
        ports: AgentPorts | None = None,
        domains: RegisteredDomains = MappingProxyType({}),
        peer_address: str | None = None,
    ) -> None:
        own_domain = domain.lower().rstrip(".")
        self.domain = "localhost" if parse_address(own_domain.strip("[]")) else own_domain
        """The domain of the names that programs can send as `Host`; there are none below an IP address."""
        self.scheme = scheme
        self.ports = ports
        self.domains = domains
        self.agent_ports = None if ports is None else ports.ports
        self._own_domain = own_domain
        self._port = "" if public_port in (None, _DEFAULT_PORTS.get(scheme)) else f":{public_port}"
        self.agents_host = f"agents.{self.domain}"
        self._gateways = f"gateways.{self.domain}"
        self._api, self._uploads = f"api.{self.domain}", f"uploads.{self.domain}"
        is_shared = ports is not None
        prefix = cookie_prefix(public_port or _DEFAULT_PORTS[scheme]) if is_shared else ""
        dashboard = partial(HostAddress, is_shared=is_shared, session_cookie=session_cookie(scheme, prefix))
        management = HostAddress(HostKind.MANAGEMENT, self.origin(self.agents_host))
        self._fixed = {
            **({} if peer_address is None else {_peer_name(peer_address): management}),
            own_domain: dashboard(HostKind.MANAGEMENT, self.origin(own_domain)),
            self.agents_host: management,
            self._api: HostAddress(HostKind.STORAGE, self.origin(self._api)),
            self._uploads: HostAddress(HostKind.STORAGE, self.origin(self._uploads)),
            **{name: dashboard(HostKind.LOCAL, self.origin(name)) for name in _LOOPBACK},
        }
        self._parse_name = lru_cache(maxsize=_CACHE_SIZE)(self._parse)

    def parse(self, host: str, local_port: int | None = None) -> HostAddress | None:
        """Return the address that a Host header names; None for an unknown one (answer 404).

        local_port: the port at which the request arrived.
        """
        if len(host) > _LENGTH_LIMIT:  # the cache would keep it
            return None
        found = self._parse_name(host)
        if self.ports is not None and local_port is not None and local_port in self.ports.ports:
            return None if found.own is None else self._parse_port(self.ports, found.own, local_port)
        if found.name is None or (domain := self.domains.get(found.name)) is None:
            return found.own
        if domain is not found.domain:
            found.domain, found.address = domain, self._domain_address(found.name, domain)
        return found.address

    def _parse_port(self, ports: AgentPorts, own: HostAddress, port: int) -> HostAddress | None:
        """Return the address of the agent at a port, whose Host must be the domain or a loopback name."""
        agent_id = ports.find_agent(port)
        if agent_id is None or not own.is_shared:
            return None
        return HostAddress(HostKind.AGENT, self.port_origin(port), agent_id, cookie_prefix=cookie_prefix(port))

    @property
    def agents_url(self) -> str:
        """The management address."""
        return self.origin(self._name(self.agents_host))

    @property
    def dashboard_url(self) -> str:
        """The address of the dashboard, which has both APIs, too."""
        return self.origin(self._own_domain)

    @property
    def api_url(self) -> str:
        """The address of the storage API."""
        return self.origin(self._name(self._api))

    @property
    def uploads_url(self) -> str:
        """The address of uploads ({upload_url}); its paths start with `/v3`."""
        return self.origin(self._name(self._uploads))

    def gateway_origin(self, name: str) -> str:
        """Return the public origin of a storage gateway, or where it has none its path at the origin of the server."""
        if self.ports is not None:
            return f"{self.origin(self._own_domain)}{GATEWAY_PATH}{name}"
        return self.origin(f"{name}.{self._gateways}")

    def agent_origin(self, agent_id: str) -> str:
        if self.ports is not None and (port := self.ports.find_port(agent_id)) is not None:
            return self.port_origin(port)
        return self.origin(f"{agent_id}.{self.agents_host}")

    def _domain_address(self, name: str, domain: Domain) -> HostAddress:
        if domain.owner.kind is DomainOwnerKind.STORAGE_GATEWAY:
            gateway, cid = domain.owner.id, domain.cid
            return HostAddress(HostKind.STORAGE_GATEWAY, self.origin(name), gateway=gateway, cid=cid, domain=name)
        port, is_protected = domain.port, domain.port is None or domain.is_protected
        origin, agent_id = self.origin(name), domain.owner.id
        return HostAddress(HostKind.DOMAIN, origin, agent_id, domain=name, port=port, is_protected=is_protected)

    def _parse(self, host: str) -> _HostName:
        match = _HOST.fullmatch(host)
        if match is None:
            return _HostName(None, None)
        name = match[1].lower()
        if (fixed := self._fixed.get(name)) is not None:
            return _HostName(None, fixed)
        if name.endswith(f".{self._gateways}"):
            return _HostName(None, self._gateway(name, name.removesuffix(f".{self._gateways}").split(".")))
        label, _, parent = name.partition(".")
        if parent != self.agents_host or _LABEL.fullmatch(label) is None:
            return _HostName(name, None)
        if ids.is_host_label(label):
            return _HostName(None, HostAddress(HostKind.AGENT, self.origin(name), label))
        return _HostName(name, HostAddress(HostKind.AGENT, self.origin(name), label))

    def parse_gateway_path(self, path: str) -> tuple[str, HostAddress] | None:
        """Return the path of the storage gateway that a path at a shared address begins with, and its address."""
        name, slash, rest = path.removeprefix(GATEWAY_PATH).partition("/")
        if not path.startswith(GATEWAY_PATH) or not slash or _LABEL.fullmatch(name) is None:
            return None
        if rest.partition("/")[0] not in {"ipfs", "files"}:
            return None
        return GATEWAY_PATH + name, HostAddress(HostKind.STORAGE_GATEWAY, self.gateway_origin(name), gateway=name)

    def _gateway(self, host: str, labels: Sequence[str]) -> HostAddress | None:
        """Parse `name`, or `cid.ipfs.name` for the origin of one CID."""
        if not all(map(_LABEL.fullmatch, labels)):
            return None
        match labels:
            case [name]:
                return HostAddress(HostKind.STORAGE_GATEWAY, self.origin(host), gateway=name)
            case [cid, "ipfs", name]:
                return HostAddress(HostKind.STORAGE_GATEWAY, self.origin(host), gateway=name, cid=cid)
            case _:
                return None

    def _name(self, name: str) -> str:
        """Return the host name of an address in URLs."""
        return name if self.agent_ports is None else self._own_domain

    def port_origin(self, port: int | str) -> str:
        return f"{self.scheme}://{self._own_domain}" + ("" if port == _DEFAULT_PORTS[self.scheme] else f":{port}")

    def origin(self, name: str) -> str:
        return f"{self.scheme}://{name}{self._port}"
