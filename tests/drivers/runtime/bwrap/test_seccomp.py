"""The filter, run through a little interpreter of its own language; `test_walls.py` has the kernel run it."""

import errno
import struct

import pytest

from roost.drivers.runtime.bwrap.seccomp import MACHINES, program

ALLOW, KILL = "allow", "kill"
ARCHITECTURES = sorted(MACHINES)


def judge(machine: str, call: str | int, *arguments: int, audit: int | None = None) -> str:
    """What the kernel would answer to a call."""
    table = MACHINES[machine]
    number = table.calls[call] if isinstance(call, str) else call
    padded = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack("=iIQ6Q", number, table.audit if audit is None else audit, 0, *padded)
    code = list(struct.iter_unpack("=HBBI", program(machine)))
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
                return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(value) or errno.errorcode[value & 0xFFFF]
            case _:
                pytest.fail(f"unknown operation {operation:x}")


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_is_listed_is_refused_and_the_rest_is_not(machine: str) -> None:
    argued = {"clone", "clone3", "ioctl", "socket", "socketpair", "unshare"}
    assert {judge(machine, name) for name in MACHINES[machine].calls if name not in argued} == {"EPERM"}
    listed = set(MACHINES[machine].calls.values())
    assert {judge(machine, number) for number in range(500) if number not in listed} == {ALLOW}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_arguments_decide(machine: str) -> None:
    thread, child = 0x3D0F00, 0x01200011
    for flags in (thread, child):
        assert judge(machine, "clone", flags) == ALLOW
    for space in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(machine, "clone", child | space) == "EPERM"
        assert judge(machine, "unshare", space) == "EPERM"
    assert judge(machine, "unshare", 0x80) == "EPERM"
    assert judge(machine, "unshare", 0x400) == ALLOW
    assert judge(machine, "clone3") == "ENOSYS"
    assert judge(machine, "ioctl", 0, 0x5412) == judge(machine, "ioctl", 0, 0x541C) == "EPERM"
    assert judge(machine, "ioctl", 0, 0xFFFF_FFFF_0000_5412) == "EPERM"  # the kernel looks at 32 bits
    assert judge(machine, "ioctl", 0x5412, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_sockets(machine: str) -> None:
    assert {family for family in range(64) if judge(machine, "socket", family, 1) == ALLOW} == {1, 2, 10, 16}
    assert {number for number in range(32) if judge(machine, "socket", 16, 3, number) == ALLOW} == {0}
    assert {family for family in range(64) if judge(machine, "socketpair", family, 1) == ALLOW} == {1}


def test_another_abi_is_no_way_round() -> None:
    assert judge("x86_64", "mount", audit=0x40000003) == KILL  # i386
    assert judge("aarch64", "mount", audit=0x40000028) == KILL  # arm
    assert judge("x86_64", 0x40000000 + 165) == "ENOSYS"  # x32


def test_tables_name_the_same_calls() -> None:
    only = {"ioperm", "iopl", "modify_ldt", "sysfs", "uselib"}
    assert set(MACHINES["x86_64"].calls) - set(MACHINES["aarch64"].calls) == only
    assert set(MACHINES["aarch64"].calls) <= set(MACHINES["x86_64"].calls)
    for machine in MACHINES.values():
        assert len(set(machine.calls.values())) == len(machine.calls)


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        program("pdp11")
