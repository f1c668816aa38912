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

_Instruction = tuple[int, int, int, int]

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_TIME = 0x80  # CLONE_NEWTIME, for unshare only: clone has its exit signal in these bits
_UNIX, _INTERNET = 1, (2, 10)  # AF_UNIX; AF_INET, AF_INET6
_PROTOCOLS = (0, 6, 17)  # the default of the type, TCP, UDP; not UDPLITE, MPTCP, SMC, SCTP or raw sockets
_NETLINK = 16  # only with the protocol NETLINK_ROUTE (0), which getifaddrs uses
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they insert input into another user's terminal


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


def compile_filter(machine: str) -> bytes:
    """Return the filter for a `platform.machine()`. Raises KeyError for an unsupported one."""
    architecture = ARCHITECTURES[machine]
    code: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture.audit),
        _return_action(_KILL),  # a 32-bit program, whose call numbers differ
        (_LOAD, 0, 0, _NUMBER),
    ]
    if architecture.second_abi is not None:
        code += [(_GREATER_EQUAL, 0, 1, architecture.second_abi), _deny(errno.ENOSYS)]
    rules = _argument_rules()
    for name, number in sorted(architecture.calls.items()):
        body = rules.get(name, [_deny(errno.EPERM)])
        code += [(_EQUAL, 0, len(body), number), *body]
    code.append(_return_action(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _argument_rules() -> Mapping[str, Sequence[_Instruction]]:
    """Return the rules for arguments by call; each ends with a return action."""
    return {
        "clone": _deny_bits(_NEW_NAMESPACES),
        # Its flags are in memory, which a filter cannot read; the C library falls back to clone.
        "clone3": [_deny(errno.ENOSYS)],
        "unshare": _deny_bits(_NEW_NAMESPACES | _NEW_TIME),
        "ioctl": [_load_argument(1), *_if_equal(_TERMINAL_INPUT, _deny(errno.EPERM)), _return_action(_ALLOW)],
        "socket": [
            _load_argument(0),
            *_if_equal((_UNIX,), _return_action(_ALLOW)),
            *_if_equal(
                _INTERNET,
                _load_argument(2),
                *_if_equal(_PROTOCOLS, _return_action(_ALLOW)),
                _deny(errno.EPROTONOSUPPORT),
            ),
            *_if_equal((_NETLINK,), _load_argument(2), *_if_equal((0,), _return_action(_ALLOW))),
            _deny(errno.EAFNOSUPPORT),
        ],
        "socketpair": [_load_argument(0), *_if_equal((_UNIX,), _return_action(_ALLOW)), _deny(errno.EAFNOSUPPORT)],
    }


def _deny_bits(bits: int) -> list[_Instruction]:
    return [_load_argument(0), (_ANY_BIT, 0, 1, bits), _deny(errno.EPERM), _return_action(_ALLOW)]


def _if_equal(values: Sequence[int], *actions: _Instruction) -> list[_Instruction]:
    return [instruction for value in values for instruction in ((_EQUAL, 0, len(actions), value), *actions)]


def _load_argument(index: int) -> _Instruction:
    """Load the lower half: the kernel uses 32 bits of these arguments (both architectures are little-endian)."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * index


def _deny(number: int) -> _Instruction:
    return _return_action(_ERRNO | number)


def _return_action(value: int) -> _Instruction:
    return _RETURN, 0, 0, value
