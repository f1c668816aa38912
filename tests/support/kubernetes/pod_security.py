"""The pod security standards `baseline` and `restricted`, with the messages of the admission plugin."""

from collections.abc import Iterator

from tests.support.kubernetes.resources import Object

_CAPABILITIES = set(
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT".split()
)
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
            "secret"}  # fmt: skip
_SYSCTLS = set(
    "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports "
    "net.ipv4.ip_unprivileged_port_start "
    "net.ipv4.ping_group_range net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes "
    "net.ipv4.tcp_keepalive_time net.ipv4.tcp_rmem net.ipv4.tcp_syncookies net.ipv4.tcp_wmem".split()
)


def find_violation(labels: Object, mode: str, spec: Object) -> str | None:
    """Return how a pod violates the level of a namespace for `enforce` or `warn`, None if it does not."""
    level = labels.get(f"pod-security.kubernetes.io/{mode}", "privileged")
    version = labels.get(f"pod-security.kubernetes.io/{mode}-version", "latest")
    if level == "privileged":
        return None
    checks = [*_baseline(spec, restricted=level == "restricted")]
    if level == "restricted":
        checks += _restricted(spec)
    if not checks:
        return None
    return f'PodSecurity "{level}:{version}": {", ".join(f"{name} ({detail})" for name, detail in checks)}'


def _containers(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", ()), *spec.get("containers", ()), *spec.get("ephemeralContainers", ())]


def _context(one: Object) -> Object:
    return one.get("securityContext") or {}


def _quote(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(names: list[str], word: str = "container") -> str:
    return f"{word}{'s' if len(names) > 1 else ''} {_quote(names)}"


def _baseline(spec: Object, *, restricted: bool) -> Iterator[tuple[str, str]]:
    containers = _containers(spec)
    if not restricted:  # the restricted checks of capabilities, volumes and seccomp are stricter
        added = {
            one["name"]: set(_context(one).get("capabilities", {}).get("add", ())) - _CAPABILITIES for one in containers
        }
        names = [name for name, wrong in added.items() if wrong]
        if names:
            wrong = _quote(sorted(set().union(*added.values())))
            yield (
                "non-default capabilities",
                f"{_plural(names)} must not include {wrong} in securityContext.capabilities.add",
            )
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield (
                "host namespaces",
                ", ".join(f"{one}=true" for one in ("hostNetwork", "hostPID", "hostIPC") if spec.get(one)),
            )
            break
    paths = [one["name"] for one in spec.get("volumes", ()) if "hostPath" in one]
    if paths and not restricted:
        yield "hostPath volumes", _plural(paths, "volume")
    ports = {one["name"]: [str(p["hostPort"]) for p in one.get("ports", ()) if p.get("hostPort")] for one in containers}
    if any(ports.values()):
        names = [name for name, found in ports.items() if found]
        found = [port for listed in ports.values() for port in listed]
        uses, plural = "use" if len(names) > 1 else "uses", "s" if len(found) > 1 else ""
        yield "hostPort", f"{_plural(names)} {uses} hostPort{plural} {', '.join(found)}"
    privileged = [one["name"] for one in containers if _context(one).get("privileged")]
    if privileged:
        yield "privileged", f"{_plural(privileged)} must not set securityContext.privileged=true"
    if not restricted:
        unconfined = [one["name"] for one in containers if _seccomp(_context(one)) == "Unconfined"]
        if _seccomp(spec.get("securityContext") or {}) == "Unconfined":
            yield "seccompProfile", 'pod must not set securityContext.seccompProfile.type to "Unconfined"'
        elif unconfined:
            yield (
                "seccompProfile",
                f'{_plural(unconfined)} must not set securityContext.seccompProfile.type to "Unconfined"',
            )
    mounts = [one["name"] for one in containers if _context(one).get("procMount", "Default") != "Default"]
    if mounts:
        yield "procMount", f'{_plural(mounts)} must not set securityContext.procMount to "Unmasked"'
    sysctls = [
        one["name"] for one in (spec.get("securityContext") or {}).get("sysctls", ()) if one["name"] not in _SYSCTLS
    ]
    if sysctls:
        yield "forbidden sysctls", ", ".join(sysctls)


def _seccomp(context: Object) -> str | None:
    return (context.get("seccompProfile") or {}).get("type")


def _restricted(spec: Object) -> Iterator[tuple[str, str]]:
    containers, pod = _containers(spec), spec.get("securityContext") or {}
    escalating = [one["name"] for one in containers if _context(one).get("allowPrivilegeEscalation") is not False]
    if escalating:
        yield ("allowPrivilegeEscalation != false",
               f"{_plural(escalating)} must set securityContext.allowPrivilegeEscalation=false")  # fmt: skip
    yield from _check_capabilities(containers)
    volumes = {one["name"]: kind for one in spec.get("volumes", ()) for kind in one if kind not in {*_VOLUMES, "name"}}
    if volumes:
        kinds = _quote(sorted(set(volumes.values())))
        uses = "use" if len(volumes) > 1 else "uses"
        types = "types" if len(set(volumes.values())) > 1 else "type"
        yield "restricted volume types", f"{_plural(list(volumes), 'volume')} {uses} restricted volume {types} {kinds}"
    yield from _check_users(containers, pod)
    allowed = {"RuntimeDefault", "Localhost"}
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    unset = [one["name"] for one in containers if _seccomp(_context(one)) is None and _seccomp(pod) not in allowed]
    wrong = [one["name"] for one in containers if (_seccomp(_context(one)) or "Localhost") not in allowed]
    if _seccomp(pod) not in {None, *allowed}:
        yield "seccompProfile", f'pod must not set securityContext.seccompProfile.type to "{_seccomp(pod)}"'
    elif wrong:
        yield "seccompProfile", f'{_plural(wrong)} must not set securityContext.seccompProfile.type to "Unconfined"'
    elif unset:
        yield "seccompProfile", f"pod or {_plural(unset)} {must}"


def _check_capabilities(containers: list[Object]) -> Iterator[tuple[str, str]]:
    def capabilities(one: Object) -> Object:
        return _context(one).get("capabilities") or {}

    kept = [one["name"] for one in containers if "ALL" not in capabilities(one).get("drop", ())]
    added = {one["name"]: set(capabilities(one).get("add", ())) - {"NET_BIND_SERVICE"} for one in containers}
    adding = [name for name, wrong in added.items() if wrong]
    parts = [f'{_plural(kept)} must set securityContext.capabilities.drop=["ALL"]'] if kept else []
    if adding:
        wrong = _quote(sorted(set().union(*added.values())))
        parts.append(f"{_plural(adding)} must not include {wrong} in securityContext.capabilities.add")
    if parts:
        yield "unrestricted capabilities", "; ".join(parts)


def _check_users(containers: list[Object], pod: Object) -> Iterator[tuple[str, str]]:
    wrong = [one["name"] for one in containers if _context(one).get("runAsNonRoot") is False]
    unset = [
        one["name"] for one in containers if _context(one).get("runAsNonRoot") is None and not pod.get("runAsNonRoot")
    ]
    if wrong:
        yield "runAsNonRoot != true", f"{_plural(wrong)} must not set securityContext.runAsNonRoot=false"
    elif pod.get("runAsNonRoot") is False and unset:
        yield "runAsNonRoot != true", "pod must not set securityContext.runAsNonRoot=false"
    elif unset:
        yield "runAsNonRoot != true", f"pod or {_plural(unset)} must set securityContext.runAsNonRoot=true"
    roots = [one["name"] for one in containers if _context(one).get("runAsUser") == 0]
    if pod.get("runAsUser") == 0:
        yield "runAsUser=0", "pod must not set runAsUser=0"
    elif roots:
        yield "runAsUser=0", f"{_plural(roots)} must not set runAsUser=0"
