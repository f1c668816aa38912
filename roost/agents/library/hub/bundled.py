"""The skills that come with Roost."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from roost.agents.library.hub.model import HubListing, fingerprint_of
from roost.agents.library.skills.bundle import Bundle, read_files
from roost.agents.library.skills.model import BUNDLED_OWNER

_FOLDER = "catalogue"


def is_bundled(found: HubListing) -> bool:
    """Return whether the files of a version come with this release of Roost.

    The owner alone does not tell: earlier releases published the operator's own skills under it.
    """
    return found.skill.owner == BUNDLED_OWNER and found.version.fingerprint in _list_fingerprints()


def read_catalogue() -> Sequence[Bundle]:
    """Read the skills of the package."""
    folder = resources.files("roost.agents.library.hub") / _FOLDER
    return [read_files(_walk_files(one, "")) for one in _list_sorted(folder) if one.is_dir()]


def _walk_files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for one in _list_sorted(folder):
        if one.is_file():
            yield path + one.name, one.read_bytes()
        elif one.name != "__pycache__":
            yield from _walk_files(one, f"{path}{one.name}/")


def _list_sorted(folder: Traversable) -> Sequence[Traversable]:
    return sorted(folder.iterdir(), key=lambda one: one.name) if folder.is_dir() else []


@cache
def _list_fingerprints() -> frozenset[str]:
    return frozenset(map(fingerprint_of, read_catalogue()))
