"""Create and verify signed URLs, which are stateless.

A URL is valid until it expires, even if the API key that created it is deleted. Its content is resolved on use, as the
signing tenant.
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
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.files.signed_urls.model import (
    DOWNLOAD,
    SIGNATURE,
    UPLOAD,
    URL_LIMIT,
    InvalidSignedUrl,
    Pairs,
    SignedAddress,
    SignedUrlRefused,
    UploadGrant,
    ValidityPeriod,
)

_METHODS = {"GET": ("GET", "HEAD")}
_UPLOAD_METHODS = ("HEAD", "PATCH", "POST")
_FILE = re.compile(r"/v3/files/([0-9a-f-]{36})")
_RESERVED_PREFIX = "x-"


class SignedUrlService:
    def __init__(self, db: Database, sealer: Sealer, uploads_url: str) -> None:
        self._db = db
        self._keys = SigningKeys(sealer)
        self._uploads_url = uploads_url

    async def sign_download(self, tenant_id: str, url: str, period: ValidityPeriod, method: str = "GET") -> str:
        """Sign a download `url` (`https://{gateway}/files/{cid}`, with or without query). Raises InvalidSignedUrl."""
        address = SignedAddress.parse(url)
        _check_file(address)
        if method not in _METHODS:
            raise InvalidSignedUrl("method must be GET")
        if any(name.lower().startswith(_RESERVED_PREFIX) for name, _ in address.pairs):
            raise InvalidSignedUrl("The url is signed already")
        return await self._sign(tenant_id, address.with_parameters(_signed_parameters(DOWNLOAD, period, method)))

    async def verify_download(self, tenant_id: str, method: str, url: str) -> datetime:
        """Verify a download URL and return its end of validity.

        tenant_id: owner of the gateway. url: as requested; scheme and port are ignored.
        Raises SignedUrlRefused, SignedUrlExpired.
        """
        address = _parse_address(url)
        period = await self._verify(tenant_id, address, DOWNLOAD)
        if method not in _METHODS.get(address.get_single("X-Method"), ()):
            raise SignedUrlRefused
        period.check(clock.utc_now())
        return period.end

    async def sign_upload(self, grant: UploadGrant, period: ValidityPeriod) -> str:
        """Sign a URL of the upload host for one form or resumable upload. Raises InvalidSignedUrl."""
        terms = [
            *_signed_parameters(UPLOAD, period, json.dumps(_UPLOAD_METHODS, separators=(",", ":"))),
            ("X-User-ID", grant.tenant_id),
            ("X-Options", grant.encode_options()),
        ]
        address = SignedAddress.parse(f"{self._uploads_url}/v3/files/{grant.file_id}").with_parameters(terms)
        return await self._sign(grant.tenant_id, address)

    async def verify_upload(self, method: str, path: str, query: str) -> UploadGrant:
        """Verify an upload URL, whatever its host, and return its grant. Raises SignedUrlRefused, SignedUrlExpired."""
        address = _parse_address(f"{self._uploads_url}{path}?{query}")
        file, tenant_id = _FILE.fullmatch(address.path), address.get_single("X-User-ID")
        period = await self._verify(tenant_id, address, UPLOAD)
        if file is None or method not in json.loads(address.get_single("X-Method")):
            raise SignedUrlRefused
        period.check(clock.utc_now())
        return UploadGrant.from_options(tenant_id, file[1], address.get_single("X-Options"))

    async def _sign(self, tenant_id: str, address: SignedAddress) -> str:
        _, key = await self._db.write(self._keys.get_newest)
        signature = _mac(key, tenant_id, address).hex()
        url = str(address.with_parameters([(SIGNATURE, signature)]))
        if len(url) > URL_LIMIT:
            raise InvalidSignedUrl("What is signed is too long for a url")
        return url

    async def _verify(self, tenant_id: str, address: SignedAddress, purpose: str) -> ValidityPeriod:
        shown = address.get_single(SIGNATURE).encode()
        keys = await self._db.read(self._keys.secrets)
        if not any(hmac.compare_digest(_mac(key, tenant_id, address).hex().encode(), shown) for key in keys):
            raise SignedUrlRefused
        if address.get_single("X-Algorithm") != purpose:
            raise SignedUrlRefused
        return address.validity_period()


def _signed_parameters(purpose: str, period: ValidityPeriod, method: str) -> Pairs:
    return [
        ("X-Algorithm", purpose),
        ("X-Date", str(period.date)),
        ("X-Expires", str(period.expires)),
        ("X-Method", method),
    ]


def _mac(key: bytes, tenant_id: str, address: SignedAddress) -> bytes:
    """Sign with a derived key, because the base key signs tokens."""
    own = hmac.digest(key, b"roost signed addresses", hashlib.sha256)
    return hmac.digest(own, address.signed_bytes(tenant_id), hashlib.sha256)


def _parse_address(url: str) -> SignedAddress:
    try:
        return SignedAddress.parse(url)
    except InvalidSignedUrl:
        raise SignedUrlRefused from None


def _check_file(address: SignedAddress) -> None:
    """Raise InvalidSignedUrl unless the address is a file on a gateway."""
    match address.path.split("/"):
        case ["", "files", cid, *_] | ["", "gateways", _, "files", cid, *_]:
            try:
                Cid.parse(cid)
            except InvalidCid:
                raise InvalidSignedUrl from None
        case _:
            raise InvalidSignedUrl("The url must be of the form https://{gateway}/files/{cid}")
