"""Schemas of storage gateways. Access controls use camelCase, which clients expect."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, StrictInt

from roost.core.sensitive import Sensitive
from roost.storage.gateways.errors import PluginNotFound
from roost.storage.gateways.model import AccessControl, AccessControlKind, Plugin, StorageGateway
from roost.web.schemas import ApiSchema, Moment, StorageSchema, Text

_Domain = Annotated[Text, Field(max_length=253)]


class CreateGatewayRequest(StorageSchema):
    domain: _Domain


class AddAddressRequest(StorageSchema):
    ip: Annotated[Text, Field(max_length=64)]


class AddHostRequest(StorageSchema):
    host: Annotated[Text, Field(max_length=300)]


class InstallPluginRequest(StorageSchema):
    plugin_id: StrictInt


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
    url: str = Field(examples=["http://ada-files.gateways.localhost:8642"])
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


def gateway_record(gateway: StorageGateway, url: str) -> GatewayRecord:
    of_kind = {kind: [control_record(c) for c in gateway.controls if c.kind is kind] for kind in AccessControlKind}
    policies = RestrictionPolicies(
        access_tokens=of_kind[AccessControlKind.TOKEN],
        allowed_hosts=of_kind[AccessControlKind.HOST],
        allowed_ip_addresses=of_kind[AccessControlKind.ADDRESS],
    )
    return GatewayRecord(
        id=gateway.id,
        domain=gateway.domain,
        url=url,
        restrict=gateway.is_restricted,
        created_at=gateway.created_at,
        settings=GatewaySettings(restriction_policies=policies),
    )


def control_record(control: AccessControl, token: Sensitive[str] | None = None) -> AccessControlRecord:
    """Return the schema of an access control; `token` is a new access token, shown only once."""
    value = control.value if token is None else token.reveal()
    return AccessControlRecord(id=control.id, value=value, created_at=control.created_at)


def list_installations(gateway: StorageGateway) -> Sequence[PluginInstallation]:
    return [PluginInstallation(gateway_id=gateway.id, plugin_id=plugin) for plugin in sorted(gateway.plugins)]


def find_plugin_record(plugin_id: int) -> PluginRecord:
    """Return a plugin. Raises PluginNotFound."""
    if plugin_id not in PLUGIN_RECORDS:
        raise PluginNotFound
    return PLUGIN_RECORDS[plugin_id]
