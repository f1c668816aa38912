"""HTTP API that creates signed URLs for downloads from storage gateways and for uploads."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import ConfigDict, Discriminator, Field, StrictBool, StrictInt, Tag

from roost.core import clock, ids
from roost.identity.authenticator import FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files.signed_urls.model import UploadGrant, ValidityPeriod
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.web.schemas import DataEnvelope, StorageSchema, Text
from roost.web.service_registry import provide_service

Value = Annotated[Text, Field(max_length=1024)] | int | float | bool | None
_NAME = r"[A-Za-z0-9!#$&^_.+-]{1,127}"
MimeType = Annotated[
    str,
    Field(
        pattern=rf"^(\*|[Dd][Ii][Rr][Ee][Cc][Tt][Oo][Rr][Yy]|\*/\*|{_NAME}/(\*|{_NAME}))( ?;[\x20-\x7e]{{0,100}})?$",
        examples=["image/png"],
    ),
]
"""A type (RFC 6838), one with a wildcard (`image/*`), or `directory`."""


class _ValidityFields(StorageSchema):
    """date: Unix seconds, now when it is left out. expires: seconds from then."""

    date: StrictInt | None = None
    expires: StrictInt

    def validity_period(self) -> ValidityPeriod:
        """Return the validity. Raises InvalidSignedUrl."""
        return ValidityPeriod(int(clock.utc_now().timestamp()) if self.date is None else self.date, self.expires)


class SignDownloadRequest(_ValidityFields):
    url: Annotated[str, Field(max_length=2048)]
    method: str = "GET"


class SignUploadRequest(_ValidityFields):
    """`streamable` is accepted and ignored."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["url"]}})

    network: ContentNetwork = ContentNetwork.PRIVATE
    filename: Annotated[Text, Field(max_length=255)] | None = None
    group_id: Annotated[Text, Field(max_length=36)] | None = None
    keyvalues: Annotated[Mapping[Annotated[Text, Field(max_length=255)], Value], Field(max_length=10)] | None = None
    cid_version: Literal["v0", "v1", "unixfs-v1-2025"] | None = None
    max_file_size: Annotated[StrictInt, Field(gt=0)] | None = None
    allow_mime_types: Annotated[Sequence[MimeType], Field(max_length=32)] | None = None
    streamable: StrictBool = False

    def grant(self, tenant_id: str, file_id: str) -> UploadGrant:
        values = {
            "network": self.network.value,
            "name": self.filename,
            "group_id": self.group_id,
            "keyvalues": json.dumps(dict(self.keyvalues), ensure_ascii=False) if self.keyvalues else None,
            "cid_version": self.cid_version,
        }
        fields = {name: value for name, value in values.items() if value}
        return UploadGrant(tenant_id, file_id, fields, self.max_file_size, tuple(self.allow_mime_types or ()))


def _request_kind(body: Any) -> str:
    is_download = isinstance(body, SignDownloadRequest) or (isinstance(body, Mapping) and "url" in body)
    return "download" if is_download else "upload"


SignRequest = Annotated[
    Annotated[SignDownloadRequest, Tag("download")] | Annotated[SignUploadRequest, Tag("upload")],
    Discriminator(_request_kind),
]
"""A body with a `url` signs a download, one without it an upload."""


Service = Annotated[SignedUrlService, Depends(provide_service(SignedUrlService))]
router = APIRouter(tags=["files"])


@router.post("/v3/files/sign")
async def create_upload_link(body: SignRequest, caller: FilesWriter, links: Service) -> DataEnvelope[str]:
    """Sign a URL for an upload, or with a `url` for the download of a private file."""
    if isinstance(body, SignDownloadRequest):
        return await create_download_link(body, caller, links)
    grant = body.grant(caller.tenant_id, ids.new_id())
    return DataEnvelope(data=await links.sign_upload(grant, body.validity_period()))


@router.post("/v3/files/private/download_link")
async def create_download_link(body: SignDownloadRequest, caller: FilesWriter, links: Service) -> DataEnvelope[str]:
    """Sign a URL for the download of a private file."""
    return DataEnvelope(data=await links.sign_download(caller.tenant_id, body.url, body.validity_period(), body.method))
