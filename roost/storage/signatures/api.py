"""Wallet signatures over HTTP (contract, Storage API)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.signatures import schemas
from roost.storage.signatures.service import SignatureService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[SignatureService, Depends(provide_service(SignatureService))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
router = APIRouter(tags=["signatures"])

_PATH, _BEFORE = "/v3/files/{network}/signature/{cid}", "/v3/ipfs/signature/{cid}"


@router.post(_PATH)
@router.post(_BEFORE)
async def add_signature(
    caller: FilesWriter,
    cid: CidText,
    body: schemas.AddSignatureRequest,
    signatures: Service,
    network: ContentNetwork = ContentNetwork.PUBLIC,
) -> DataEnvelope[schemas.SignatureRecord]:
    """Add a wallet's signature to a CID that the tenant has."""
    made = await signatures.add(caller.tenant_id, network, cid, body.signature, body.address)
    return DataEnvelope(data=schemas.SignatureRecord(cid=cid, signature=made.signature))


@router.get(_PATH)
@router.get(_BEFORE)
async def get_signature(
    caller: FilesReader, cid: CidText, signatures: Service, network: ContentNetwork = ContentNetwork.PUBLIC
) -> DataEnvelope[schemas.SignatureRecord]:
    """The signature of a CID."""
    found = await signatures.get(caller.tenant_id, network, cid)
    return DataEnvelope(data=schemas.SignatureRecord(cid=cid, signature=found.signature))


@router.delete(_PATH)
@router.delete(_BEFORE)
async def delete_signature(
    caller: FilesWriter, cid: CidText, signatures: Service, network: ContentNetwork = ContentNetwork.PUBLIC
) -> DataEnvelope[None]:
    """Take the signature of a CID away; it can be signed again."""
    await signatures.delete(caller.tenant_id, network, cid)
    return DataEnvelope(data=None)
