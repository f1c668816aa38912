"""What bwrap enforces on this machine, found by asking inside a real container that is removed at once; and what to do
where none can be started. Believes no version and no setting: a machine counts as able once it was.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from roost.core import ids
from roost.core.problem import Problem
from roost.drivers.runtime.bwrap import advice, kernel
from roost.drivers.runtime.bwrap.start import ContainerStarter, controllers
from roost.drivers.runtime.contract import (
    Capabilities,
    ContainerLimits,
    ContainerSpec,
    Enforcement,
    Runtime,
    RuntimeFailed,
)
from roost.drivers.runtime.warden_client import WardenClient

_SECONDS = 10.0
_NAMESPACES = ("user", "pid", "net", "ipc", "uts", "mnt")

# Runs in the container. TIOCSTI on what is no terminal is ENOTTY, unless the filter of system calls says EPERM first.
_QUESTIONS = """
import errno, fcntl, json, os, resource, socket
def number(act, *arguments):
    try:
        act(*arguments)
    except OSError as error:
        return error.errno
    return 0
status = {line.split(":")[0]: line.split()[-1] for line in open("/proc/self/status")}
print(json.dumps({
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16),
    "no_new_privileges": status["NoNewPrivs"] == "1",
    "filtered": status["Seccomp"] == "2" and number(fcntl.ioctl, 0, 0x5412, b"x") == errno.EPERM,
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in %r},
    "interfaces": [name for _, name in socket.if_nameindex()],
    "low_port": number(socket.socket().bind, ("127.0.0.1", 81)),
    "stand_in": number(socket.socket().bind, (%r, 0)),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    "file": resource.getrlimit(resource.RLIMIT_FSIZE)[1],
    "processes": resource.getrlimit(resource.RLIMIT_NPROC)[1],
}))
""" % (_NAMESPACES, "{}.{}.0.1".format(*kernel.SYNTHETIC_BLOCK))  # noqa: UP031 - braces are the program's own


async def examine(runtime: Runtime, starter: ContainerStarter) -> Capabilities:
    """Never raises, and takes at most 10 s and the removal of the container."""
    agent_id = f"probe-{ids.new_host_label(10)}"
    try:
        async with asyncio.timeout(_SECONDS):
            container = await runtime.start(ContainerSpec(agent_id, egress="proxy"))
            argv = [str(starter.tools().python), "-I", "-c", _QUESTIONS]
            answer = await WardenClient(lambda: runtime.connect(agent_id)).exec(argv, timeout=_SECONDS)
            if answer.exit_code != 0:
                raise RuntimeFailed(
                    f"Python does not run in a container: {answer.stderr.decode(errors='replace')[-300:]}"
                )
            facts = json.loads(answer.stdout)
            joined = all(str(container.pid) in _members(group) for group in starter.groups(agent_id))
            return Capabilities(usable=True, enforcement=[*_walls(facts), *_limits(facts, joined), *_identity()])
    except TimeoutError:
        return _unusable(f"No container was ready within {_SECONDS:.0f} s", starter)
    except (Problem, OSError, ValueError, KeyError) as error:
        return _unusable(str(error), starter)
    finally:
        with suppress(Problem):
            await runtime.delete(agent_id)


def _walls(facts: Mapping[str, Any]) -> Sequence[Enforcement]:
    outside = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES}
    shared = [name for name in _NAMESPACES if facts["namespaces"][name] == outside[name]]
    powers, alone = facts["capabilities"], facts["interfaces"] == ["lo"]
    locked = powers == 0 and facts["no_new_privileges"]
    return [
        Enforcement(
            "namespaces", not shared, f"shared with the host: {', '.join(shared)}" if shared else "all its own"
        ),
        Enforcement("network", alone, "only its own loopback" if alone else f"it sees {facts['interfaces']}"),
        Enforcement("capabilities", locked, "none, and no way to gain any" if locked else f"it has {powers:x}"),
        Enforcement("seccomp", facts["filtered"], "refused calls were tried" if facts["filtered"] else "no filter"),
        Enforcement("egress-by-name", facts["low_port"] == facts["stand_in"] == 0, _by_name(facts)),
    ]


def _by_name(facts: Mapping[str, Any]) -> str:
    if facts["low_port"]:
        reason = os.strerror(facts["low_port"])
        return (
            f"low ports are closed in the container ({reason}): only programs that honour the proxy variables get out"
        )
    if facts["stand_in"]:
        return "names get loopback addresses: programs that refuse those get out by the proxy variables only"
    return "programs that know no proxy are led through it too"


def _limits(facts: Mapping[str, Any], joined: bool) -> Sequence[Enforcement]:
    wanted, groups = ContainerLimits(), controllers()
    how = {one.name: f"cgroup v{one.version} at {one.base}" for one in groups.usable} if joined else {}
    found = [
        Enforcement(
            name, name in how, how.get(name) or groups.refused.get(name) or "the container did not join its group"
        )
        for name in ("memory", "cpu")
    ]
    counted = facts["processes"] == wanted.pids
    found += [
        Enforcement("pids", "pids" in how or counted, how.get("pids") or ("RLIMIT_NPROC" if counted else "no limit")),
        Enforcement("file-size", facts["file"] == wanted.file_bytes, "RLIMIT_FSIZE"),
        Enforcement("open-files", facts["files"] <= wanted.open_files, "RLIMIT_NOFILE"),
        Enforcement("tmp-size", True, "sized tmpfs"),
        Enforcement(
            "disk-quota", False, "workspace and home lie on the host's file system; only single files are limited"
        ),
    ]
    return found


def _identity() -> Sequence[Enforcement]:
    root = os.geteuid() == 0
    return [
        Enforcement(
            "own-uid", root, "one host user for each agent" if root else "only root can give agents users of their own"
        ),
        Enforcement(
            "rootless",
            not root,
            "the server runs as root" if root else "neither server nor containers have root's rights",
        ),
    ]


def _unusable(reason: str, starter: ContainerStarter) -> Capabilities:
    return Capabilities(usable=False, error="\n".join(filter(None, [reason, advice.machine(starter.tools_folder)])))


def _members(group: Path) -> Sequence[str]:
    try:
        return (group / "cgroup.procs").read_text().split()
    except OSError:
        return ()
