"""Decide which hosts, ports and addresses may be connected to. Pure: no name is resolved here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roost.net.addresses import Address, Network, embedded_address, is_public
from roost.net.errors import HostRefused, PortRefused
from roost.net.host_port import HostPort

HostOverride = tuple[Address, int | None]
"""An address, and a port when it differs from the requested one."""


@dataclass(frozen=True)
class EgressPolicy:
    """Rules of the operator for outgoing connections.

    allow_private: networks that are reachable although they are not public. For tests, and for an internal network
        that is opened on purpose.
    deny_hosts, allow_hosts: a name covers itself and all names below it; an IP address covers itself. With
        `allow_hosts` nothing else is reachable. A denied name does not deny the address behind it.
    deny_ports: 25 by default: mail between servers, of use to spam only. Submission (465, 587) is open.
    hosts: canonical names with the address that replaces their DNS answer; exactly these names, and the address must be
        admitted like any other. `deny_ports` applies to the requested port.
    """

    allow_private: Sequence[Network] = ()
    deny_hosts: Sequence[str] = ()
    allow_hosts: Sequence[str] | None = None
    deny_ports: frozenset[int] = frozenset({25})
    hosts: Mapping[str, HostOverride] = field(default_factory=dict[str, HostOverride])

    def check_target(self, target: HostPort) -> None:
        """Raise HostRefused or PortRefused unless the host and the port are admitted."""
        if not self.admits_host(target.host):
            raise HostRefused(target.host)
        if target.port in self.deny_ports:
            raise PortRefused(target.host, target.port)

    def admits_host(self, host: str) -> bool:
        """`host` is canonical: lower case, no trailing dot."""
        if _is_listed(host, self.deny_hosts):
            return False
        return self.allow_hosts is None or _is_listed(host, self.allow_hosts)

    def admits_address(self, address: Address) -> bool:
        return is_public(address) or self.opens(address)

    def opens(self, address: Address) -> bool:
        """Tell whether the operator opened the network of this address on purpose."""
        inner = embedded_address(address)
        return any(inner in network for network in self.allow_private)


def _is_listed(host: str, patterns: Sequence[str]) -> bool:
    names = [pattern.lower().removesuffix(".") for pattern in patterns]
    return any(host == name or host.endswith(f".{name}") for name in names)
