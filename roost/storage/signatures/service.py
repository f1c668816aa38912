"""Wallet signatures of a tenant's files: added once checked, read, taken away. One for each file.

A signature belongs to the file, not to its content: it goes with the file, and the same content uploaded again has
another date, so that it has to be signed again.
"""

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.files.service import found
from roost.storage.signatures import ethereum, model, store
from roost.storage.signatures.errors import InvalidSignature, SignatureExists, SignatureMissing
from roost.storage.signatures.model import WalletSignature
from roost.storage.unixfs.cid import Cid


class SignatureService:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(
        self, tenant_id: str, network: ContentNetwork, cid: str, signature: str, address: str
    ) -> WalletSignature:
        """Raises InvalidCid, InvalidAddress, InvalidSignature, FileMissing, SignatureExists."""
        parsed, signer = ethereum.parse_signature(signature), ethereum.parse_address(address)
        wanted = Cid.parse(cid)

        def keep(connection: Connection) -> WalletSignature:
            file = found(connection, tenant_id, network, wanted)
            if not ethereum.is_signer(signer, parsed, model.digests(file, cid, signer)):
                raise InvalidSignature("signature is not by address, or not of this CID and its date")
            made = WalletSignature(file.id, file.cid, signature.lower(), ethereum.checksummed(signer), clock.utc_now())
            if not store.add(connection, made):
                raise SignatureExists
            return made

        return await self._db.write(keep)

    async def get(self, tenant_id: str, network: ContentNetwork, cid: str) -> WalletSignature:
        """Raises InvalidCid, FileMissing, SignatureMissing."""
        signature = await self.find(tenant_id, network, Cid.parse(cid))
        if signature is None:
            raise SignatureMissing
        return signature

    async def find(self, tenant_id: str, network: ContentNetwork, cid: Cid) -> WalletSignature | None:
        """The signature of a file, None when it has none. Raises FileMissing."""
        return await self._db.read(
            lambda connection: store.get(connection, found(connection, tenant_id, network, cid).id)
        )

    async def delete(self, tenant_id: str, network: ContentNetwork, cid: str) -> None:
        """Raises InvalidCid, FileMissing, SignatureMissing."""
        wanted = Cid.parse(cid)

        def remove(connection: Connection) -> None:
            if not store.remove(connection, found(connection, tenant_id, network, wanted).id):
                raise SignatureMissing

        await self._db.write(remove)
