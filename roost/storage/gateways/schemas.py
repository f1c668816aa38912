"""Shapes of storage gateways. The access controls alone are in camelCase: so the clients have them."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AliasChoices, Field

from roost.core.sensitive import Sensitive
from roost.storage.gateways.errors import PluginNotFound
from roost.storage.gateways.model import (
    MARKETPLACE,
    AccessControl,
    AccessControlKind,
    CustomDomain,
    PluginInfo,
    StorageGateway,
)
from roost.web.schemas import ApiSchema, Moment, StorageSchema, Text

_Domain = Annotated[Text, Field(max_length=253)]


class CreateGatewayRequest(StorageSchema):
    domain: _Domain


class AddCustomDomain(StorageSchema):
    domain: Annotated[Text, Field(max_length=253, validation_alias=AliasChoices("domain", "custom_domain"))]


class AddAddressRequest(StorageSchema):
    ip: Annotated[Text, Field(max_length=64, validation_alias=AliasChoices("ip", "ip_address", "ipAddress", "value"))]


class AddHostRequest(StorageSchema):
    host: Annotated[Text, Field(max_length=300, validation_alias=AliasChoices("host", "origin", "value"))]


class InstallPluginRequest(StorageSchema):
    plugin_id: int


class AccessControlRecord(ApiSchema):
    """`value` of an access token is how it begins."""

    id: str
    value: str
    created_at: Moment


class RestrictionPolicies(ApiSchema):
    access_tokens: Sequence[AccessControlRecord]
    allowed_hosts: Sequence[AccessControlRecord]
    allowed_ip_addresses: Annotated[Sequence[AccessControlRecord], Field(alias="allowedIPAddresses")]


class GatewaySettings(StorageSchema):
    restriction_policies: RestrictionPolicies


class CustomDomainRecord(StorageSchema):
    """Nothing is served under a custom domain whose statuses are `pending`."""

    domain: str
    custom_domain_id: str
    domain_validation_status: str = "pending"
    ssl_validation_status: str = "pending"


class GatewayRecord(StorageSchema):
    """`restrict`: it has no access control, and serves its tenant's content only. `url`: where it is reached."""

    id: str
    domain: str
    url: str
    restrict: bool
    created_at: Moment
    custom_domains: Sequence[CustomDomainRecord]
    settings: GatewaySettings


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
    name: str
    description: str
    image: str
    tags: Sequence[str]


def gateway(one: StorageGateway, url: str) -> GatewayRecord:
    of_kind = {kind: [control(c) for c in one.controls if c.kind is kind] for kind in AccessControlKind}
    policies = RestrictionPolicies(
        access_tokens=of_kind[AccessControlKind.TOKEN],
        allowed_hosts=of_kind[AccessControlKind.HOST],
        allowed_ip_addresses=of_kind[AccessControlKind.ADDRESS],
    )
    return GatewayRecord(
        id=one.id,
        domain=one.domain,
        url=url,
        restrict=one.is_restricted,
        created_at=one.created_at,
        custom_domains=[custom_domain(domain) for domain in one.custom_domains],
        settings=GatewaySettings(restriction_policies=policies),
    )


def control(one: AccessControl, token: Sensitive[str] | None = None) -> AccessControlRecord:
    """`token`: an access token that was made just now, which is shown this once."""
    value = one.value if token is None else token.reveal()
    return AccessControlRecord(id=one.id, value=value, created_at=one.created_at)


def custom_domain(one: CustomDomain) -> CustomDomainRecord:
    return CustomDomainRecord(domain=one.domain, custom_domain_id=one.id)


def installations(one: StorageGateway) -> Sequence[PluginInstallation]:
    return [PluginInstallation(gateway_id=one.id, plugin_id=plugin) for plugin in sorted(one.plugins)]


def plugin(leaflet: PluginInfo) -> PluginRecord:
    return PluginRecord(
        id=leaflet.plugin, name=leaflet.name, description=leaflet.description, image="", tags=leaflet.tags
    )


MARKET: Mapping[int, PluginRecord] = {int(leaflet.plugin): plugin(leaflet) for leaflet in MARKETPLACE}


def of_market(plugin_id: int) -> PluginRecord:
    """Raises PluginMissing."""
    if (found := MARKET.get(plugin_id)) is None:
        raise PluginNotFound
    return found
