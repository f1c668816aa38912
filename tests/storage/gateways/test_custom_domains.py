"""Names of a tenant's own at its gateways: noted once, so many, by nobody else."""

import pytest

from roost.storage.gateways import model
from roost.storage.gateways.custom_domains import CustomDomains
from roost.storage.gateways.errors import CustomDomainLimit, CustomDomainMissing, GatewayNotFound, InvalidGatewayDomain
from roost.storage.gateways.service import StorageGatewayService
from tests.storage.house import House


@pytest.fixture
def domains(place: House) -> CustomDomains:
    return CustomDomains(place.db)


@pytest.fixture
async def gateway_id(place: House) -> str:
    return (await StorageGatewayService(place.db).create(place.tenant_id, "shop")).id


async def noted(place: House, gateway_id: str) -> list[str]:
    return [
        one.domain for one in (await StorageGatewayService(place.db).get(place.tenant_id, gateway_id)).custom_domains
    ]


async def test_noted_and_forgotten(place: House, domains: CustomDomains, gateway_id: str) -> None:
    made = await domains.add(place.tenant_id, gateway_id, " Files.Example.org. ")
    assert made.domain == "files.example.org"
    assert await domains.add(place.tenant_id, gateway_id, "FILES.example.org") == made
    assert await noted(place, gateway_id) == ["files.example.org"]
    await domains.remove(place.tenant_id, gateway_id, made.id)
    assert await noted(place, gateway_id) == []
    with pytest.raises(CustomDomainMissing):
        await domains.remove(place.tenant_id, gateway_id, made.id)


async def test_there_are_so_many(place: House, domains: CustomDomains, gateway_id: str) -> None:
    for number in range(model.CUSTOM_DOMAIN_LIMIT):
        await domains.add(place.tenant_id, gateway_id, f"a{number}.example.org")
    with pytest.raises(CustomDomainLimit):
        await domains.add(place.tenant_id, gateway_id, "one-more.example.org")
    assert (await domains.add(place.tenant_id, gateway_id, "a0.example.org")).domain == "a0.example.org"


async def test_nobody_else_notes_or_forgets(place: House, domains: CustomDomains, gateway_id: str) -> None:
    made = await domains.add(place.tenant_id, gateway_id, "files.example.org")
    with pytest.raises(GatewayNotFound):
        await domains.add(place.other_id, gateway_id, "files.example.org")
    with pytest.raises(GatewayNotFound):
        await domains.remove(place.other_id, gateway_id, made.id)
    with pytest.raises(InvalidGatewayDomain):
        await domains.add(place.tenant_id, gateway_id, "localhost")
    assert await noted(place, gateway_id) == ["files.example.org"]
