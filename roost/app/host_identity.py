"""The identity of the server of a data folder: a random id in the file `host-id`."""

import hashlib
import os
import re
import socket
from pathlib import Path

from roost.agents.hosts.model import HostIdentity
from roost.core import ids
from roost.settings import BadSettings

_ID = re.compile(r"[A-Za-z0-9-]{1,36}")


def load_host_identity(folder: Path) -> HostIdentity:
    """Return the identity of the data folder, which gets one at its first start. Raises BadSettings."""
    path = folder / "host-id"
    try:
        host_id = path.read_text().strip()
    except FileNotFoundError:
        host_id = ids.new_id()
        _write_id(path, host_id)
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from None
    if not _ID.fullmatch(host_id):
        raise BadSettings(
            f"{path}: must hold the id of this server as `roost hosts list` shows it, got {host_id[:80]!a}"
        )
    return HostIdentity(host_id, socket.gethostname(), str(folder), _session(folder))


def _write_id(path: Path, host_id: str) -> None:
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{host_id}\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def _session(folder: Path) -> str:
    """Return a value that a copy of the folder does not have, on this machine or on another one."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    place = folder.stat()
    return hashlib.sha256(f"{boot} {place.st_dev} {place.st_ino}".encode()).hexdigest()
