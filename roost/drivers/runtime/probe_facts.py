"""Facts about a container that a program reads in it, and what they say about its isolation; for probes of runtimes."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roost.drivers.runtime.bwrap import kernel
from roost.drivers.runtime.contract import Enforcement, RuntimeFailed
from roost.warden_client.client import WardenClient

_SECONDS = 10.0
_NAMESPACES = ("user", "pid", "net", "ipc", "uts", "mnt")

# Runs in the container. TIOCSTI without a terminal is ENOTTY, unless the seccomp filter returns EPERM first.
_PROBE_PROGRAM = """
import errno, fcntl, json, os, resource, socket
def call_errno(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0
status = {line.split(":")[0]: line.split()[-1] for line in open("/proc/self/status")}
print(json.dumps({
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16),
    "no_new_privileges": status["NoNewPrivs"] == "1",
    "filtered": status["Seccomp"] == "2" and call_errno(fcntl.ioctl, 0, 0x5412, b"x") == errno.EPERM,
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in %r},
    "interfaces": [name for _, name in socket.if_nameindex()],
    "low_port": call_errno(socket.socket().bind, ("127.0.0.1", 81)),
    "synthetic_address": call_errno(socket.socket().bind, (%r, 0)),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    "file": resource.getrlimit(resource.RLIMIT_FSIZE)[1],
    "tmp": os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize,
    "processes": resource.getrlimit(resource.RLIMIT_NPROC)[1],
    "nice": os.getpriority(os.PRIO_PROCESS, 0),
    "oom_score": int(open("/proc/self/oom_score_adj").read()),
    "oom_score_stays": call_errno(open("/proc/self/oom_score_adj", "w", 1).write, "0\\n") != 0,
}))
""" % (_NAMESPACES, "{}.{}.0.1".format(*kernel.SYNTHETIC_BLOCK))  # noqa: UP031 - the program contains braces


async def read_facts(warden: WardenClient, python: str) -> Mapping[str, Any]:
    """Run the program in a container. Raises RuntimeFailed, ValueError and what the client raises."""
    result = await warden.exec([python, "-I", "-c", _PROBE_PROGRAM], timeout=_SECONDS)
    if result.exit_code != 0:
        raise RuntimeFailed(f"Python does not run in a container: {result.stderr.decode(errors='replace')[-300:]}")
    return json.loads(result.stdout)


def isolation_enforcement(facts: Mapping[str, Any]) -> Sequence[Enforcement]:
    host = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES}
    shared = [name for name in _NAMESPACES if facts["namespaces"][name] == host[name]]
    names = ", ".join(shared)
    capabilities, interfaces = facts["capabilities"], facts["interfaces"]
    unprivileged = capabilities == 0 and facts["no_new_privileges"]
    return [
        report_enforcement("namespaces", not shared, "not shared with the host", f"shared with the host: {names}"),
        report_enforcement("network", interfaces == ["lo"], "only its own loopback", f"it sees {interfaces}"),
        report_enforcement("capabilities", unprivileged, "none, and no way to gain any", f"it has {capabilities:x}"),
        report_enforcement("seccomp", facts["filtered"], "denied calls were tested", "no filter"),
        Enforcement("egress-by-name", facts["low_port"] == facts["synthetic_address"] == 0, _egress_reason(facts)),
    ]


def _egress_reason(facts: Mapping[str, Any]) -> str:
    if facts["low_port"]:
        reason = os.strerror(facts["low_port"])
        return f"low ports are closed in the container ({reason}): egress only for programs with proxy support"
    if facts["synthetic_address"]:
        return "names get loopback addresses: programs that reject those have egress only by the proxy variables"
    return "programs without proxy support go through the proxy too"


def report_enforcement(name: str, enforced: bool, reason: str, otherwise: str) -> Enforcement:
    return Enforcement(name, enforced, reason if enforced else otherwise)
