"""Schemas of wallet signatures (contract, Signature)."""

from typing import Annotated

from pydantic import Field

from roost.web.schemas import StorageSchema


class AddSignatureRequest(StorageSchema):
    signature: Annotated[str, Field(max_length=1024)]
    address: Annotated[str, Field(max_length=128)]


class SignatureRecord(StorageSchema):
    cid: str
    signature: str
