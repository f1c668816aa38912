"""Schemas of storage gateways. Access controls use camelCase, which clients expect."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt

from roost.core.sensitive import Sensitive
from roost.domain_names.model import Domain, DomainStatus
from roost.storage.gateways.model import AccessControl, AccessControlKind, Plugin, PluginNotFound, StorageGateway
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


def find_plugin_record(plugin_id: int) -> PluginRecord:
    if plugin_id not in PLUGIN_RECORDS:
        raise PluginNotFound
    return PLUGIN_RECORDS[plugin_id]
