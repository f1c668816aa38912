"""Which names get a certificate, and what the question costs."""

from typing import Any

import pytest
from fastapi import FastAPI

from roost.core import ids
from roost.domain_names.model import DomainOwnerKind
from roost.http.stack.address import HostAddresses
from roost.http.tls.certificates import PERMISSION_PATH, CertificateNames, permission_router
from roost.identity.errors import UnknownAgent
from roost.storage.gateways.model import GatewayNotFound
from roost.web.service_registry import ServiceRegistry
from tests.domain_names.samples import make_domain
from tests.http.asgi import call

ADDRESSES = HostAddresses("example.com", 443, "https")
AGENT = "abcdefghjkmnpqrs"


class Directory:
    """The agents and gateways that exist; counts the questions. One name has to wait for its certificate."""

    def __init__(self) -> None:
        self.asked = 0

    async def get_tenant_id(self, agent_id: str) -> str:
        self.asked += 1
        if agent_id != AGENT:
            raise UnknownAgent
        return "acme"

    async def get_by_domain(self, name: str) -> str:
        self.asked += 1
        if name != "pictures":
            raise GatewayNotFound
        return name

    def paused_seconds(self, name: str) -> float:
        return 60.0 if name == "api.example.com" else 0.0

    def certificate_names(self, addresses: HostAddresses) -> CertificateNames:
        fake: Any = self
        return CertificateNames(addresses, fake, fake, fake)


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
def names(directory: Directory) -> CertificateNames:
    return directory.certificate_names(ADDRESSES)


@pytest.mark.parametrize(
    "name",
    [
        *("example.com", "agents.example.com", "uploads.example.com"),
        *(f"{AGENT}.agents.example.com", "pictures.gateways.example.com", "PICTURES.gateways.example.com"),
    ],
)
async def test_names_that_are_served_get_one(names: CertificateNames, name: str) -> None:
    assert await names.admits(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "::1",
            "example.com:443",
            "example.com.",
            "evil.example",
            "x.example.com",
        ),
        *("a.b.agents.example.com", "bafy.ipfs.pictures.gateways.example.com", "*.agents.example.com", "a" * 300),
        *("-x.agents.example.com", "agents.example.com\n", "api.example.com", "ada.agents.example.com"),
    ],
)
async def test_other_names_cost_no_look_up(names: CertificateNames, directory: Directory, name: str) -> None:
    assert not await names.admits(name)
    assert directory.asked == 0


@pytest.mark.parametrize("cid", [None, "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"])
async def test_domains_of_tenants_get_one(directory: Directory, cid: str | None) -> None:
    domain = make_domain("site.test", "pictures", DomainOwnerKind.STORAGE_GATEWAY, cid=cid)
    addresses = HostAddresses("example.com", 443, "https", domains={"site.test": domain})
    names = directory.certificate_names(addresses)
    assert await names.admits("site.test")
    assert not await names.admits("x.site.test")
    assert directory.asked == 0


async def test_unknown_agents_and_gateways_are_looked_up_once(names: CertificateNames, directory: Directory) -> None:
    agents = [f"{ids.new_host_label()}.agents.example.com" for _ in range(500)]
    unknown = agents + [f"x{number}.gateways.example.com" for number in range(500)]
    for _ in range(3):
        assert not any([await names.admits(name) for name in unknown])
    assert directory.asked == len(unknown)


@pytest.mark.parametrize(("query", "status"), [("?domain=example.com", 200), ("?domain=evil.example", 403), ("", 403)])
async def test_caddy_gets_a_status(names: CertificateNames, query: str, status: int) -> None:
    app = FastAPI()
    app.include_router(permission_router)
    app.state.services = ServiceRegistry()
    app.state.services.add(names)
    assert (await call(app, PERMISSION_PATH + query)).status == status
