"""What is counted of what gateways serve, in lines of a day. Pure.

What visitors send is hostile: it is cut, cleaned, and there are only so many lines. Addresses of visitors are not kept,
and of a referer only its origin: the rest may hold tokens.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import NamedTuple, Self

from roost.storage.content.model import ContentNetwork
from roost.storage.unixfs.cid import Cid

UNKNOWN, OTHER = "unknown", "other"
"""What was not said, and what is not told apart any more."""
DETAILED, PLAIN = 5_000, 5_000
"""Lines of a tenant and a day that tell everything, and after these, lines that tell no more than the CID."""
LONGEST_NAME, LONGEST_AGENT, LONGEST_REFERER = 255, 200, 255

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]{0,19}://[a-z0-9._~:\[\]-]{1,230}", re.ASCII)


class Hit(NamedTuple):
    """An answer with content, as it is counted in memory; equal ones are one.

    cid: None where there are too many to tell them apart. name: what the address calls the content.
    """

    day: int
    tenant_id: str
    gateway_id: str
    network: ContentNetwork
    cid: Cid | None
    name: str
    status: int
    user_agent: str
    referer: str

    def plainer(self) -> Self:
        return self._replace(cid=None, name="", user_agent="", referer="")


@dataclass(slots=True)
class HitCount:
    """bandwidth: bytes of bodies that went out."""

    requests: int = 0
    bandwidth: int = 0

    def add(self, other: "HitCount") -> None:
        self.requests += other.requests
        self.bandwidth += other.bandwidth


@dataclass(frozen=True)
class HitAggregate:
    """What is kept of equal visits."""

    tenant_id: str
    day: date
    gateway_id: str
    cid: str
    file_name: str
    status: int
    user_agent: str
    referer: str

    @cached_property
    def digest(self) -> bytes:
        """What tells the line from all others of its tenant and day."""
        said = (self.gateway_id, self.cid, self.file_name, str(self.status), self.user_agent, self.referer)
        return hashlib.sha256("\0".join(said).encode()).digest()[:16]

    def of_cid(self) -> Self:
        return replace(self, file_name=OTHER, user_agent=OTHER, referer=OTHER)

    def of_gateway(self) -> Self:
        return replace(self.of_cid(), cid=OTHER)


def origin(referer: str) -> str:
    """Scheme and host of an address, as much as is kept of it; nothing where there is none."""
    found = "/".join(referer[: LONGEST_REFERER * 2].split("/", 3)[:3]).lower()
    return found if _ORIGIN.fullmatch(found) else ""


def cleaned(text: str, longest: int) -> str:
    """A text that any database and any terminal takes, `unknown` for none."""
    return "".join(sign for sign in text if sign.isprintable())[:longest].strip() or UNKNOWN


def line(visit: Hit, name: str | None) -> HitAggregate:
    """name: of the tenant's own file, where the address has none."""
    return HitAggregate(
        tenant_id=visit.tenant_id,
        day=date.fromordinal(visit.day),
        gateway_id=visit.gateway_id,
        cid=OTHER if visit.cid is None else str(visit.cid),
        file_name=OTHER if visit.cid is None else cleaned(visit.name or name or "", LONGEST_NAME),
        status=visit.status,
        user_agent=OTHER if visit.cid is None else cleaned(visit.user_agent, LONGEST_AGENT),
        referer=OTHER if visit.cid is None else visit.referer or UNKNOWN,
    )


def fitted(lines: Mapping[HitAggregate, HitCount], there: set[bytes]) -> Mapping[HitAggregate, HitCount]:
    """The lines of a tenant and a day, those beyond the bounds made to tell less; those asked for most come first.

    there: the digests of the lines that are kept already; gets those of the new ones.
    """
    found: dict[HitAggregate, HitCount] = {}
    for wanted, tally in sorted(lines.items(), key=lambda item: -item[1].requests):
        bounds = {wanted: DETAILED, wanted.of_cid(): DETAILED + PLAIN}
        kept = next((one for one, bound in bounds.items() if one.digest in there or len(there) < bound), None)
        kept = wanted.of_gateway() if kept is None else kept
        there.add(kept.digest)
        found.setdefault(kept, HitCount()).add(tally)
    return found
