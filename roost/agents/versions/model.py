"""What counts as a version, how many there may be, and what is told of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VERSIONS_LIMIT = 5
"""Versions of one engine on this machine, beyond which agents bring no more here; operators may."""
INSTALL_SECONDS = 900.0
"""What an install may take before whoever asked for it is told that it failed; it may end well afterwards."""

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}")
_RELEASE = re.compile(r"\d+(\.\d+)*(-\d+)?")


@dataclass(frozen=True)
class VersionChoices:
    """The versions that an agent can be restarted at, newest first; of its engine, and of each that is here."""

    engine: str
    current: str
    versions: Sequence[str]
    per_engine: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class VersionCheck:
    """`latest` is never older than `current`."""

    current: str
    latest: str


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def releases(versions: Sequence[str]) -> Sequence[str]:
    """Without pre-releases and repetitions, newest first."""
    return sorted({version for version in versions if _RELEASE.fullmatch(version)}, key=order, reverse=True)


def order(version: str) -> list[int]:
    """What releases are compared by."""
    return [int(number[:18]) for number in re.findall(r"\d+", version)]
