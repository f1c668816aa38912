"""Add, read and delete wallet signatures, at most one for each file.

A signature is deleted with its file. The same content uploaded again has another date and needs a new signature.
"""

from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.ethereum import checksum_address, parse_address
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.service import get_file
from roost.storage.files.signatures import model, store
from roost.storage.files.signatures.model import (
    InvalidSignature,
    SignatureExists,
    SignatureMissing,
    WalletSignature,
    is_signer,
    parse_signature,
)


class SignatureService:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(
        self, tenant_id: str, network: ContentNetwork, cid: str, signature: str, address: str
    ) -> WalletSignature:
        """Verify and add a signature.

        Raises InvalidCid, InvalidAddress, InvalidSignature, FileNotFound, SignatureExists.
        """
        parsed, signer = parse_signature(signature), parse_address(address)
        parsed_cid = Cid.parse(cid)

        def keep(connection: Connection) -> WalletSignature:
            file = get_file(connection, tenant_id, network, parsed_cid)
            if not is_signer(signer, parsed, model.signable_digests(file, cid, signer)):
                raise InvalidSignature("signature is not by address, or not of this CID and its date")
            created = WalletSignature(file.id, file.cid, signature.lower(), checksum_address(signer), clock.utc_now())
            if not store.insert_signature(connection, created):
                raise SignatureExists
            return created

        return await self._db.write(keep)

    async def get(self, tenant_id: str, network: ContentNetwork, cid: str) -> WalletSignature:
        """Return the signature of a CID. Raises InvalidCid, FileNotFound, SignatureMissing."""
        signature = await self.find(tenant_id, network, Cid.parse(cid))
        if signature is None:
            raise SignatureMissing
        return signature

    async def find(self, tenant_id: str, network: ContentNetwork, cid: Cid) -> WalletSignature | None:
        """Find the signature of a file, or None. Raises FileNotFound."""
        return await self._db.read(
            lambda connection: store.find_signature(connection, get_file(connection, tenant_id, network, cid).id)
        )

    async def delete(self, tenant_id: str, network: ContentNetwork, cid: str) -> None:
        """Delete the signature of a CID. Raises InvalidCid, FileNotFound, SignatureMissing."""
        parsed_cid = Cid.parse(cid)

        def remove(connection: Connection) -> None:
            if not store.delete_signature(connection, get_file(connection, tenant_id, network, parsed_cid).id):
                raise SignatureMissing

        await self._db.write(remove)
