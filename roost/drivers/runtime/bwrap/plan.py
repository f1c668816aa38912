"""Plan of a container as plain data: the arguments of bwrap and the files of `/etc`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roost.drivers.runtime.contract import HOME, WORKSPACE, ContainerSpec

SOCKETS = "/run/roost"
WARDEN = "/run/warden"
USER = 1000

ETC: Mapping[str, bytes] = {
    "/etc/passwd": b"root:x:0:0:root:/root:/usr/sbin/nologin\n"
    b"agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
    b"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": b"root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost agent\n::1 localhost ip6-localhost\n",
    "/etc/resolv.conf": b"nameserver 127.0.0.1\noptions timeout:1 attempts:2\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}
"""Files that are the same in every container."""

HOST_ETC = (
    *("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("os-release", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "protocols"),
    *("services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone"),
)
"""Parts of the host's `/etc` that containers see if they exist: certificates, linker, time; no keys or accounts."""

_ENV: Mapping[str, str] = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "agent",
    "PATH": f"{HOME}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/sh",
    "TERM": "xterm-256color",
    "USER": "agent",
}

_NAMESPACES = ("user", "ipc", "pid", "net", "uts")


@dataclass(frozen=True)
class HostLayout:
    """Paths of the host that the agent's uid can reach; `python` is a path in the container."""

    bwrap: Path
    warden: Path
    python: Path
    workspace: Path
    home: Path
    sockets: Path
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    system_mounts: Sequence[str] = ()


@dataclass(frozen=True)
class InheritedDescriptors:
    """Inherited file descriptors; `files` by path in the container."""

    listener: int
    info: int
    block: int
    seccomp: int
    files: Mapping[str, int]


def bwrap_arguments(spec: ContainerSpec, layout: HostLayout, fds: InheritedDescriptors, mark: str) -> list[str]:
    """Return the whole command. `mark` names the data folder, so that the command line identifies a container."""
    return [
        str(layout.bwrap),
        *(f"--unshare-{name}" for name in _NAMESPACES), "--unshare-cgroup-try", "--disable-userns",
        "--uid", str(USER), "--gid", str(USER), "--hostname", "agent",
        *layout.system_mounts,
        *_etc(),
        *_own_folders(spec),
        *_shared(layout),
        *(part for path, fd in fds.files.items() for part in ("--perms", "0644", "--ro-bind-data", str(fd), path)),
        # Both are writable tmpfs of half the memory unless they are remounted.
        "--remount-ro", "/dev", "--remount-ro", "/",
        "--chdir", WORKSPACE, "--clearenv",
        "--seccomp", str(fds.seccomp), "--info-fd", str(fds.info), "--block-fd", str(fds.block),
        "--cap-drop", "ALL", "--new-session", "--as-pid-1",
        "--", str(layout.python), "-S", "-E", "-I", f"{WARDEN}/warden.py", json.dumps(_config(spec, fds, mark)),
    ]  # fmt: skip


def system_folders(root: Path = Path("/")) -> list[str]:
    """Return the mounts of `/usr`, and of `/bin` and `/lib*`, which usually are links into it."""
    arguments = ["--ro-bind", str(root / "usr"), "/usr"]
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        folder = root / name
        if folder.is_symlink():
            arguments += ["--symlink", str(folder.readlink()), f"/{name}"]
        elif folder.is_dir():
            arguments += ["--ro-bind", str(folder), f"/{name}"]
    return arguments


def parse_agent_id(config: str, mark: str) -> str | None:
    """Return the agent id of a warden's configuration with this mark, None for anything else."""
    try:
        fields = json.loads(config)
        agent_id = fields["agent"] if mark in fields.values() else None  # earlier versions had another key for the mark
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return agent_id if isinstance(agent_id, str) else None


def _etc() -> list[str]:
    arguments = [part for path in ("/etc", "/etc/ssl", "/etc/pki") for part in ("--perms", "0755", "--dir", path)]
    for name in HOST_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return arguments


def _own_folders(spec: ContainerSpec) -> list[str]:
    limit = spec.limits.tmp_bytes
    return [
        "--proc", "/proc", "--dev", "/dev",
        "--perms", "1777", "--size", str(limit), "--tmpfs", "/tmp",  # noqa: S108 - the container's own
        "--perms", "1777", "--size", str(limit), "--tmpfs", "/dev/shm",  # noqa: S108 - as above
        *(part for path in ("/var", "/run", "/home", "/engine") for part in ("--perms", "0755", "--dir", path)),
        "--symlink", "../tmp", "/var/tmp",  # noqa: S108 - as above
    ]  # fmt: skip


def _shared(layout: HostLayout) -> list[str]:
    arguments = ["--bind", str(layout.home), HOME, "--bind", str(layout.workspace), WORKSPACE]
    for target, folder in {SOCKETS: layout.sockets, WARDEN: layout.warden, **layout.folders}.items():
        arguments += ["--ro-bind", str(folder), target]
    return arguments


def _config(spec: ContainerSpec, fds: InheritedDescriptors, mark: str) -> dict[str, Any]:
    return {
        "agent": spec.agent_id,
        "mark": mark,
        "listen_fd": fds.listener,
        "workspace": WORKSPACE,
        "home": HOME,
        "relays": {str(port): f"{SOCKETS}/{name}" for port, name in spec.relays.items()},
        "egress": f"{SOCKETS}/{spec.egress}" if spec.egress else None,
        "env": {**_ENV, **spec.env},
    }
