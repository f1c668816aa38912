"""Shapes of storage gateways. The access controls alone are in camelCase: so the clients have them."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AliasChoices, Field

from roost.core.sensitive import Sensitive
from roost.storage.gateways.errors import PluginMissing
from roost.storage.gateways.model import (
    MARKETPLACE,
    Control,
    ControlKind,
    CustomDomain,
    Leaflet,
    StorageGateway,
)
from roost.web.wire import V3, Moment, Text, Wire

_Domain = Annotated[Text, Field(max_length=253)]


class CreateGateway(V3):
    domain: _Domain


class AddCustomDomain(V3):
    domain: Annotated[Text, Field(max_length=253, validation_alias=AliasChoices("domain", "custom_domain"))]


class AddAddress(V3):
    ip: Annotated[Text, Field(max_length=64, validation_alias=AliasChoices("ip", "ip_address", "ipAddress", "value"))]


class AddHost(V3):
    host: Annotated[Text, Field(max_length=300, validation_alias=AliasChoices("host", "origin", "value"))]


class InstallPlugin(V3):
    plugin_id: int


class ControlRecord(Wire):
    """`value` of an access token is how it begins."""

    id: str
    value: str
    created_at: Moment


class Policies(Wire):
    access_tokens: Sequence[ControlRecord]
    allowed_hosts: Sequence[ControlRecord]
    allowed_ip_addresses: Annotated[Sequence[ControlRecord], Field(alias="allowedIPAddresses")]


class GatewaySettings(V3):
    restriction_policies: Policies


class CustomDomainRecord(V3):
    """Nothing is served under a custom domain whose statuses are `pending`."""

    domain: str
    custom_domain_id: str
    domain_validation_status: str = "pending"
    ssl_validation_status: str = "pending"


class GatewayRecord(V3):
    """`restrict`: it has no access control, and serves its tenant's content only. `url`: where it is reached."""

    id: str
    domain: str
    url: str
    restrict: bool
    created_at: Moment
    custom_domains: Sequence[CustomDomainRecord]
    settings: GatewaySettings


class GatewayList(V3):
    count: int
    rows: Sequence[GatewayRecord]


class Existence(V3):
    exists: bool


class Installation(V3):
    gateway_id: str
    plugin_id: int


class PluginRecord(V3):
    id: int
    name: str
    description: str
    image: str
    tags: Sequence[str]


def gateway(one: StorageGateway, url: str) -> GatewayRecord:
    of_kind = {kind: [control(c) for c in one.controls if c.kind is kind] for kind in ControlKind}
    policies = Policies(
        access_tokens=of_kind[ControlKind.TOKEN],
        allowed_hosts=of_kind[ControlKind.HOST],
        allowed_ip_addresses=of_kind[ControlKind.ADDRESS],
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


def control(one: Control, token: Sensitive[str] | None = None) -> ControlRecord:
    """`token`: an access token that was made just now, which is shown this once."""
    value = one.value if token is None else token.reveal()
    return ControlRecord(id=one.id, value=value, created_at=one.created_at)


def custom_domain(one: CustomDomain) -> CustomDomainRecord:
    return CustomDomainRecord(domain=one.domain, custom_domain_id=one.id)


def installations(one: StorageGateway) -> Sequence[Installation]:
    return [Installation(gateway_id=one.id, plugin_id=plugin) for plugin in sorted(one.plugins)]


def plugin(leaflet: Leaflet) -> PluginRecord:
    return PluginRecord(
        id=leaflet.plugin, name=leaflet.name, description=leaflet.description, image="", tags=leaflet.tags
    )


MARKET: Mapping[int, PluginRecord] = {int(leaflet.plugin): plugin(leaflet) for leaflet in MARKETPLACE}


def of_market(plugin_id: int) -> PluginRecord:
    """Raises PluginMissing."""
    if (found := MARKET.get(plugin_id)) is None:
        raise PluginMissing
    return found
