"""The seccomp filter of containers as a profile of Docker's, from the same tables as the compiled one.

libseccomp compares whole registers and can only name what is refused, so the allow-list of sockets becomes its
complement; a value with high bits, which the kernel ignores, is greater than every limit here and refused.
"""

import errno
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from roost.drivers.runtime.bwrap import seccomp

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


def seccomp_profile(machine: str = platform.machine()) -> Mapping[str, Any]:
    """Return the profile for a machine. Raises KeyError for an unsupported one."""
    with_rules = {"clone", "clone3", "ioctl", "socket", "socketpair", "unshare"}
    plain = sorted(seccomp.ARCHITECTURES[machine].calls.keys() - with_rules)
    namespaces = _bits(seccomp.NEW_NAMESPACES)
    rules = [
        _rule(plain, errno.EPERM),
        _rule(["clone3"], errno.ENOSYS),
        *(_rule(["clone", "unshare"], errno.EPERM, _has_bit(bit)) for bit in namespaces),
        _rule(["unshare"], errno.EPERM, _has_bit(seccomp.NEW_TIME)),
        *(_rule(["ioctl"], errno.EPERM, _equal(1, request)) for request in seccomp.TERMINAL_INPUT),
        *_others(["socket"], 0, (seccomp.UNIX, *seccomp.INTERNET, seccomp.NETLINK), errno.EAFNOSUPPORT),
        *_others(["socketpair"], 0, (seccomp.UNIX,), errno.EAFNOSUPPORT),
        *_others(["socket"], 2, (0,), errno.EAFNOSUPPORT, _equal(0, seccomp.NETLINK)),
        *(
            rule
            for family in seccomp.INTERNET
            for rule in _others(["socket"], 2, seccomp.PROTOCOLS, errno.EPROTONOSUPPORT, _equal(0, family))
        ),
    ]
    return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [_ARCHITECTURES[machine]], "syscalls": rules}


def _others(
    names: Sequence[str], index: int, allowed: Iterable[int], number: int, *conditions: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield rules that refuse every value of an argument that is not allowed."""
    last = max(allowed)
    for value in sorted(set(range(last)).difference(allowed)):
        yield _rule(names, number, *conditions, _equal(index, value))
    yield _rule(names, number, *conditions, {"index": index, "value": last, "op": "SCMP_CMP_GT"})


def _rule(names: Sequence[str], number: int, *conditions: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": number, "args": list(conditions)}


def _equal(index: int, value: int) -> Mapping[str, Any]:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _has_bit(bit: int) -> Mapping[str, Any]:
    return {"index": 0, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"}


def _bits(mask: int) -> Sequence[int]:
    return [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
