"""The key-encryption key of a deployment: given by configuration, or made once in the data folder."""

import os
from pathlib import Path

from roost.config import BadSettings, Settings
from roost.core import ids
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive


def sealer(settings: Settings) -> Sealer:
    """Raises BadSettings when the key file is not one."""
    if settings.kek is not None:
        return Sealer(settings.kek)
    return Sealer(_from_file(settings.kek_file))


def _from_file(path: Path) -> Sensitive[bytes]:
    if not path.exists():
        _make(path)
    try:
        key = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError) as error:
        raise BadSettings(f"{path}: not a key-encryption key ({error})") from None
    if len(key) != 32:
        raise BadSettings(f"{path}: a key-encryption key has 64 hexadecimal digits")
    return Sensitive(key)


def _make(path: Path) -> None:
    """Write a new key: two processes that start at once end up with one, and a power cut leaves all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{ids.new_id()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(ids.random_bytes(32).hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass  # the other process was first; its key is the key
    finally:
        fresh.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
