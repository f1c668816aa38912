"""Format, order and limits of engine versions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roost.core.problem import AccessDenied, InvalidInput, Problem

VERSIONS_LIMIT = 5
"""Maximum number of versions of one engine that agents can install; operators can install more."""
INSTALL_SECONDS = 900.0
"""Time limit of an install for its callers; the install itself may still succeed later."""

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}")
_RELEASE = re.compile(r"\d+(\.\d+)*(-\d+)?")


@dataclass(frozen=True)
class VersionChoices:
    """Versions that an agent can be restarted with, newest first: of its engine, and of each installed engine."""

    engine: str
    current_version: str
    available_versions: Sequence[str]
    available_versions_per_engine: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class EngineReleases:
    """Versions of one engine, newest first: those that are installed, and those and what its registry offers."""

    engine: str
    installed: Sequence[str]
    releases: Sequence[str]


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def sort_releases(versions: Sequence[str]) -> Sequence[str]:
    """Remove pre-releases and duplicates, and sort newest first."""
    return sorted({version for version in versions if _RELEASE.fullmatch(version)}, key=version_key, reverse=True)


def version_key(version: str) -> list[int]:
    """Return the sort key of a release."""
    return [int(number[:18]) for number in re.findall(r"\d+", version)]


class InvalidEngineVersion(InvalidInput):
    """The engine has no such version."""

    message = "Invalid version"


class TooManyEngineVersions(AccessDenied):
    message = "Too many versions of this engine are installed; an operator can remove one"


class VersionInstallFailed(Problem):
    """An install failed; its output goes to the operator's log only."""

    message = "That version could not be installed; the server's log says why"
