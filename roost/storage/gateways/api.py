"""HTTP API of storage gateways."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.domain_names.model import Domain
from roost.identity.authenticator import GatewaysReader, GatewaysWriter
from roost.storage.gateways import schemas
from roost.storage.gateways.custom_domains import GatewayDomainService
from roost.storage.gateways.model import PAGE_DEFAULT, PAGE_LIMIT, AccessControlKind, StorageGateway
from roost.storage.gateways.service import StorageGatewayService
from roost.web.schemas import DataEnvelope, SlashText
from roost.web.service_registry import provide_service

Domains = Annotated[GatewayDomainService, Depends(provide_service(GatewayDomainService))]
Service = Annotated[StorageGatewayService, Depends(provide_service(StorageGatewayService))]
GatewayId = Annotated[str, Path(alias="id")]
DomainId = Annotated[str, Path(alias="domainId", max_length=64)]
ControlName = Annotated[str, SlashText, Path(alias="control", max_length=300)]
_Size = Annotated[int, Query(alias="pageSize", ge=1, le=PAGE_LIMIT)]
_Page = Annotated[int, Query(ge=1, le=1000)]
router = APIRouter(prefix="/v3", tags=["gateways"])


@router.get("/gateways")
async def list_gateways(
    caller: GatewaysReader, gateways: Service, domains: Domains, size: _Size = PAGE_DEFAULT, page: _Page = 1
) -> DataEnvelope[schemas.GatewayList]:
    """List gateways, oldest first; the first one is created on this call."""
    found, count = await gateways.list(caller.tenant_id, (page - 1) * size, size)
    of_gateway = await domains.list_by_gateway(caller.tenant_id)
    records = [_record(gateways, domains, one, of_gateway.get(one.domain, ())) for one in found]
    return DataEnvelope(data=schemas.GatewayList(count=count, rows=records))


@router.post("/gateways")
async def create_gateway(
    caller: GatewaysWriter, body: schemas.CreateGatewayRequest, gateways: Service
) -> DataEnvelope[schemas.GatewayRecord]:
    """Create a gateway; `domain` is the first label of its address."""
    gateway = await gateways.create(caller.tenant_id, body.domain)
    return DataEnvelope(data=schemas.gateway_record(gateway, gateways.origin(gateway.domain)))


@router.get("/gateways/exists/{domain}")
async def gateway_exists(_: GatewaysReader, domain: str, gateways: Service) -> DataEnvelope[schemas.GatewayExistence]:
    """Return whether a name is taken."""
    return DataEnvelope(data=schemas.GatewayExistence(exists=await gateways.is_domain_taken(domain)))


@router.get("/gateways/plugins/marketplace")
async def list_marketplace(_: GatewaysReader) -> DataEnvelope[Sequence[schemas.PluginRecord]]:
    """List the plugins."""
    return DataEnvelope(data=list(schemas.PLUGIN_RECORDS.values()))


@router.get("/gateways/plugins/marketplace/{plugin_id}")
async def get_from_marketplace(_: GatewaysReader, plugin_id: int) -> DataEnvelope[schemas.PluginRecord]:
    """Return a plugin."""
    return DataEnvelope(data=schemas.find_plugin_record(plugin_id))


@router.get("/gateways/plugins")
async def list_all_plugins(
    caller: GatewaysReader, gateways: Service
) -> DataEnvelope[Sequence[schemas.PluginInstallation]]:
    """List the installed plugins of all gateways."""
    found, _ = await gateways.list(caller.tenant_id, 0, PAGE_LIMIT)
    return DataEnvelope(data=[each for one in found for each in schemas.list_installations(one)])


@router.get("/ipfs/gateway_plugins/{gateway_id}", name="list_plugins_legacy")
@router.get("/gateways/plugins/{gateway_id}")
async def list_plugins(
    caller: GatewaysReader, gateway_id: str, gateways: Service
) -> DataEnvelope[Sequence[schemas.PluginInstallation]]:
    """List the installed plugins of a gateway."""
    return DataEnvelope(data=schemas.list_installations(await gateways.get(caller.tenant_id, gateway_id)))


@router.post("/gateways/plugins/{gateway_id}")
async def install_plugin(
    caller: GatewaysWriter, gateway_id: str, body: schemas.InstallPluginRequest, gateways: Service
) -> DataEnvelope[schemas.PluginInstallation]:
    """Install a plugin on a gateway."""
    await gateways.install_plugin(caller.tenant_id, gateway_id, body.plugin_id)
    return DataEnvelope(data=schemas.PluginInstallation(gateway_id=gateway_id, plugin_id=body.plugin_id))


@router.delete("/gateways/plugins/{gateway_id}/plugin/{plugin_id}")
async def uninstall_plugin(
    caller: GatewaysWriter, gateway_id: str, plugin_id: int, gateways: Service
) -> DataEnvelope[None]:
    """Uninstall a plugin."""
    await gateways.uninstall_plugin(caller.tenant_id, gateway_id, plugin_id)
    return DataEnvelope(data=None)


@router.get("/gateways/{id}")
async def get_gateway(
    caller: GatewaysReader, gateway_id: GatewayId, gateways: Service, domains: Domains
) -> DataEnvelope[schemas.GatewayRecord]:
    """Return a gateway with its access controls and domains."""
    found = await gateways.get(caller.tenant_id, gateway_id)
    return DataEnvelope(data=_record(gateways, domains, found, await domains.list(caller.tenant_id, gateway_id)))


@router.delete("/gateways/{id}")
async def delete_gateway(caller: GatewaysWriter, gateway_id: GatewayId, gateways: Service) -> DataEnvelope[None]:
    """Delete a gateway. Its name is not reused."""
    await gateways.delete(caller.tenant_id, gateway_id)
    return DataEnvelope(data=None)


@router.post("/gateways/{id}/access_tokens")
async def add_access_token(
    caller: GatewaysWriter, gateway_id: GatewayId, gateways: Service
) -> DataEnvelope[schemas.AccessControlRecord]:
    """Create an access token; `value` is shown only once."""
    control, token = await gateways.create_access_token(caller.tenant_id, gateway_id)
    return DataEnvelope(data=schemas.control_record(control, token))


@router.post("/gateways/{id}/ips")
async def add_address(
    caller: GatewaysWriter, gateway_id: GatewayId, body: schemas.AddAddressRequest, gateways: Service
) -> DataEnvelope[schemas.AccessControlRecord]:
    """Allow an address or a CIDR range."""
    control = await gateways.add_allowlist_entry(caller.tenant_id, gateway_id, AccessControlKind.ADDRESS, body.ip)
    return DataEnvelope(data=schemas.control_record(control))


@router.post("/gateways/{id}/hosts")
async def add_host(
    caller: GatewaysWriter, gateway_id: GatewayId, body: schemas.AddHostRequest, gateways: Service
) -> DataEnvelope[schemas.AccessControlRecord]:
    """Allow pages of a host."""
    control = await gateways.add_allowlist_entry(caller.tenant_id, gateway_id, AccessControlKind.HOST, body.host)
    return DataEnvelope(data=schemas.control_record(control))


@router.get("/gateways/{id}/custom_domain")
async def list_custom_domains(
    caller: GatewaysReader, gateway_id: GatewayId, domains: Domains
) -> DataEnvelope[Sequence[schemas.CustomDomainRecord]]:
    """List the gateway's own domains, with what each lacks."""
    found = await domains.list(caller.tenant_id, gateway_id)
    return DataEnvelope(data=[schemas.CustomDomainRecord.from_domain(one, domains.origin(one)) for one in found])


@router.post("/gateways/{id}/custom_domain")
async def add_custom_domain(
    caller: GatewaysWriter, gateway_id: GatewayId, body: schemas.AddCustomDomainRequest, domains: Domains
) -> DataEnvelope[schemas.CustomDomainRecord]:
    """Register a domain of one's own, which is verified first; with a CID it serves that content at its root."""
    return _domain_record(domains, await domains.register(caller.tenant_id, gateway_id, body.domain, body.cid))


@router.put("/gateways/{id}/custom_domain/{domainId}")
async def update_custom_domain(
    caller: GatewaysWriter,
    gateway_id: GatewayId,
    domain_id: DomainId,
    body: schemas.UpdateCustomDomainRequest,
    domains: Domains,
) -> DataEnvelope[schemas.CustomDomainRecord]:
    """Change the content at the root of a domain."""
    return _domain_record(domains, await domains.update(caller.tenant_id, gateway_id, domain_id, body.cid))


@router.post("/gateways/{id}/custom_domain/{domainId}/verify")
async def verify_custom_domain(
    caller: GatewaysWriter, gateway_id: GatewayId, domain_id: DomainId, domains: Domains
) -> DataEnvelope[schemas.CustomDomainRecord]:
    """Look for the TXT record, and then for the certificate."""
    return _domain_record(domains, await domains.verify(caller.tenant_id, gateway_id, domain_id))


@router.delete("/gateways/{id}/custom_domain/{domainId}")
async def remove_custom_domain(
    caller: GatewaysWriter, gateway_id: GatewayId, domain_id: DomainId, domains: Domains
) -> DataEnvelope[None]:
    """Remove a domain of a gateway."""
    await domains.remove(caller.tenant_id, gateway_id, domain_id)
    return DataEnvelope(data=None)


@router.get("/gateways/{id}/{kind}")
async def list_controls(
    caller: GatewaysReader, gateway_id: GatewayId, kind: AccessControlKind, gateways: Service
) -> DataEnvelope[Sequence[schemas.AccessControlRecord]]:
    """List the access controls of one kind."""
    found = await gateways.get(caller.tenant_id, gateway_id)
    return DataEnvelope(data=[schemas.control_record(one) for one in found.controls if one.kind is kind])


@router.delete("/gateways/{id}/{kind}/{control:path}")
async def remove_control(
    caller: GatewaysWriter, gateway_id: GatewayId, kind: AccessControlKind, control: ControlName, gateways: Service
) -> DataEnvelope[None]:
    """Delete an access control, by its id or value."""
    await gateways.remove_control(caller.tenant_id, gateway_id, kind, control)
    return DataEnvelope(data=None)


def _record(
    gateways: StorageGatewayService, domains: GatewayDomainService, gateway: StorageGateway, own: Sequence[Domain]
) -> schemas.GatewayRecord:
    records = [schemas.CustomDomainRecord.from_domain(one, domains.origin(one)) for one in own]
    return schemas.gateway_record(gateway, gateways.origin(gateway.domain), records)


def _domain_record(domains: GatewayDomainService, domain: Domain) -> DataEnvelope[schemas.CustomDomainRecord]:
    return DataEnvelope(data=schemas.CustomDomainRecord.from_domain(domain, domains.origin(domain)))
