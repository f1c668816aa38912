"""The filter, run by a small BPF interpreter; `test_isolation.py` tests it in the kernel."""

import errno
import struct

import pytest

from roost.drivers.runtime.bwrap.seccomp import ARCHITECTURES, compile_filter

ALLOW, KILL = "allow", "kill"
MACHINES = sorted(ARCHITECTURES)


def evaluate(machine: str, call: str | int, *arguments: int, audit: int | None = None) -> str:
    """Return the result of a system call under the filter."""
    number = ARCHITECTURES[machine].calls[call] if isinstance(call, str) else call
    return evaluate_code(compile_filter(machine), machine, number, *arguments, audit=audit)


def evaluate_code(compiled: bytes, machine: str, number: int, *arguments: int, audit: int | None = None) -> str:
    """Return the result of a system call under a compiled filter, `0` for one that succeeds without effect."""
    table = ARCHITECTURES[machine]
    padded = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack("=iIQ6Q", number, table.audit if audit is None else audit, 0, *padded)
    code = list(struct.iter_unpack("=HBBI", compiled))
    at = accumulator = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(value) or errno.errorcode.get(value & 0xFFFF, "0")
            case _:
                pytest.fail(f"unknown operation {operation:x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_listed_calls_are_denied_and_others_allowed(machine: str) -> None:
    with_rules = {"clone", "clone3", "ioctl", "socket", "socketpair", "unshare"}
    assert {evaluate(machine, name) for name in ARCHITECTURES[machine].calls if name not in with_rules} == {"EPERM"}
    listed = set(ARCHITECTURES[machine].calls.values())
    assert {evaluate(machine, number) for number in range(500) if number not in listed} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_with_rules_depend_on_their_arguments(machine: str) -> None:
    thread, child = 0x3D0F00, 0x01200011
    for flags in (thread, child):
        assert evaluate(machine, "clone", flags) == ALLOW
    for space in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert evaluate(machine, "clone", child | space) == "EPERM"
        assert evaluate(machine, "unshare", space) == "EPERM"
    assert evaluate(machine, "unshare", 0x80) == "EPERM"
    assert evaluate(machine, "unshare", 0x400) == ALLOW
    assert evaluate(machine, "clone3") == "ENOSYS"
    assert evaluate(machine, "ioctl", 0, 0x5412) == evaluate(machine, "ioctl", 0, 0x541C) == "EPERM"
    assert evaluate(machine, "ioctl", 0, 0xFFFF_FFFF_0000_5412) == "EPERM"  # the kernel looks at 32 bits
    assert evaluate(machine, "ioctl", 0x5412, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_limited_to_four_families(machine: str) -> None:
    assert {family for family in range(64) if evaluate(machine, "socket", family, 1) == ALLOW} == {1, 2, 10, 16}
    assert {number for number in range(32) if evaluate(machine, "socket", 16, 3, number) == ALLOW} == {0}
    for family in (2, 10):
        assert {number for number in range(300) if evaluate(machine, "socket", family, 1, number) == ALLOW} == {
            0,
            6,
            17,
        }
        assert evaluate(machine, "socket", family, 1, 262) == "EPROTONOSUPPORT"  # MPTCP; programs then use TCP
    assert {family for family in range(64) if evaluate(machine, "socketpair", family, 1) == ALLOW} == {1}


def test_other_abis_are_denied() -> None:
    assert evaluate("x86_64", "mount", audit=0x40000003) == KILL  # i386
    assert evaluate("aarch64", "mount", audit=0x40000028) == KILL  # arm
    assert evaluate("x86_64", 0x40000000 + 165) == "ENOSYS"  # x32


def test_tables_name_the_same_calls() -> None:
    only = {"ioperm", "iopl", "modify_ldt", "sysfs", "uselib"}
    assert set(ARCHITECTURES["x86_64"].calls) - set(ARCHITECTURES["aarch64"].calls) == only
    assert set(ARCHITECTURES["aarch64"].calls) <= set(ARCHITECTURES["x86_64"].calls)
    for machine in ARCHITECTURES.values():
        assert len(set(machine.calls.values())) == len(machine.calls)


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        compile_filter("pdp11")
