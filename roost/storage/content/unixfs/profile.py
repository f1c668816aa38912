"""Import profiles: parameters of chunking, which determine the CID (values: IPIP-0499)."""

from collections.abc import Mapping
from dataclasses import dataclass

from roost.storage.content.unixfs.errors import MalformedContent

_KIB = 1024


@dataclass(frozen=True)
class ImportProfile:
    """Import parameters. chunk: bytes of a leaf. width: links of an inner node. raw: leaves are RAW blocks.

    shard_by_block: shard a folder if its block exceeds 256 KiB; otherwise if its names and CIDs do.
    """

    name: str
    version: int
    chunk: int
    width: int
    raw: bool
    shard_by_block: bool = False


V1 = ImportProfile("v1", 1, 256 * _KIB, 174, raw=True)
UNIXFS_V1_2025 = ImportProfile("unixfs-v1-2025", 1, _KIB * _KIB, 1024, raw=True, shard_by_block=True)
V0 = ImportProfile("v0", 0, 256 * _KIB, 174, raw=False)
PROFILES: Mapping[str, ImportProfile] = {profile.name: profile for profile in (V1, UNIXFS_V1_2025, V0)}
SHARD_ABOVE = 256 * _KIB


def get_profile(name: str) -> ImportProfile:
    """Return the profile with that name. Raises MalformedContent."""
    try:
        return PROFILES[name]
    except KeyError:
        raise MalformedContent(f"cid_version must be one of {', '.join(PROFILES)}") from None
