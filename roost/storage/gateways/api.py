"""HTTP API of storage gateways."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, StrictInt

from roost.core.sensitive import Sensitive
from roost.domain_names.model import Domain, DomainStatus
from roost.identity.authenticator import GatewaysReader, GatewaysWriter
from roost.storage.gateways.model import (
    PAGE_DEFAULT,
    PAGE_LIMIT,
    AccessControl,
    AccessControlKind,
    Plugin,
    PluginNotFound,
    StorageGateway,
)
from roost.storage.gateways.service import GatewayDomainService, StorageGatewayService
from roost.web.schemas import ApiSchema, DataEnvelope, Moment, SlashText, StorageSchema, Text
from roost.web.service_registry import provide_service

_Domain = Annotated[Text, Field(max_length=253)]


class CreateGatewayRequest(StorageSchema):
    domain: _Domain


class AddAddressRequest(StorageSchema):
    ip: Annotated[Text, Field(max_length=64)]


class AddHostRequest(StorageSchema):
    host: Annotated[Text, Field(max_length=300)]


class InstallPluginRequest(StorageSchema):
    plugin_id: StrictInt


class AccessControlRecord(ApiSchema):  # in camelCase, as clients expect it of this one
    """`value` of an access token is its first characters."""

    id: str
    value: str
    created_at: Moment


class RestrictionPolicies(ApiSchema):
    access_tokens: Sequence[AccessControlRecord]
    allowed_hosts: Sequence[AccessControlRecord]
    allowed_ip_addresses: Annotated[Sequence[AccessControlRecord], Field(alias="allowedIPAddresses")]


class GatewaySettings(StorageSchema):
    restriction_policies: RestrictionPolicies


class AddCustomDomainRequest(StorageSchema):
    """With `cid`, the domain serves that content at its root."""

    domain: Annotated[Text, Field(max_length=1000, examples=["files.example.com"])]
    cid: Annotated[Text | None, Field(max_length=128)] = None


class UpdateCustomDomainRequest(StorageSchema):
    """`cid`: what the domain serves at its root from now on; null for all that the gateway serves."""

    cid: Annotated[Text | None, Field(max_length=128)]


class CustomDomainRecord(StorageSchema):
    """A domain of a gateway; `reason` says what is missing."""

    custom_domain_id: str
    domain: str
    url: str
    cid: str | None
    domain_validation_status: Literal["pending", "active"]
    ssl_validation_status: Literal["pending", "active"]
    reason: str | None
    created_at: Moment

    @classmethod
    def from_domain(cls, domain: Domain, url: str) -> Self:
        return cls(
            custom_domain_id=domain.id,
            domain=domain.name,
            url=url,
            cid=domain.cid,
            domain_validation_status="active" if domain.is_verified else "pending",
            ssl_validation_status="active" if domain.status is DomainStatus.ACTIVE else "pending",
            reason=domain.reason,
            created_at=domain.created_at,
        )


class GatewayRecord(StorageSchema):
    """`restrict`: without access controls, it serves only its tenant's content. `url`: its origin."""

    id: str
    domain: str
    url: str = Field(examples=["http://ada-files.gateways.localhost:8642"])
    restrict: bool
    created_at: Moment
    settings: GatewaySettings
    custom_domains: Sequence[CustomDomainRecord]


class GatewayList(StorageSchema):
    count: int
    rows: Sequence[GatewayRecord]


class GatewayExistence(StorageSchema):
    exists: bool


class PluginInstallation(StorageSchema):
    gateway_id: str
    plugin_id: int


class PluginRecord(StorageSchema):
    id: int
    name: str = Field(examples=["Content Addressable Attestation"])
    description: str = Field(examples=["Serves the wallet signature of a CID with it"])
    tags: Sequence[str]


PLUGIN_RECORDS: Mapping[int, PluginRecord] = {
    Plugin.CONTENT_ADDRESSABLE: PluginRecord(
        id=Plugin.CONTENT_ADDRESSABLE,
        name="Content Addressable Attestation",
        description="Serves the wallet signature of a CID with it, in the header pinata-signature.",
        tags=("verifiability", "security"),
    ),
    Plugin.HOT_SWAPS: PluginRecord(
        id=Plugin.HOT_SWAPS,
        name="Hot Swaps",
        description="Serves another CID in place of one that was swapped.",
        tags=("files",),
    ),
}


def gateway_record(
    gateway: StorageGateway, url: str, custom_domains: Sequence[CustomDomainRecord] = ()
) -> GatewayRecord:
    of_kind = {kind: [control_record(c) for c in gateway.controls if c.kind is kind] for kind in AccessControlKind}
    policies = RestrictionPolicies(
        access_tokens=of_kind[AccessControlKind.TOKEN],
        allowed_hosts=of_kind[AccessControlKind.HOST],
        allowed_ip_addresses=of_kind[AccessControlKind.ADDRESS],
    )
    return GatewayRecord(
        **vars(gateway),
        url=url,
        restrict=gateway.is_restricted,
        settings=GatewaySettings(restriction_policies=policies),
        custom_domains=custom_domains,
    )


def control_record(control: AccessControl, token: Sensitive[str] | None = None) -> AccessControlRecord:
    """Return the schema of an access control; `token` is a new access token, shown only once."""
    value = control.value if token is None else token.reveal()
    return AccessControlRecord(id=control.id, value=value, created_at=control.created_at)


def list_installations(gateway: StorageGateway) -> Sequence[PluginInstallation]:
    return [PluginInstallation(gateway_id=gateway.id, plugin_id=plugin) for plugin in sorted(gateway.plugins)]


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
) -> DataEnvelope[GatewayList]:
    """List gateways, oldest first; the first one is created on this call."""
    found, count = await gateways.list(caller.tenant_id, (page - 1) * size, size)
    of_gateway = await domains.list_by_gateway(caller.tenant_id)
    records = [_record(gateways, domains, one, of_gateway.get(one.domain, ())) for one in found]
    return DataEnvelope(data=GatewayList(count=count, rows=records))


@router.post("/gateways")
async def create_gateway(
    caller: GatewaysWriter, body: CreateGatewayRequest, gateways: Service
) -> DataEnvelope[GatewayRecord]:
    """Create a gateway; `domain` is the first label of its address."""
    gateway = await gateways.create(caller.tenant_id, body.domain)
    return DataEnvelope(data=gateway_record(gateway, gateways.origin(gateway.domain)))


@router.get("/gateways/exists/{domain}")
async def gateway_exists(_: GatewaysReader, domain: str, gateways: Service) -> DataEnvelope[GatewayExistence]:
    """Return whether a name is taken."""
    return DataEnvelope(data=GatewayExistence(exists=await gateways.is_domain_taken(domain)))


@router.get("/gateways/plugins/marketplace")
async def list_marketplace(_: GatewaysReader) -> DataEnvelope[Sequence[PluginRecord]]:
    """List the plugins."""
    return DataEnvelope(data=list(PLUGIN_RECORDS.values()))


@router.get("/gateways/plugins/marketplace/{plugin_id}")
async def get_from_marketplace(_: GatewaysReader, plugin_id: int) -> DataEnvelope[PluginRecord]:
    """Return a plugin."""
    if plugin_id not in PLUGIN_RECORDS:
        raise PluginNotFound
    return DataEnvelope(data=PLUGIN_RECORDS[plugin_id])


@router.get("/gateways/plugins")
async def list_all_plugins(caller: GatewaysReader, gateways: Service) -> DataEnvelope[Sequence[PluginInstallation]]:
    """List the installed plugins of all gateways."""
    found, _ = await gateways.list(caller.tenant_id, 0, PAGE_LIMIT)
    return DataEnvelope(data=[each for one in found for each in list_installations(one)])


@router.get("/ipfs/gateway_plugins/{gateway_id}", name="list_plugins_legacy")
@router.get("/gateways/plugins/{gateway_id}")
async def list_plugins(
    caller: GatewaysReader, gateway_id: str, gateways: Service
) -> DataEnvelope[Sequence[PluginInstallation]]:
    """List the installed plugins of a gateway."""
    return DataEnvelope(data=list_installations(await gateways.get(caller.tenant_id, gateway_id)))


@router.post("/gateways/plugins/{gateway_id}")
async def install_plugin(
    caller: GatewaysWriter, gateway_id: str, body: InstallPluginRequest, gateways: Service
) -> DataEnvelope[PluginInstallation]:
    """Install a plugin on a gateway."""
    await gateways.install_plugin(caller.tenant_id, gateway_id, body.plugin_id)
    return DataEnvelope(data=PluginInstallation(gateway_id=gateway_id, plugin_id=body.plugin_id))


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
) -> DataEnvelope[GatewayRecord]:
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
) -> DataEnvelope[AccessControlRecord]:
    """Create an access token; `value` is shown only once."""
    control, token = await gateways.create_access_token(caller.tenant_id, gateway_id)
    return DataEnvelope(data=control_record(control, token))


@router.post("/gateways/{id}/ips")
async def add_address(
    caller: GatewaysWriter, gateway_id: GatewayId, body: AddAddressRequest, gateways: Service
) -> DataEnvelope[AccessControlRecord]:
    """Allow an address or a CIDR range."""
    control = await gateways.add_allowlist_entry(caller.tenant_id, gateway_id, AccessControlKind.ADDRESS, body.ip)
    return DataEnvelope(data=control_record(control))


@router.post("/gateways/{id}/hosts")
async def add_host(
    caller: GatewaysWriter, gateway_id: GatewayId, body: AddHostRequest, gateways: Service
) -> DataEnvelope[AccessControlRecord]:
    """Allow pages of a host."""
    control = await gateways.add_allowlist_entry(caller.tenant_id, gateway_id, AccessControlKind.HOST, body.host)
    return DataEnvelope(data=control_record(control))


@router.get("/gateways/{id}/custom_domain")
async def list_custom_domains(
    caller: GatewaysReader, gateway_id: GatewayId, domains: Domains
) -> DataEnvelope[Sequence[CustomDomainRecord]]:
    """List the gateway's own domains, with what each lacks."""
    found = await domains.list(caller.tenant_id, gateway_id)
    return DataEnvelope(data=[CustomDomainRecord.from_domain(one, domains.origin(one)) for one in found])


@router.post("/gateways/{id}/custom_domain")
async def add_custom_domain(
    caller: GatewaysWriter, gateway_id: GatewayId, body: AddCustomDomainRequest, domains: Domains
) -> DataEnvelope[CustomDomainRecord]:
    """Register a domain of one's own, which is verified first; with a CID it serves that content at its root."""
    return _domain_record(domains, await domains.register(caller.tenant_id, gateway_id, body.domain, body.cid))


@router.put("/gateways/{id}/custom_domain/{domainId}")
async def update_custom_domain(
    caller: GatewaysWriter,
    gateway_id: GatewayId,
    domain_id: DomainId,
    body: UpdateCustomDomainRequest,
    domains: Domains,
) -> DataEnvelope[CustomDomainRecord]:
    """Change the content at the root of a domain."""
    return _domain_record(domains, await domains.update(caller.tenant_id, gateway_id, domain_id, body.cid))


@router.post("/gateways/{id}/custom_domain/{domainId}/verify")
async def verify_custom_domain(
    caller: GatewaysWriter, gateway_id: GatewayId, domain_id: DomainId, domains: Domains
) -> DataEnvelope[CustomDomainRecord]:
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
) -> DataEnvelope[Sequence[AccessControlRecord]]:
    """List the access controls of one kind."""
    found = await gateways.get(caller.tenant_id, gateway_id)
    return DataEnvelope(data=[control_record(one) for one in found.controls if one.kind is kind])


@router.delete("/gateways/{id}/{kind}/{control:path}")
async def remove_control(
    caller: GatewaysWriter, gateway_id: GatewayId, kind: AccessControlKind, control: ControlName, gateways: Service
) -> DataEnvelope[None]:
    """Delete an access control, by its id or value."""
    await gateways.remove_control(caller.tenant_id, gateway_id, kind, control)
    return DataEnvelope(data=None)


def _record(
    gateways: StorageGatewayService, domains: GatewayDomainService, gateway: StorageGateway, own: Sequence[Domain]
) -> GatewayRecord:
    records = [CustomDomainRecord.from_domain(one, domains.origin(one)) for one in own]
    return gateway_record(gateway, gateways.origin(gateway.domain), records)


def _domain_record(domains: GatewayDomainService, domain: Domain) -> DataEnvelope[CustomDomainRecord]:
    return DataEnvelope(data=CustomDomainRecord.from_domain(domain, domains.origin(domain)))
