"""Probe of a cluster: reports which restrictions are enforced in a real pod, and whether it reaches a network."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roost.drivers.runtime.contract import ContainerLimits, Enforcement, RuntimeFailed
from roost.drivers.runtime.docker.plan import PYTHON
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.probe_facts import isolation_enforcement, report_enforcement
from roost.warden_client.client import WardenClient

_SECONDS, _SETTLE_SECONDS = 30.0, 10.0

# The API server accepts connections of all pods, at an address that a kubelet names in every container. A policy may
# refuse connections as well as drop them, and may take a moment to count for a new pod.
_PROGRAM = """
import json, socket, sys, time
try:
    entries = open("/proc/1/environ").read().split("\\0")
except OSError:
    entries = []
variables = dict(entry.split("=", 1) for entry in entries if "=" in entry)
targets = [("169.254.169.254", 80), ("1.1.1.1", 443), ("2606:4700:4700::1111", 443)]
targets += [tuple(target) for target in json.loads(sys.argv[1])]
if "KUBERNETES_SERVICE_HOST" in variables:
    targets.append((variables["KUBERNETES_SERVICE_HOST"], int(variables["KUBERNETES_SERVICE_PORT"])))
def reaches(target):
    try:
        socket.create_connection(target, 1).close()
    except OSError:
        return False
    return True
deadline = time.monotonic() + float(sys.argv[2])
while True:
    reached = [target for target in targets if reaches(target)]
    if not reached or time.monotonic() > deadline:
        break
print(json.dumps(reached))
"""


async def read_reached(warden: WardenClient, addresses: Sequence[tuple[str, int]]) -> Sequence[str]:
    """Return what a pod reaches of the API server, a metadata service, the internet and more `addresses`.

    Raises RuntimeFailed.
    """
    command = [PYTHON[0], "-I", "-c", _PROGRAM, json.dumps(addresses), str(_SETTLE_SECONDS)]
    result = await warden.exec(command, timeout=_SECONDS)
    if result.exit_code != 0:
        raise RuntimeFailed(f"Python does not run in a pod: {result.stderr.decode(errors='replace')[-300:]}")
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in json.loads(result.stdout)]


def pod_enforcement(facts: Mapping[str, Any], reached: Sequence[str], options: ClusterOptions) -> Sequence[Enforcement]:
    """Return what the facts about a pod say."""
    limits = ContainerLimits()
    others = [found for found in isolation_enforcement(facts) if found.name != "network"]
    shown = ", ".join(reached)
    return [
        report_enforcement("network", not reached, "nothing is reached from a pod", f"pods reach {shown}"),
        *others,
        *(Enforcement(name, True, "control group of the node") for name in ("memory", "cpu")),
        report_enforcement(
            "pids",
            0 <= facts["processes"] <= limits.pids,
            "RLIMIT_NPROC in the user namespace of the pod",
            "a limit of the node (podPidsLimit), which a pod without a user namespace cannot ask for",
        ),
        report_enforcement("file-size", facts["file"] == limits.file_bytes, "RLIMIT_FSIZE", "no limit"),
        report_enforcement("open-files", 0 <= facts["files"] <= limits.open_files, "RLIMIT_NOFILE", "no limit"),
        report_enforcement("tmp-size", facts["tmp"] <= limits.tmp_bytes, "sized volume in memory", "it has no size"),
        Enforcement(
            "disk-quota", True, f"the claim has {options.storage_bytes:,} bytes, if its storage enforces sizes"
        ),
        report_enforcement(
            "own-kernel",
            options.runtime_class is not None,
            f"runtime class {options.runtime_class}",
            "pods share the kernel of their node; set kubernetes_runtime_class",
        ),
    ]
