"""Signed URLs are valid for what was signed, and for nothing else."""

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.storage.files.signed_urls.model import (
    InvalidSignedUrl,
    SignedUrlExpired,
    SignedUrlRefused,
    UploadGrant,
    ValidityPeriod,
)
from roost.storage.files.signed_urls.service import SignedUrlService

MINE, OTHER = ids.new_id(), ids.new_id()
CID = "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
URL = f"https://mine.gateways.example.org/files/{CID}"
UPLOADS = "https://uploads.example.org"


@pytest.fixture
def links(database: Database) -> SignedUrlService:
    return SignedUrlService(database, Sealer(Sensitive(b"k" * 32)), UPLOADS)


def now() -> ValidityPeriod:
    return ValidityPeriod(int(clock.utc_now().timestamp()), 60)


def past() -> ValidityPeriod:
    return ValidityPeriod(int((clock.utc_now() - timedelta(minutes=2)).timestamp()), 60)


def changes(url: str) -> Sequence[str]:
    """Return the URL with each parameter changed, omitted or doubled, with one more, and at another path."""
    base, _, query = url.partition("?")
    pairs = parse_qsl(query)
    found = [f"{url}&download=true", f"{base}/x?{query}", f"{base[:-1]}?{query}", base]
    for at, (name, value) in enumerate(pairs):
        others = pairs[:at] + pairs[at + 1 :]
        found += [
            f"{base}?{urlencode([*others, (name, changed)])}"
            for changed in (value + "0", value[:-1], "", value.swapcase())
            if changed != value
        ]
        found += [f"{base}?{urlencode(others)}", f"{base}?{urlencode([*pairs, (name, value)])}"]
    return found


async def test_a_link_opens_what_was_signed(links: SignedUrlService) -> None:
    url = await links.sign_download(MINE, f"{URL}?img-width=100", now())
    said = dict(parse_qsl(urlsplit(url).query))
    assert url.startswith(URL)
    assert said["X-Algorithm"] == "PINATA1"
    assert said["X-Method"] == "GET"
    assert len(bytes.fromhex(said["X-Signature"])) == 32
    assert await links.verify_download(MINE, "GET", url) > clock.utc_now()
    await links.verify_download(MINE, "HEAD", url)
    await links.verify_download(MINE, "GET", url.replace("https://", "http://").replace(".org/", ".org:8642/"))


async def test_a_link_that_was_changed_anywhere_is_refused(links: SignedUrlService) -> None:
    url = await links.sign_download(MINE, f"{URL}?img-width=100", now())
    for changed in changes(url):
        with pytest.raises(SignedUrlRefused):
            await links.verify_download(MINE, "GET", changed)
    for method in ("POST", "DELETE", "get", ""):
        with pytest.raises(SignedUrlRefused):
            await links.verify_download(MINE, method, url)


async def test_a_link_is_of_one_tenant_and_one_gateway(links: SignedUrlService) -> None:
    url = await links.sign_download(MINE, URL, now())
    with pytest.raises(SignedUrlRefused):
        await links.verify_download(OTHER, "GET", url)
    with pytest.raises(SignedUrlRefused):
        await links.verify_download(MINE, "GET", url.replace("//mine.", "//other."))


async def test_a_link_counts_for_its_time(links: SignedUrlService) -> None:
    with pytest.raises(SignedUrlExpired):
        await links.verify_download(MINE, "GET", await links.sign_download(MINE, URL, past()))
    later = ValidityPeriod(int((clock.utc_now() + timedelta(hours=1)).timestamp()), 60)
    with pytest.raises(SignedUrlExpired):
        await links.verify_download(MINE, "GET", await links.sign_download(MINE, URL, later))


@pytest.mark.parametrize(
    "url",
    [
        "mine.example.org/files/" + CID,
        "ftp://mine.example.org/files/" + CID,
        "https://mine.example.org/ipfs/" + CID,
        "https://mine.example.org/files/nothing",
        f"{URL}#x",
        f"https://me@mine.example.org/files/{CID}",
        f"{URL}?X-Expires=99",
        "https://[::1/files/" + CID,
        f"{URL}?{'a' * 9000}",
    ],
)
async def test_only_a_file_of_a_gateway_is_signed(links: SignedUrlService, url: str) -> None:
    with pytest.raises(InvalidSignedUrl):
        await links.sign_download(MINE, url, now())


async def test_a_grant_comes_back_as_it_was_given(links: SignedUrlService) -> None:
    grant = UploadGrant(MINE, ids.new_id(), {"name": "ü.png", "keyvalues": '{"a": 1}'}, 1000, ("image/*",))
    url = urlsplit(await links.sign_upload(grant, now()))
    assert url.hostname == "uploads.example.org"
    assert url.path == f"/v3/files/{grant.file_id}"
    for method in ("POST", "PATCH", "HEAD"):
        assert await links.verify_upload(method, url.path, url.query) == grant


async def test_a_grant_that_was_changed_anywhere_is_refused(links: SignedUrlService) -> None:
    url = await links.sign_upload(UploadGrant(MINE, ids.new_id(), {"network": "public"}, 1000), now())
    for changed in changes(url):
        parts = urlsplit(changed)
        with pytest.raises(SignedUrlRefused):
            await links.verify_upload("POST", parts.path, parts.query)
    parts = urlsplit(url)
    with pytest.raises(SignedUrlRefused):
        await links.verify_upload("DELETE", parts.path, parts.query)


async def test_a_grant_counts_for_its_time(links: SignedUrlService) -> None:
    url = urlsplit(await links.sign_upload(UploadGrant(MINE, ids.new_id()), past()))
    with pytest.raises(SignedUrlExpired):
        await links.verify_upload("POST", url.path, url.query)


async def test_a_download_is_no_upload(links: SignedUrlService) -> None:
    url = urlsplit(await links.sign_download(MINE, URL, now()))
    with pytest.raises(SignedUrlRefused):
        await links.verify_upload("GET", url.path, url.query)


async def test_grant_that_does_not_fit_into_a_url_is_refused(links: SignedUrlService) -> None:
    with pytest.raises(InvalidSignedUrl):
        await links.sign_upload(UploadGrant(MINE, ids.new_id(), {"keyvalues": "x" * 9000}), now())
