"""What every resolver promises; the real one asks name servers of its own on loopback."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence

import dns.rcode
import pytest

from roost.drivers.dns.contract import DnsResolver, DnsUnavailable
from roost.drivers.dns.dnspython import DnspythonResolver
from roost.drivers.dns.fake import FakeDns
from tests.conformance.name_server import NameServer, serve_names


class NameServers(ABC):
    resolver: DnsResolver

    @abstractmethod
    def set(self, name: str, *texts: Sequence[str]) -> None:
        """Set the TXT records of a name, each in parts."""

    @abstractmethod
    def fail(self) -> None:
        """Let the name servers fail from now on."""


class _FakeServers(NameServers):
    def __init__(self) -> None:
        self.resolver = self._dns = FakeDns()

    def set(self, name: str, *texts: Sequence[str]) -> None:
        self._dns.texts[name] = ["".join(parts) for parts in texts]

    def fail(self) -> None:
        self._dns.is_available = False


class _RealServers(NameServers):
    def __init__(self, zone: NameServer) -> None:
        self.zone = zone
        self.resolver = DnspythonResolver([("127.0.0.1", zone.port)])

    def set(self, name: str, *texts: Sequence[str]) -> None:
        self.zone.set_texts(name, *texts)

    def fail(self) -> None:
        self.zone.rcode = dns.rcode.SERVFAIL


@pytest.fixture(params=["fake", "dnspython"])
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[NameServers]:
    if request.param == "fake":
        yield _FakeServers()
        return
    async with serve_names() as zone:
        yield _RealServers(zone)


async def test_texts_of_a_name(servers: NameServers) -> None:
    servers.set("_roost-verify.example.com", ["one"], ["tw", "o"])
    assert sorted(await servers.resolver.find_texts("_roost-verify.example.com")) == ["one", "two"]
    assert sorted(await servers.resolver.find_texts("_Roost-Verify.Example.com")) == ["one", "two"]


async def test_a_name_without_records(servers: NameServers) -> None:
    servers.set("example.com", ["one"])
    assert list(await servers.resolver.find_texts("_roost-verify.example.com")) == []


async def test_a_record_that_was_removed_is_gone_at_once(servers: NameServers) -> None:
    servers.set("example.com", ["one"])
    assert list(await servers.resolver.find_texts("example.com")) == ["one"]
    servers.set("example.com", ["two"])
    assert list(await servers.resolver.find_texts("example.com")) == ["two"]


async def test_name_servers_that_fail_say_nothing(servers: NameServers) -> None:
    servers.set("example.com", ["one"])
    servers.fail()
    with pytest.raises(DnsUnavailable):
        await servers.resolver.find_texts("example.com")


async def test_records_of_an_alias_are_not_those_of_the_name() -> None:
    async with serve_names() as zone:
        servers = _RealServers(zone)
        servers.set("evil.example.net", ["proof"])
        zone.records["_roost-verify.example.com.", "CNAME"] = ["evil.example.net."]
        assert list(await servers.resolver.find_texts("_roost-verify.example.com")) == []


async def test_a_silent_name_server_is_waited_for_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.drivers.dns.dnspython.LIFETIME_SECONDS", 0.2)
    async with serve_names() as zone:
        monkeypatch.setattr(zone, "datagram_received", lambda *_: None)
        with pytest.raises(DnsUnavailable):
            await _RealServers(zone).resolver.find_texts("example.com")
