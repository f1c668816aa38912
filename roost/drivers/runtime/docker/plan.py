"""Plan of a container as plain data: the body of `POST /containers/create`, and the volumes that it mounts.

What the driver expects of a ready image, `roost-agent:<version of Roost>`, or `roost-<engine id>:<version>` with an
engine's software:

- `/usr/bin/python3`, Python 3.11 or newer with its standard library, runs the warden, whose modules are compiled for
  the minor version of the server's Python; `/bin/sh`, `git`, `curl`, `ps`, certificates at
  `/etc/ssl/certs/ca-certificates.crt`, and what else agents shall have.
- In an engine's image, the software is at the paths that `Engine.folders` names (`/engine/...`), readable by uid 1000.
- `/workspace` and `/home/agent` are empty folders of 1000:1000 with mode 0700, which new volumes take from them.
- `/run/warden` and `/run/trust` are empty folders, `/var/tmp` is a link to `../tmp`, and `/etc/passwd` and `/etc/group`
  have `agent` (1000, `/home/agent`, `/bin/sh`) and no other account beyond the system's.
- It declares no `VOLUME`: such volumes would stay for ever. Its `ENTRYPOINT`, `CMD`, `USER` and `WORKDIR` are unused.
  Programs get the environment that the warden gives them, and nothing of `ENV`.
"""

import hashlib
import io
import json
import marshal
import struct
import sys
import tarfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path, PurePosixPath
from typing import Any

from roost.drivers.runtime.bwrap import kernel
from roost.drivers.runtime.contract import HOME, PROGRAM_ENV, WORKSPACE, ContainerSpec
from roost.drivers.runtime.docker.archives import add_parents

WARDEN = "/run/warden"
PYTHON = ("/usr/bin/python3", "-S", "-E", "-I")
USER, CARRIER_USER = 1000, 1001
BRIDGE = "roost-warden"
OOM_SCORE = 500
_MASKED = "acpi asound interrupts kcore keys latency_stats sched_debug scsi timer_list timer_stats".split()


@dataclass(frozen=True)
class ReadOnlyFiles:
    """Files for a volume that is named by their digest and mounted read-only at `folder`; paths are relative to it.

    caches: further files, of which the paths alone count for the name, because their bytes depend on the process.
    """

    folder: str
    content: Mapping[str, bytes]
    caches: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def name(self) -> str:
        digest = hashlib.sha256()
        for path, content in sorted(self.content.items()):
            digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\0".encode())
        digest.update("\0".join(sorted(self.caches)).encode())
        return f"roost-files-{digest.hexdigest()[:32]}"

    def pack(self) -> bytes:
        """Return the files as a tar archive."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as packed:
            for path, content in sorted({**self.content, **self.caches}.items()):
                add_parents(packed, path)
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(content), 0o444
                packed.addfile(entry, io.BytesIO(content))
        return archive.getvalue()


@dataclass(frozen=True)
class Volumes:
    """Names of the volumes of a container by path."""

    writable: Mapping[str, str]
    read_only: Mapping[str, str]


@cache
def warden_files() -> ReadOnlyFiles:
    """Return the modules of the warden, and their caches of this version of Python, which another one ignores."""
    found = [entry for entry in files("roost.warden").iterdir() if entry.name.endswith(".py")]
    modules = {entry.name: entry.read_bytes() for entry in found}
    return ReadOnlyFiles(WARDEN, modules, dict(_compile_module(*module) for module in modules.items()))


def _compile_module(name: str, source: bytes) -> tuple[str, bytes]:
    """Return path and content of a module's cache, which is not compared with its source (PEP 552)."""
    code = compile(source, f"{WARDEN}/{name}", "exec", dont_inherit=True, optimize=0)
    path = f"__pycache__/{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
    return path, MAGIC_NUMBER + struct.pack("<I", 1) + source_hash(source) + marshal.dumps(code)


def read_only_files(spec: ContainerSpec) -> Sequence[ReadOnlyFiles]:
    """Return the files of a container by folder, the warden's first. A folder of the image is hidden by its files."""
    folders: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for path, content in spec.files.items():
        folders[str(PurePosixPath(path).parent)][PurePosixPath(path).name] = content
    return [warden_files(), *(ReadOnlyFiles(folder, content) for folder, content in sorted(folders.items()))]


def container_body(
    spec: ContainerSpec, image: str, labels: Mapping[str, str], volumes: Volumes, runtime: str, security: Sequence[str]
) -> Mapping[str, Any]:
    """Return the body of the request.

    runtime: OCI runtime, empty for the engine's default. security: further options, the seccomp profile among them.
    """
    limits = spec.limits
    tmpfs = f"rw,nosuid,nodev,mode=1777,size={limits.tmp_bytes}"
    return {
        "Image": image,
        "User": "0:0" if spec.egress else f"{USER}:{USER}",
        "WorkingDir": WORKSPACE,
        "Hostname": "agent",
        "Env": [],
        "Entrypoint": [*_prepare_network(spec), *PYTHON, f"{WARDEN}/warden.py"],
        "Cmd": [json.dumps(_warden_config(spec))],
        "Labels": labels,
        "StopSignal": "SIGTERM",
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "CapAdd": ["NET_ADMIN", "SETGID", "SETPCAP", "SETUID"] if spec.egress else [],
            # Docker's own list, and all of /sys, which is not there in bwrap.
            "MaskedPaths": ["/sys", *(f"/proc/{name}" for name in _MASKED)],
            "SecurityOpt": ["no-new-privileges", *security],
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "NanoCpus": int(limits.cpus * 1e9),
            "PidsLimit": limits.pids,
            "Ulimits": [
                _ulimit("core", 0),
                _ulimit("fsize", limits.file_bytes),
                _ulimit("nofile", limits.open_files),
                _ulimit("nice", 0),
                _ulimit("rtprio", 0),
            ],
            "Tmpfs": {"/tmp": tmpfs},  # noqa: S108 - the container's own
            "ShmSize": limits.tmp_bytes,
            "Mounts": [
                *(mount_volume(path, volume) for path, volume in volumes.writable.items()),
                *(mount_volume(folder, volume, read_only=True) for folder, volume in volumes.read_only.items()),
            ],
            "Sysctls": {"net.ipv4.ip_unprivileged_port_start": "0", "net.ipv6.conf.lo.disable_ipv6": "0"},
            "IpcMode": "private",
            "OomScoreAdj": OOM_SCORE,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}},
            "Dns": ["127.0.0.1"],
            "DnsOptions": ["timeout:1", "attempts:2"],
            **({"Runtime": runtime} if runtime else {}),
        },
    }


def _prepare_network(spec: ContainerSpec) -> Sequence[str]:
    """Return the command that gives names addresses in the container, and all its rights up before it is the warden."""
    return [*PYTHON, "-c", _kernel_program(), str(USER)] if spec.egress else []


@cache
def _kernel_program() -> str:
    return Path(kernel.__file__).read_text()


def _warden_config(spec: ContainerSpec) -> Mapping[str, Any]:
    return {
        "agent": spec.agent_id,
        "bridge": {"name": BRIDGE, "uid": CARRIER_USER},
        "workspace": WORKSPACE,
        "home": HOME,
        "relays": {str(port): name for port, name in spec.relays.items()},
        "egress": spec.egress,
        "env": {**PROGRAM_ENV, **spec.env},
        "delete_only": spec.delete_only,
    }


def _ulimit(name: str, value: int) -> Mapping[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def mount_volume(target: str, volume: str, *, read_only: bool = False) -> Mapping[str, Any]:
    """Return the mount of a volume."""
    return {"Type": "volume", "Source": volume, "Target": target, "ReadOnly": read_only}
