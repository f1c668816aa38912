"""Which form of content a request wants: what a browser shows, or a block, a CAR, a tar (ipfs/specs, path gateway and
trustless gateway). Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roost.hosts.storage_gateway.errors import InvalidGatewayUrl
from roost.hosts.storage_gateway.request import GatewayRequest

RAW, CAR, TAR = "application/vnd.ipld.raw", "application/vnd.ipld.car", "application/x-tar"
_MIMES = {"raw": RAW, "car": CAR, "tar": TAR}
_NAMES = {mime: name for name, mime in _MIMES.items()}
_CAR = {"version": ("1",), "order": ("dfs", "unk"), "dups": ("n", "y")}
"""The parameters of CARs and what is served of each, what is meant by default first."""
_MOST = 32
"""Kinds of content that a client can list."""


@dataclass(frozen=True)
class ContentFormat:
    """`raw`, `car` or `tar`. dups: whether a CAR has a block as often as a walk comes to it.

    location: the query that asks for the same without a header; None where the address says it all.
    """

    name: str
    dups: bool = False
    location: str | None = None


@dataclass(frozen=True)
class _MediaRange:
    """One of the kinds of content that a client takes: how much it likes it, and what it wants of it."""

    mime: str
    weight: float
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def wanted(asked: GatewayRequest) -> ContentFormat | None:
    """None for what a browser shows. The address counts before the header; of a signed link it alone counts, for the
    header was not signed. Raises InvalidUrl.
    """
    named = asked.query.get("format")
    if named is not None and named not in _MIMES:
        raise InvalidGatewayUrl("ERR_ID:00004 - format is raw, car or tar")
    accept = "" if asked.is_private else asked.headers.get("accept", "").lower()
    if named is None and not any(mime in accept for mime in _NAMES):  # as nearly always
        return None
    accepted = list(_accepted(accept))
    if named is not None:
        return _form(asked, named, [one for one in accepted if one.mime == _MIMES[named]])
    ours = [one for one in accepted if one.mime in _NAMES and one.weight > 0]
    if not ours:
        return None
    best = max(ours, key=lambda one: one.weight)
    if any(one.weight > best.weight for one in accepted):
        return None
    return _form(asked, _NAMES[best.mime], [one for one in ours if one.mime == best.mime])


def _form(asked: GatewayRequest, name: str, accepted: list[_MediaRange]) -> ContentFormat:
    """accepted: in which variants of the form the header wants it."""
    if name != "car":
        return ContentFormat(name, location=_location(asked, {"format": name}))
    told = {key: value for key in _CAR if (value := asked.query.get(f"car-{key}")) is not None}
    variants = [{**one.parameters, **told} for one in sorted(accepted, key=lambda one: -one.weight)] or [told]
    for variant in variants:
        if all(variant.get(key, served[0]) in served for key, served in _CAR.items()):
            extra = {f"car-{key}": variant[key] for key in ("dups",) if key in variant}
            return ContentFormat(name, variant.get("dups") == "y", _location(asked, {"format": name, **extra}))
    raise InvalidGatewayUrl("ERR_ID:00004 - CARs are served with version=1, order=dfs, dups=n or dups=y")


def _location(asked: GatewayRequest, fields: Mapping[str, str]) -> str | None:
    missing = [f"{name}={value}" for name, value in fields.items() if name not in asked.query]
    return "&".join(filter(None, (asked.query_string, *missing))) if missing else None


def _accepted(header: str) -> Iterable[_MediaRange]:
    """What `Accept` lists, in lower case (RFC 9110, 12.5.1); what has no sense in it is not there."""
    for item in header.split(",")[:_MOST]:
        mime, *fields = (part.strip(" \t") for part in item.split(";"))
        parameters = {name.strip(): value.strip(' \t"') for name, _, value in (one.partition("=") for one in fields)}
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            continue
        if mime and 0 <= weight <= 1:
            yield _MediaRange(mime, weight, parameters)
