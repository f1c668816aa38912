"""What a data folder says of itself: its stores in `stores.json`, and the random id of its server in `host-id`.

`stores.json` names the database, the blob store and the runtime that the folder belongs to, without credentials. A
shell often lacks the settings of the server's unit or container. Without the file, a command there would take an empty
SQLite database for that of the folder, and a server with another runtime would start its agents without their files.
"""

import hashlib
import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.core import ids
from roost.core.machine.private_file import write_private_file
from roost.settings import BadSettings, Settings

NAME = "stores.json"
_HOST_ID = re.compile(r"[A-Za-z0-9-]{1,36}")
_SETTINGS = {"database": "database_url", "blobs": "blobs", "runtime": "runtime"}


def check_stores(settings: Settings) -> None:
    """Raise BadSettings if the settings name another database, blob store or runtime than that of their data folder.

    The two runtimes may change places.
    """
    path, named = settings.data / NAME, _describe_stores(settings)
    for store, known in _read(path).items():
        if store in named and named[store] != known and known != f"the runtime {settings.other_runtime}":
            setting = _SETTINGS[store]
            is_own = known in {"its own SQLite database", "the folder blobs", "the runtime bwrap"}
            raise BadSettings(
                f"{setting}: {settings.data} belongs to {known}, but the settings name {named[store]}. "
                f"{'Unset' if is_own else 'Set'} ROOST_{setting.upper()}, as it is where the server runs; "
                f"if {known} was moved, delete {path}."
            )


def record_stores(settings: Settings) -> None:
    """Write the file, if there is none or it names another runtime. Raises BadSettings and OSError."""
    path, named = settings.data / NAME, _describe_stores(settings)
    if _read(path) != named:
        write_private_file(path, json.dumps(named), replace=path.exists())


def _describe_stores(settings: Settings) -> Mapping[str, str]:
    url = urlsplit(settings.database_url.reveal())
    if url.scheme.startswith("sqlite"):
        file = Path(url.path.removeprefix("/")).resolve()
        own = file == (settings.data / "roost.db").resolve()
        database = "its own SQLite database" if own else f"the SQLite database {file}"
    else:
        host = url.netloc.rpartition("@")[2]
        database = f"the database {url.scheme.partition('+')[0]}://{host}{url.path}"
    return {"database": database, "blobs": _describe_blobs(settings), "runtime": f"the runtime {settings.runtime}"}


def _describe_blobs(settings: Settings) -> str:
    place = settings.blobs.partition("?")[0]
    if "://" in place:
        return f"the bucket {place}"
    folder, data = (settings.data / place).resolve(), settings.data.resolve()  # a data folder may move with its own
    return f"the folder {folder.relative_to(data) if folder.is_relative_to(data) else folder}"


def _read(path: Path) -> Mapping[str, str]:
    try:
        found: Any = json.loads(path.read_text())
        return {str(store): str(known) for store, known in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise BadSettings(f"{path} cannot be read: {error}") from None


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
    if not _HOST_ID.fullmatch(host_id):
        raise BadSettings(
            f"{path}: must hold the id of this server as `roost hosts list` shows it, got {host_id[:80]!a}"
        )
    return HostIdentity(host_id, socket.gethostname(), str(folder), _session(folder))


def _session(folder: Path) -> str:
    """Return a value that a copy of the folder does not have, on this machine or on another one."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    place = folder.stat()
    return hashlib.sha256(f"{boot} {place.st_dev} {place.st_ino}".encode()).hexdigest()
