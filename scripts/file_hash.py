"""Hash of files, by which a script knows whether what it built from them is out of date. Standard library only."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def hash_files(files: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files of the project."""
    whole = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        whole.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return whole.hexdigest()
