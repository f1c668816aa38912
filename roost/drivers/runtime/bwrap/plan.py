"""Plan of a container as plain data: the arguments of bwrap and the files of `/etc`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roost.drivers.runtime.contract import HOME, PROGRAM_ENV, WORKSPACE, ContainerSpec
from roost.drivers.sandbox.contract import COMMAND_FOLDER, SandboxCommand

SOCKETS = "/run/roost"
WARDEN = "/run/warden"
SANDBOX_PROGRAM = "/program/main.py"
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

HOST_ETC = """
    alternatives ca-certificates ld.so.cache ld.so.conf ld.so.conf.d localtime mime.types os-release pki/ca-trust
    pki/tls/certs pki/tls/cert.pem pki/tls/openssl.cnf protocols services ssl/cert.pem ssl/certs ssl/openssl.cnf
    timezone
""".split()
"""Parts of the host's `/etc` that containers see if they exist: certificates, linker, time; no keys or accounts."""

_LIBRARIES = ("lib", "lib64", "lib32")
_NAMESPACES = ("user", "ipc", "pid", "net", "uts")


@dataclass(frozen=True)
class HostLayout:
    """Paths of the host that the agent's uid can reach; `python` is a path in the container.

    lowers_sessions: whether the warden lowers each session that it starts.
    """

    bwrap: Path
    warden: Path
    python: Path
    workspace: Path
    home: Path
    sockets: Path
    etc: Path
    etc_folders: Sequence[str] = ()
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    system_mounts: Sequence[str] = ()
    lowers_sessions: bool = False


@dataclass(frozen=True)
class InheritedDescriptors:
    """Inherited file descriptors; `socket` is the program's, `files` are by path in the container."""

    socket: int
    info: int
    block: int
    seccomp: int
    files: Mapping[str, int]


def bwrap_arguments(spec: ContainerSpec, layout: HostLayout, fds: InheritedDescriptors, mark: str) -> list[str]:
    """Return the whole command. `mark` names the data folder, so that the command line identifies a container."""
    mounts = [*layout.system_mounts, *_own_folders(spec), *_shared(layout)]
    config = json.dumps(_config(spec, layout, fds, mark))
    return [
        *_isolation(layout.bwrap, mounts, ("/dev", "/"), fds), "--chdir", WORKSPACE,
        "--", str(layout.python), "-S", "-E", "-I", "-X", "utf8", f"{WARDEN}/warden.pyc", config,
    ]  # fmt: skip


def sandbox_arguments(bwrap: Path, python: Path, folders: Mapping[str, Path], fds: InheritedDescriptors) -> list[str]:
    """Return the command of a program of ours (`SANDBOX_PROGRAM`), which sees `folders` and no system files.

    Its first argument is the descriptor of its socket. It ends with the thread that started it.
    """
    mounts = [part for target, folder in folders.items() for part in ("--ro-bind", str(folder), target)]
    linker = ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    return [
        *_isolation(bwrap, [*mounts, *link_folders(_LIBRARIES), *linker], ("/",), fds), "--die-with-parent",
        "--", str(python), "-S", "-E", "-s", SANDBOX_PROGRAM, str(fds.socket),
    ]  # fmt: skip


def command_arguments(
    bwrap: Path, command: SandboxCommand, programs: Mapping[str, Path], folder: Path, fds: InheritedDescriptors
) -> list[str]:
    """Return the command line of a sandboxed command with accessible paths of its programs and its folder.

    It ends with the thread that started it.
    """
    mounts = [part for target, source in programs.items() for part in ("--ro-bind", str(source), target)]
    linker = ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    mounts += [*link_folders(_LIBRARIES), *linker, "--dev", "/dev"]
    mounts += ["--bind" if command.is_writable else "--ro-bind", str(folder), COMMAND_FOLDER]
    return [
        *_isolation(bwrap, mounts, ("/dev", "/"), fds, file_mode="0755"), "--die-with-parent",
        *(part for name, value in command.environment.items() for part in ("--setenv", name, value)),
        "--chdir", COMMAND_FOLDER, "--", "/bin/sh", "-c", command.script, "sh", *command.arguments,
    ]  # fmt: skip


def _isolation(
    bwrap: Path, mounts: Sequence[str], tmpfs: Sequence[str], fds: InheritedDescriptors, file_mode: str = "0644"
) -> list[str]:
    """Return bwrap's part of a command: what the program sees, and that it has no rights. `tmpfs` become read-only."""
    return [
        str(bwrap),
        *(f"--unshare-{name}" for name in _NAMESPACES), "--unshare-cgroup-try", "--disable-userns",
        "--uid", str(USER), "--gid", str(USER), "--hostname", "agent",
        *mounts,
        *(part for path, fd in fds.files.items() for part in ("--perms", file_mode, "--ro-bind-data", str(fd), path)),
        # They are writable and half the memory in size unless they are remounted.
        *(part for path in tmpfs for part in ("--remount-ro", path)),
        "--clearenv",
        "--seccomp", str(fds.seccomp), "--info-fd", str(fds.info), "--block-fd", str(fds.block),
        "--cap-drop", "ALL", "--new-session", "--as-pid-1",
    ]  # fmt: skip


def system_folders(root: Path = Path("/")) -> list[str]:
    """Return the mounts of `/usr`, and of `/bin` and `/lib*`, which usually are links into it."""
    return ["--ro-bind", str(root / "usr"), "/usr", *link_folders(("bin", "sbin", *_LIBRARIES), root)]


def link_folders(names: Sequence[str], root: Path = Path("/")) -> list[str]:
    """Return links like those of the host in `/`; a folder that is no link there is mounted."""
    arguments: list[str] = []
    for name in names:
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
    arguments += ["--ro-bind", str(layout.etc), "/etc"]
    arguments += [part for name in layout.etc_folders for part in ("--ro-bind", f"/etc/{name}", f"/etc/{name}")]
    for target, folder in {SOCKETS: layout.sockets, WARDEN: layout.warden, **layout.folders}.items():
        arguments += ["--ro-bind", str(folder), target]
    return arguments


def _config(spec: ContainerSpec, layout: HostLayout, fds: InheritedDescriptors, mark: str) -> dict[str, Any]:
    return {
        "agent": spec.agent_id,
        "mark": mark,
        "listen_fd": fds.socket,
        "workspace": WORKSPACE,
        "home": HOME,
        "relays": {str(port): f"{SOCKETS}/{name}" for port, name in spec.relays.items()},
        "egress": f"{SOCKETS}/{spec.egress}" if spec.egress else None,
        "env": {**PROGRAM_ENV, **spec.env},
        "delete_only": spec.delete_only,
        "lowers_sessions": layout.lowers_sessions,
    }
