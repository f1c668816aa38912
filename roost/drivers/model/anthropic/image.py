"""Pictures of a request for the Messages API, which takes four formats and compares label and bytes. Pure."""

import re

from roost.drivers.model.contract import Json, UpstreamRefused

_DATA_URL = re.compile(r"data:([\w.+-]{1,50}/[\w.+-]{1,50})?(?:;[\w.+=-]{1,100}){0,5}?;base64,", re.IGNORECASE)
_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_BEGINNINGS = {"/9j/": "image/jpeg", "iVBORw0KGgo": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the formats begin in base64."""
_OTHER_NAMES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_OTHER_ALPHABET = str.maketrans("-_", "+/")


def image_source(url: str, place: str) -> Json:
    """Return the source of a picture. Raises UpstreamRefused, with the field `place`."""
    if url.startswith("https://"):
        return {"type": "url", "url": url}
    found = _DATA_URL.match(url)
    if found is None:
        raise UpstreamRefused(f"{place}: an image must be a base64 data URL or an HTTPS URL")
    data = "".join(url[found.end() :].split()).translate(_OTHER_ALPHABET)
    if _BASE64.fullmatch(data) is None or len(data.rstrip("=")) % 4 == 1:
        raise UpstreamRefused(f"{place}: the image is not base64")
    label = (found[1] or "").lower()
    known = next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), None)
    kind = known or _OTHER_NAMES.get(label, label)
    if kind not in _TYPES:
        raise UpstreamRefused(f"{place}: this model accepts images in JPEG, PNG, GIF and WebP, not {label or 'this'}")
    return {"type": "base64", "media_type": kind, "data": data + "=" * (-len(data) % 4)}
