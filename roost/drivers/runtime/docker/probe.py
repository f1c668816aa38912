"""Probe of a Docker Engine: reports which restrictions are enforced in a real container, or why none can be started."""

from collections.abc import Mapping, Sequence
from typing import Any

from roost.drivers.runtime.contract import ContainerLimits, Enforcement
from roost.drivers.runtime.probe_facts import isolation_enforcement, report_enforcement


def docker_enforcement(info: Mapping[str, Any], facts: Mapping[str, Any], runtime: str) -> Sequence[Enforcement]:
    """Return what the engine (`GET /info`) and the facts about a container say; `runtime` is its OCI runtime."""
    limits = ContainerLimits()
    name = runtime or info.get("DefaultRuntime") or "runc"
    options = " ".join(info.get("SecurityOptions") or ())
    separate = "name=userns" in options or "name=rootless" in options
    kernel = name in _OWN_KERNEL
    return [
        *isolation_enforcement(facts),
        *(
            report_enforcement(
                limit, bool(info.get(field)), "control group of the engine", "the engine reports no support"
            )
            for limit, field in (("memory", "MemoryLimit"), ("cpu", "CpuCfsQuota"), ("pids", "PidsLimit"))
        ),
        *(
            report_enforcement(limit, kept, name, f"the engine ignores {name}")
            for limit, kept, name in (
                ("file-size", facts["file"] == limits.file_bytes, "RLIMIT_FSIZE"),
                ("open-files", facts["files"] <= limits.open_files, "RLIMIT_NOFILE"),
            )
        ),
        report_enforcement("tmp-size", facts["tmp"] <= limits.tmp_bytes, "sized tmpfs", "the engine ignores its size"),
        Enforcement("disk-quota", False, "none by volumes; the server stops agents that use more than `agent_disk`"),
        report_enforcement(
            "own-uid", separate, "user namespace of the engine", "agents share uid 1000 of the engine's machine"
        ),
        report_enforcement(
            "own-kernel", kernel, f"OCI runtime {name}", f"OCI runtime {name} shares the machine's kernel"
        ),
    ]


_OWN_KERNEL = frozenset({"runsc", "kata", "kata-runtime"})
