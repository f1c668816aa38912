"""Choice of a format: what browsers show, a block, a CAR or a tar (ipfs/specs, path and trustless gateway). Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roost.http.storage_gateway.errors import FormatNotServed, InvalidGatewayUrl
from roost.http.storage_gateway.request import GatewayRequest

RAW, CAR, TAR = "application/vnd.ipld.raw", "application/vnd.ipld.car", "application/x-tar"
_PROGRAM_FORMATS = ("application/vnd.ipld.", "application/vnd.ipfs.")
"""Formats that only programs ask for; in place of another one, no other content would help them."""
_MIMES = {"raw": RAW, "car": CAR, "tar": TAR}
_NAMES = {mime: name for name, mime in _MIMES.items()}
_CAR_PARAMETERS = {"version": ("1",), "order": ("dfs", "unk"), "dups": ("n", "y")}
"""The supported values of each parameter of a CAR, the default first."""
_HTML_MIMES = frozenset({"text/html", "application/xhtml+xml"})
_MEDIA_RANGES_LIMIT = 32
"""Media ranges of `Accept` that are read."""


@dataclass(frozen=True)
class ContentFormat:
    """`raw`, `car` or `tar`. dups: a CAR repeats a block each time the traversal reaches it.

    location: the query that selects the format without a header; None if the URL already does.
    """

    name: str
    dups: bool = False
    location: str | None = None


@dataclass(frozen=True)
class _MediaRange:
    mime: str
    weight: float
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def negotiate_format(request: GatewayRequest) -> ContentFormat | None:
    """Return the requested format; None for the one that browsers show. The URL has precedence over `Accept`.

    A signed URL does not sign headers, so only its query counts. Raises InvalidGatewayUrl, FormatNotServed.
    """
    name = request.query.get("format")
    if name is not None and name not in _MIMES:
        raise FormatNotServed
    accept = "" if request.is_private else request.headers.get("accept", "").lower()
    if name is None and not any(part in accept for part in (*_PROGRAM_FORMATS, TAR)):  # as nearly always
        return None
    accepted = list(_parse_accept(accept))
    if name is not None:
        return _create_format(request, name, [one for one in accepted if one.mime == _MIMES[name]])
    supported = [one for one in accepted if one.mime in _NAMES and one.weight > 0]
    if not supported:
        wanted = [one for one in accepted if one.weight > 0]
        if wanted and all(one.mime.startswith(_PROGRAM_FORMATS) for one in wanted):
            raise FormatNotServed
        return None
    best = max(supported, key=lambda one: one.weight)
    if any(one.weight > best.weight for one in accepted):
        return None
    return _create_format(request, _NAMES[best.mime], [one for one in supported if one.mime == best.mime])


def accepts_html(request: GatewayRequest) -> bool:
    """Return whether `Accept` names HTML, as that of a browser does when it opens a page."""
    accepted = _parse_accept(request.headers.get("accept", "").lower())
    return any(one.mime in _HTML_MIMES and one.weight > 0 for one in accepted)


def _create_format(request: GatewayRequest, name: str, accepted: list[_MediaRange]) -> ContentFormat:
    """Return the first supported variant of a format; `accepted` are the variants in `Accept`."""
    if name != "car":
        return ContentFormat(name, location=_location(request, {"format": name}))
    in_query = {key: value for key in _CAR_PARAMETERS if (value := request.query.get(f"car-{key}")) is not None}
    variants = [{**one.parameters, **in_query} for one in sorted(accepted, key=lambda one: -one.weight)] or [in_query]
    for variant in variants:
        if all(variant.get(key, values[0]) in values for key, values in _CAR_PARAMETERS.items()):
            dups = {"car-dups": variant["dups"]} if "dups" in variant else {}
            return ContentFormat(name, variant.get("dups") == "y", _location(request, {"format": name, **dups}))
    raise InvalidGatewayUrl("ERR_ID:00004 - CARs are served with version=1, order=dfs, dups=n or dups=y")


def _location(request: GatewayRequest, fields: Mapping[str, str]) -> str | None:
    missing = [f"{name}={value}" for name, value in fields.items() if name not in request.query]
    return "&".join(filter(None, (request.query_string, *missing))) if missing else None


def _parse_accept(header: str) -> Iterable[_MediaRange]:
    """Parse a lower-case `Accept` (RFC 9110, 12.5.1); invalid media ranges are ignored."""
    for item in header.split(",")[:_MEDIA_RANGES_LIMIT]:
        mime, *fields = (part.strip(" \t") for part in item.split(";"))
        parameters = {name.strip(): value.strip(' \t"') for name, _, value in (one.partition("=") for one in fields)}
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            continue
        if mime and 0 <= weight <= 1:
            yield _MediaRange(mime, weight, parameters)
