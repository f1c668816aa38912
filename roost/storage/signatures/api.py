"""Wallet signatures over HTTP (contract, Storage API)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.identity.door import FilesReader, FilesWriter
from roost.storage.content.model import Network
from roost.storage.signatures import wire
from roost.storage.signatures.service import Signatures
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Signatures, Depends(provide(Signatures))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
router = APIRouter(prefix="/v3/files/{network}/signature/{cid}", tags=["signatures"])


@router.post("")
async def add_signature(
    caller: FilesWriter, network: Network, cid: CidText, body: wire.AddSignature, signatures: Service
) -> Data[wire.SignatureRecord]:
    """Add a wallet's signature to a CID that the tenant has."""
    made = await signatures.add(caller.tenant_id, network, cid, body.signature, body.address)
    return Data(data=wire.SignatureRecord(cid=cid, signature=made.signature))


@router.get("")
async def get_signature(
    caller: FilesReader, network: Network, cid: CidText, signatures: Service
) -> Data[wire.SignatureRecord]:
    """The signature of a CID."""
    found = await signatures.get(caller.tenant_id, network, cid)
    return Data(data=wire.SignatureRecord(cid=cid, signature=found.signature))


@router.delete("")
async def delete_signature(caller: FilesWriter, network: Network, cid: CidText, signatures: Service) -> Data[None]:
    """Take the signature of a CID away; it can be signed again."""
    await signatures.delete(caller.tenant_id, network, cid)
    return Data(data=None)
