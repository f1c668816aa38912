"""Seccomp filter of containers, compiled to the kernel's BPF (seccomp(2), linux/filter.h).

A deny-list on top of "no capabilities, no new namespaces": system calls that the kernel offers to an ordinary user and
an agent never needs. Sockets have an allow-list of families and protocols, because a network namespace does not confine
every family (`AF_VSOCK` reaches the hypervisor and the control channels of clouds), and rare protocols, such as MPTCP,
are kernel code that an agent could attack. `io_uring` would bypass that rule.
"""

import errno
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Instruction = tuple[int, int, int, int]

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_KILL, ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000

NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NEW_TIME = 0x80  # CLONE_NEWTIME, for unshare only: clone has its exit signal in these bits
UNIX, INTERNET = 1, (2, 10)  # AF_UNIX; AF_INET, AF_INET6
PROTOCOLS = (0, 6, 17)  # the default of the type, TCP, UDP; not UDPLITE, MPTCP, SMC, SCTP or raw sockets
NETLINK = 16  # only with the protocol NETLINK_ROUTE (0), which getifaddrs uses
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they insert input into another user's terminal


@dataclass(frozen=True)
class SeccompArchitecture:
    """An architecture: audit number, first call number of its second ABI, and call numbers by name."""

    audit: int
    second_abi: int | None
    calls: Mapping[str, int]


_COMMON = {
    "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433, "io_uring_enter": 426, "io_uring_register": 427,
    "io_uring_setup": 425, "mount_setattr": 442, "move_mount": 429, "open_tree": 428, "quotactl_fd": 443,
}  # fmt: skip

_X86_64 = {
    "acct": 163, "add_key": 248, "adjtimex": 159, "bpf": 321, "chroot": 161, "clock_adjtime": 305,
    "clock_settime": 227, "delete_module": 176, "fanotify_init": 300, "finit_module": 313, "init_module": 175,
    "ioperm": 173, "iopl": 172, "kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212,
    "modify_ldt": 154, "mount": 165, "name_to_handle_at": 303, "nfsservctl": 180, "open_by_handle_at": 304,
    "perf_event_open": 298, "pivot_root": 155, "quotactl": 179, "reboot": 169, "request_key": 249,
    "setdomainname": 171, "sethostname": 170, "setns": 308, "settimeofday": 164, "swapoff": 168, "swapon": 167,
    "syslog": 103, "sysfs": 139, "umount2": 166, "uselib": 134, "userfaultfd": 323, "vhangup": 153, "ioprio_set": 251,
}  # fmt: skip

_AARCH64 = {
    "acct": 89, "add_key": 217, "adjtimex": 171, "bpf": 280, "chroot": 51, "clock_adjtime": 266,
    "clock_settime": 112, "delete_module": 106, "fanotify_init": 262, "finit_module": 273, "init_module": 105,
    "kexec_file_load": 294, "kexec_load": 104, "keyctl": 219, "lookup_dcookie": 18, "mount": 40,
    "name_to_handle_at": 264, "nfsservctl": 42, "open_by_handle_at": 265, "perf_event_open": 241, "pivot_root": 41,
    "quotactl": 60, "reboot": 142, "request_key": 218, "setdomainname": 162, "sethostname": 161, "setns": 268,
    "settimeofday": 170, "swapoff": 225, "swapon": 224, "syslog": 116, "umount2": 39, "userfaultfd": 282,
    "vhangup": 58, "ioprio_set": 30,
}  # fmt: skip

# Calls with rules for their arguments.
_X86_64_WITH_RULES = {"clone": 56, "clone3": 435, "ioctl": 16, "socket": 41, "socketpair": 53, "unshare": 272}
_AARCH64_WITH_RULES = {"clone": 220, "clone3": 435, "ioctl": 29, "socket": 198, "socketpair": 199, "unshare": 97}

ARCHITECTURES: Mapping[str, SeccompArchitecture] = {
    "x86_64": SeccompArchitecture(0xC000003E, 0x40000000, _COMMON | _X86_64 | _X86_64_WITH_RULES),  # x32 starts there
    "aarch64": SeccompArchitecture(0xC00000B7, None, _COMMON | _AARCH64 | _AARCH64_WITH_RULES),
}


def compile_filter(machine: str, more: Mapping[int, Sequence[Instruction]] | None = None) -> bytes:
    """Return the filter for a `platform.machine()`, with `more` rules by number. Raises KeyError if unsupported."""
    architecture = ARCHITECTURES[machine]
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture.audit),
        return_action(_KILL),  # a 32-bit program, whose call numbers differ
        (_LOAD, 0, 0, _NUMBER),
    ]
    if architecture.second_abi is not None:
        code += [(_GREATER_EQUAL, 0, 1, architecture.second_abi), deny_call(errno.ENOSYS)]
    rules = _argument_rules()
    bodies = {number: rules.get(name, [deny_call(errno.EPERM)]) for name, number in sorted(architecture.calls.items())}
    for number, body in {**bodies, **(more or {})}.items():
        code += [(_EQUAL, 0, len(body), number), *body]
    code.append(return_action(ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _argument_rules() -> Mapping[str, Sequence[Instruction]]:
    """Return the rules for arguments by call; each ends with a return action."""
    return {
        "clone": deny_bits(NEW_NAMESPACES),
        # Its flags are in memory, which a filter cannot read; the C library falls back to clone.
        "clone3": [deny_call(errno.ENOSYS)],
        "unshare": deny_bits(NEW_NAMESPACES | NEW_TIME),
        "ioctl": [load_argument(1), *if_equal(TERMINAL_INPUT, deny_call(errno.EPERM)), return_action(ALLOW)],
        "socket": [
            load_argument(0),
            *if_equal((UNIX,), return_action(ALLOW)),
            *if_equal(
                INTERNET,
                load_argument(2),
                *if_equal(PROTOCOLS, return_action(ALLOW)),
                deny_call(errno.EPROTONOSUPPORT),
            ),
            *if_equal((NETLINK,), load_argument(2), *if_equal((0,), return_action(ALLOW))),
            deny_call(errno.EAFNOSUPPORT),
        ],
        "socketpair": [load_argument(0), *if_equal((UNIX,), return_action(ALLOW)), deny_call(errno.EAFNOSUPPORT)],
    }


def deny_bits(bits: int, index: int = 0) -> list[Instruction]:
    return [load_argument(index), *if_any_bit(bits, deny_call(errno.EPERM)), return_action(ALLOW)]


def if_any_bit(bits: int, *actions: Instruction) -> list[Instruction]:
    return [(_ANY_BIT, 0, len(actions), bits), *actions]


def if_equal(values: Sequence[int], *actions: Instruction) -> list[Instruction]:
    return [instruction for value in values for instruction in ((_EQUAL, 0, len(actions), value), *actions)]


def load_argument(index: int, *, is_upper: bool = False) -> Instruction:
    """Load a half: the kernel uses the lower 32 bits of most arguments (both architectures are little-endian)."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * index + 4 * is_upper


def deny_call(number: int) -> Instruction:
    return return_action(_ERRNO | number)


def return_action(value: int) -> Instruction:
    return _RETURN, 0, 0, value
