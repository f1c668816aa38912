"""Wallet signatures over HTTP (contract, Storage API)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files.signatures.service import SignatureService
from roost.web.schemas import DataEnvelope, StorageSchema
from roost.web.service_registry import provide_service


class AddSignatureRequest(StorageSchema):
    signature: Annotated[str, Field(max_length=1024)]
    address: Annotated[str, Field(max_length=128)]


class SignatureRecord(StorageSchema):
    cid: str
    signature: str


Service = Annotated[SignatureService, Depends(provide_service(SignatureService))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
router = APIRouter(prefix="/v3/files/{network}/signature/{cid}", tags=["signatures"])


@router.post("")
async def add_signature(
    caller: FilesWriter, network: ContentNetwork, cid: CidText, body: AddSignatureRequest, signatures: Service
) -> DataEnvelope[SignatureRecord]:
    """Add a wallet signature to a file, by CID."""
    created = await signatures.add(caller.tenant_id, network, cid, body.signature, body.address)
    return DataEnvelope(data=SignatureRecord(cid=cid, signature=created.signature))


@router.get("")
async def get_signature(
    caller: FilesReader, network: ContentNetwork, cid: CidText, signatures: Service
) -> DataEnvelope[SignatureRecord]:
    """Return the signature of a CID."""
    found = await signatures.get(caller.tenant_id, network, cid)
    return DataEnvelope(data=SignatureRecord(cid=cid, signature=found.signature))


@router.delete("")
async def delete_signature(
    caller: FilesWriter, network: ContentNetwork, cid: CidText, signatures: Service
) -> DataEnvelope[None]:
    """Delete the signature of a CID; it can be signed again."""
    await signatures.delete(caller.tenant_id, network, cid)
    return DataEnvelope(data=None)
