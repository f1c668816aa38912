"""Shapes of storage gateways. Access controls are in camelCase, as their clients read them."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from roost.core.sensitive import Sensitive
from roost.storage.gateways.errors import PluginNotFound
from roost.storage.gateways.model import (
    MARKETPLACE,
    AccessControl,
    AccessControlKind,
    PluginInfo,
    StorageGateway,
)
from roost.web.schemas import ApiSchema, Moment, StorageSchema, Text

_Domain = Annotated[Text, Field(max_length=253)]


class CreateGatewayRequest(StorageSchema):
    domain: _Domain


class AddAddressRequest(StorageSchema):
    ip: Annotated[Text, Field(max_length=64)]


class AddHostRequest(StorageSchema):
    host: Annotated[Text, Field(max_length=300)]


class InstallPluginRequest(StorageSchema):
    plugin_id: int


class AccessControlRecord(ApiSchema):
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


class GatewayRecord(StorageSchema):
    """`restrict`: without access controls, it serves only its tenant's content. `url`: its origin."""

    id: str
    domain: str
    url: str
    restrict: bool
    created_at: Moment
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
        settings=GatewaySettings(restriction_policies=policies),
    )


def control(one: AccessControl, token: Sensitive[str] | None = None) -> AccessControlRecord:
    """Show an access control; `token` is a new access token, shown only now."""
    value = one.value if token is None else token.reveal()
    return AccessControlRecord(id=one.id, value=value, created_at=one.created_at)


def installations(one: StorageGateway) -> Sequence[PluginInstallation]:
    return [PluginInstallation(gateway_id=one.id, plugin_id=plugin) for plugin in sorted(one.plugins)]


def plugin(info: PluginInfo) -> PluginRecord:
    return PluginRecord(id=info.plugin, name=info.name, description=info.description, tags=info.tags)


MARKET: Mapping[int, PluginRecord] = {int(info.plugin): plugin(info) for info in MARKETPLACE}


def of_market(plugin_id: int) -> PluginRecord:
    """Return a plugin. Raises PluginNotFound."""
    if (found := MARKET.get(plugin_id)) is None:
        raise PluginNotFound
    return found
