"""The profile for Docker refuses what the compiled filter refuses."""

import errno
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from roost.drivers.runtime.bwrap import seccomp
from roost.drivers.runtime.docker.seccomp_profile import seccomp_profile

OPERATORS = {
    "SCMP_CMP_EQ": lambda value, rule: value == rule["value"],
    "SCMP_CMP_GT": lambda value, rule: value > rule["value"],
    "SCMP_CMP_MASKED_EQ": lambda value, rule: value & rule["value"] == rule["valueTwo"],
}


def answer(name: str, *arguments: int) -> int:
    """Return the errno that the profile gives a call, 0 if it is allowed."""
    profile: Mapping[str, Any] = seccomp_profile("x86_64")
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    for rule in profile["syscalls"]:
        conditions: Sequence[Mapping[str, Any]] = rule["args"]
        if name in rule["names"] and all(OPERATORS[one["op"]](arguments[one["index"]], one) for one in conditions):
            return rule["errnoRet"]
    return 0


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("mount", 0), errno.EPERM),
        (("bpf", 0), errno.EPERM),
        (("ptrace", 0), 0),
        (("read", 0), 0),
        (("clone3", 0), errno.ENOSYS),
        (("clone", 0x10000000), errno.EPERM),
        (("clone", 17), 0),
        (("unshare", 0x80), errno.EPERM),
        (("unshare", 0x400), 0),
        (("ioctl", 0, 0x5412), errno.EPERM),
        (("ioctl", 0, 0x5413), 0),
        (("socket", 1, 1, 0), 0),
        (("socket", 2, 1, 6), 0),
        (("socket", 10, 2, 17), 0),
        (("socket", 2, 3, 1), errno.EPROTONOSUPPORT),
        (("socket", 2, 1, 262), errno.EPROTONOSUPPORT),
        (("socket", 16, 3, 0), 0),
        (("socket", 16, 3, 9), errno.EAFNOSUPPORT),
        (("socket", 40, 1, 0), errno.EAFNOSUPPORT),
        (("socket", 2**32 + 1, 1, 0), errno.EAFNOSUPPORT),
        (("socketpair", 1, 1, 0), 0),
        (("socketpair", 2, 1, 0), errno.EAFNOSUPPORT),
    ],
)
def test_calls_are_answered(call: tuple[Any, ...], expected: int) -> None:
    assert answer(*call) == expected


def test_every_refused_call_is_refused() -> None:
    with_rules = {"clone", "clone3", "ioctl", "socket", "socketpair", "unshare"}
    for name in seccomp.ARCHITECTURES["x86_64"].calls.keys() - with_rules:
        assert answer(name) == errno.EPERM


def test_another_machine_has_no_profile() -> None:
    with pytest.raises(KeyError):
        seccomp_profile("m68k")
