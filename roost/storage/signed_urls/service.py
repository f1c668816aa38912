"""Links: make a signed address, check one. Nothing is stored: the signature is all that there is to know.

A link counts until its time is over, whatever becomes of the key that asked for it; what it leads to is looked for when
it is used, under the tenant that signed.
"""

import hashlib
import hmac
import json
import re
from datetime import datetime

from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.identity.signing import SigningKeys
from roost.storage.signed_urls.errors import InvalidSignedUrl, SignedUrlRefused
from roost.storage.signed_urls.model import (
    DOWNLOAD,
    SIGNATURE,
    UPLOAD,
    URL_LIMIT,
    Pairs,
    SignedAddress,
    UploadGrant,
    ValidityPeriod,
)
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.errors import InvalidCid

_METHODS = {"GET": ("GET", "HEAD")}
_UPLOAD_METHODS = ("HEAD", "PATCH", "POST")
_FILE = re.compile(r"/v3/files/([0-9a-f-]{36})")
_OURS = "x-"


class SignedUrlService:
    def __init__(self, db: Database, sealer: Sealer, uploads_url: str) -> None:
        self._db = db
        self._keys = SigningKeys(sealer)
        self._uploads_url = uploads_url

    async def download(self, tenant_id: str, url: str, window: ValidityPeriod, method: str = "GET") -> str:
        """`url` (`https://{gateway}/files/{cid}`, with parameters or without) with a signature. Raises InvalidLink."""
        address = SignedAddress.parse(url)
        _check_file(address)
        if method not in _METHODS:
            raise InvalidSignedUrl("method must be GET")
        if any(name.lower().startswith(_OURS) for name, _ in address.pairs):
            raise InvalidSignedUrl("The url is signed already")
        return await self._signed(tenant_id, address.extended(_terms(DOWNLOAD, window, method)))

    async def check(self, tenant_id: str, method: str, url: str) -> datetime:
        """Whether the tenant signed that address for that method, and until when it counts.

        tenant_id: whose gateway was asked. url: scheme, host name as asked, path and parameters; scheme and port may be
        any. Raises LinkRefused, LinkExpired.
        """
        address = _asked(url)
        window = await self._checked(tenant_id, address, DOWNLOAD)
        if method not in _METHODS.get(address.only("X-Method"), ()):
            raise SignedUrlRefused
        window.check(clock.utc_now())
        return window.end

    async def upload(self, grant: UploadGrant, window: ValidityPeriod) -> str:
        """An address of the upload host that takes one file, as a form or in parts. Raises InvalidLink."""
        terms = [
            *_terms(UPLOAD, window, json.dumps(_UPLOAD_METHODS, separators=(",", ":"))),
            ("X-User-ID", grant.tenant_id),
            ("X-Options", grant.options()),
        ]
        address = SignedAddress.parse(f"{self._uploads_url}/v3/files/{grant.file_id}").extended(terms)
        return await self._signed(grant.tenant_id, address)

    async def admit(self, method: str, path: str, query: str) -> UploadGrant:
        """What the signed address of an upload grants, asked at whatever address of ours.

        Raises LinkRefused, LinkExpired.
        """
        address = _asked(f"{self._uploads_url}{path}?{query}")
        file, tenant_id = _FILE.fullmatch(address.path), address.only("X-User-ID")
        window = await self._checked(tenant_id, address, UPLOAD)
        if file is None or method not in json.loads(address.only("X-Method")):
            raise SignedUrlRefused
        window.check(clock.utc_now())
        return UploadGrant.read(tenant_id, file[1], address.only("X-Options"))

    async def _signed(self, tenant_id: str, address: SignedAddress) -> str:
        _, key = await self._db.write(self._keys.get_newest)
        signature = _mac(key, tenant_id, address).hex()
        url = str(address.extended([(SIGNATURE, signature)]))
        if len(url) > URL_LIMIT:
            raise InvalidSignedUrl("What is signed is too long for a url")
        return url

    async def _checked(self, tenant_id: str, address: SignedAddress, purpose: str) -> ValidityPeriod:
        shown = address.only(SIGNATURE).encode()
        keys = await self._db.read(self._keys.secrets)
        if not any(hmac.compare_digest(_mac(key, tenant_id, address).hex().encode(), shown) for key in keys):
            raise SignedUrlRefused
        if address.only("X-Algorithm") != purpose:
            raise SignedUrlRefused
        return address.window()


def _terms(purpose: str, window: ValidityPeriod, method: str) -> Pairs:
    return [
        ("X-Algorithm", purpose),
        ("X-Date", str(window.date)),
        ("X-Expires", str(window.expires)),
        ("X-Method", method),
    ]


def _mac(key: bytes, tenant_id: str, address: SignedAddress) -> bytes:
    """Under a key of its own: what signs tokens signs nothing else."""
    own = hmac.digest(key, b"roost signed addresses", hashlib.sha256)
    return hmac.digest(own, address.message(tenant_id), hashlib.sha256)


def _asked(url: str) -> SignedAddress:
    try:
        return SignedAddress.parse(url)
    except InvalidSignedUrl:
        raise SignedUrlRefused from None


def _check_file(address: SignedAddress) -> None:
    """Raises InvalidLink for what is no address of a file on a gateway."""
    match address.path.split("/"):
        case ["", "files", cid, *_]:
            try:
                Cid.parse(cid)
            except InvalidCid:
                raise InvalidSignedUrl from None
        case _:
            raise InvalidSignedUrl("The url must be of the form https://{gateway}/files/{cid}")
