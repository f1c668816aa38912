"""Names that Git reserves in trees, in every disguise that a file system of a client may see through.

The rules are those of Git's `verify_path` with `core.protectHFS` and `core.protectNTFS`; a tree with such a name could
overwrite the repository of who checks it out, so clients refuse all of it.
"""

import re

_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL
_END = r"[. ]*(?::.*)?"
_GIT = re.compile(rf"(?:\.git|git~1){_END}", _FLAGS)
_SHORT = "|".join(rf"{'gi7eba'[:kept]}~[1-9][0-9]{{{6 - kept}}}" for kept in range(7))
_MODULES = re.compile(rf"(?:\.gitmodules|gitmod~[1-4]|{_SHORT}){_END}", _FLAGS)


def is_git_name(part: str) -> bool:
    """Return whether one part of a path means `.git` to a file system."""
    return _matches(_GIT, part, ".git")


def is_git_path(path: str, *, is_link: bool) -> bool:
    """Return whether Git refuses a path: one with a `.git` part, or that of a link with a `.gitmodules` part."""
    parts = path.split("/")
    return any(map(is_git_name, parts)) or (is_link and any(_matches(_MODULES, part, ".gitmodules") for part in parts))


def _matches(ntfs: re.Pattern[str], part: str, name: str) -> bool:
    # A backslash separates folders on NTFS.
    return any(map(ntfs.fullmatch, part.split("\\"))) or _IGNORED_BY_HFS.sub("", part).lower() == name
