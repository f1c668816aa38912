"""The identity of the server of a data folder: a random id in the file `host-id`."""

import hashlib
import re
import socket
from pathlib import Path

from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.core import ids
from roost.core.machine.private_file import write_private_file
from roost.settings import BadSettings

_ID = re.compile(r"[A-Za-z0-9-]{1,36}")


def load_host_identity(folder: Path) -> HostIdentity:
    """Return the identity of the data folder, which gets one at its first start. Raises BadSettings."""
    path = folder / "host-id"
    try:
        host_id = path.read_text().strip()
    except FileNotFoundError:
        host_id = ids.new_id()
        write_private_file(path, f"{host_id}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from None
    if not _ID.fullmatch(host_id):
        raise BadSettings(
            f"{path}: must hold the id of this server as `roost hosts list` shows it, got {host_id[:80]!a}"
        )
    return HostIdentity(host_id, socket.gethostname(), str(folder), _session(folder))


def _session(folder: Path) -> str:
    """Return a value that a copy of the folder does not have, on this machine or on another one."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    place = folder.stat()
    return hashlib.sha256(f"{boot} {place.st_dev} {place.st_ino}".encode()).hexdigest()
