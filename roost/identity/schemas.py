"""API shapes of keys, as the storage clients expect them, with both camelCase and snake_case names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from roost.identity.errors import InvalidPermissions
from roost.identity.model import ApiKey, IssuedApiKey
from roost.web.schemas import ApiSchema, Moment, StorageSchema, Text

_READ, _WRITE = "org:files:read", "org:files:write"
_ENDPOINTS: Mapping[str, str] = {
    **dict.fromkeys(("pinList", "userPinnedDataTotal", "pinJobs", "getPinObject", "listPinObjects"), _READ),
    **dict.fromkeys(("hashMetadata", "hashPinPolicy", "pinByHash", "pinFileToIPFS", "pinJSONToIPFS"), _WRITE),
    **dict.fromkeys(("unpin", "userPinPolicy", "addPinObject", "removePinObject", "replacePinObject"), _WRITE),
}
"""Scopes of the old API's endpoints, to which a key can be limited."""
_MAX_DEPTH = 3


class KeyPermissions(StorageSchema):
    """Permissions: `admin` for all, otherwise scopes in `resources` or true `endpoints` of the old API."""

    admin: StrictBool = False
    resources: Annotated[Sequence[str], Field(max_length=100)] = ()
    endpoints: Mapping[str, Any] | None = None

    def scopes(self) -> frozenset[str]:
        """Return the scopes, none for an admin. Raises InvalidPermissions if there are none or unknown endpoints."""
        if self.admin:
            return frozenset()
        found = {*self.resources, *_scopes(self.endpoints or {}, _MAX_DEPTH)}
        if not found:
            raise InvalidPermissions("permissions must be admin, or name resources or endpoints")
        return frozenset(found)


class CreateKeyRequest(ApiSchema):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"keyName": "uploads", "permissions": {"resources": [_WRITE]}, "maxUses": 10}]}
    )

    key_name: Annotated[Text, Field(min_length=1, max_length=100)]
    permissions: KeyPermissions
    max_uses: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | None = None


class IssuedKeyRecord(StorageSchema):
    jwt: Annotated[str, Field(serialization_alias="JWT", repr=False)]
    pinata_api_key: str
    pinata_api_secret: Annotated[str, Field(repr=False)]


class KeyScopes(StorageSchema):
    admin: bool
    resources: Sequence[str]


class KeyRecord(StorageSchema):
    """A listed key, without token and secret; `key` identifies it for revocation."""

    id: str
    name: str = Field(examples=["uploads"])
    key: str
    max_uses: int | None
    uses: int
    user_id: str
    scopes: KeyScopes
    revoked: bool
    created_at: Annotated[Moment, Field(serialization_alias="createdAt")]
    updated_at: Annotated[Moment, Field(serialization_alias="updatedAt")]


class KeyList(StorageSchema):
    keys: Sequence[KeyRecord]
    count: int


def issued_key_record(key: IssuedApiKey) -> IssuedKeyRecord:
    return IssuedKeyRecord(jwt=key.token.reveal(), pinata_api_key=key.handle, pinata_api_secret=key.secret.reveal())


def key_list(keys: Sequence[ApiKey], count: int) -> KeyList:
    return KeyList(keys=[_record(key) for key in keys], count=count)


def _record(key: ApiKey) -> KeyRecord:
    fields: dict[str, Any] = {**vars(key), "scopes": KeyScopes(admin=not key.scopes, resources=sorted(key.scopes))}
    return KeyRecord(
        **fields,
        key=key.handle or key.id,
        user_id=key.tenant_id,
        revoked=key.revoked_at is not None,
        updated_at=key.revoked_at or key.created_at,
    )


def _scopes(endpoints: Mapping[str, Any], depth: int) -> Iterator[str]:
    for name, value in endpoints.items():
        if isinstance(value, Mapping) and depth > 0:
            yield from _scopes(cast("Mapping[str, Any]", value), depth - 1)
        elif not isinstance(value, bool) or name not in _ENDPOINTS:
            raise InvalidPermissions(f"permissions.endpoints.{name} is unknown or not a boolean")
        elif value:
            yield _ENDPOINTS[name]
