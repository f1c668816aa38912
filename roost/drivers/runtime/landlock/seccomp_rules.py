"""System calls that a sandbox with the server's user and namespaces must not have, beside those of containers.

Landlock confines the opening of files, but not changes of their modes, owners and times by path. These calls succeed
without an effect, because programs like tar and Git fail without them.
"""

import errno
import platform
from collections.abc import Mapping, Sequence
from functools import cache

from roost.drivers.runtime.bwrap.seccomp import (
    ALLOW,
    ARCHITECTURES,
    UNIX,
    Instruction,
    compile_filter,
    deny_bits,
    deny_call,
    if_any_bit,
    if_equal,
    load_argument,
    return_action,
)
from roost.drivers.runtime.contract import RuntimeFailed

_Numbers = dict[str, tuple[int, int]]
"""Call numbers of x86_64 and aarch64; the latter lacks some old ones (-1)."""

# Signals, which Landlock confines from Linux 6.12 on.
_SIGNALS: _Numbers = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip

# They reach other processes of the user, leave the process group, or use memory that no process has.
_DENIED: _Numbers = {
    "bind": (49, 200), "connect": (42, 203), "listen": (50, 201), "setpgid": (109, 154), "setsid": (112, 157),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "ptrace": (101, 117), "kcmp": (312, 272),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "migrate_pages": (256, 238), "move_pages": (279, 239), "setpriority": (141, 140),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "inotify_add_watch": (254, 27),
}  # fmt: skip

_WITHOUT_EFFECT: _Numbers = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
    "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466), "file_setattr": (469, 469), "utime": (132, -1),
    "utimes": (235, -1), "futimesat": (261, -1),
}  # fmt: skip

_WITH_RULES: _Numbers = {"fcntl": (72, 25), "prlimit64": (302, 261), "utimensat": (280, 88), "mmap": (9, 222)}
_OWNERS_AND_LEASES = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_HARMLESS_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIO*CLEX
_SHARED, _ANONYMOUS = 1, 0x20  # MAP_SHARED and MAP_SHARED_VALIDATE; MAP_ANONYMOUS
_NOT_A_STREAM = 0xE  # bits of the types of sockets that can be sent to an address


@cache
def compile_confinement(*, denies_signals: bool, machine: str = platform.machine()) -> bytes:
    """Return the whole filter of a sandbox. Raises RuntimeFailed where there is none for the machine."""
    if machine not in ARCHITECTURES:
        raise RuntimeFailed(f"There is no seccomp filter for {machine}")
    column = sorted(ARCHITECTURES, reverse=True).index(machine)  # x86_64, aarch64
    denied = _DENIED | _SIGNALS if denies_signals else _DENIED
    bodies: dict[str, Sequence[Instruction]] = {
        **{key: [deny_call(errno.EPERM)] for key in denied},
        **{key: [deny_call(0)] for key in _WITHOUT_EFFECT},
        **_argument_rules(),
    }
    added = {name: numbers[column] for name, numbers in {**denied, **_WITHOUT_EFFECT, **_WITH_RULES}.items()}
    numbers = {**ARCHITECTURES[machine].calls, **added}
    return compile_filter(machine, {numbers[name]: body for name, body in bodies.items() if numbers[name] >= 0})


def _argument_rules() -> Mapping[str, Sequence[Instruction]]:
    allow = return_action(ALLOW)
    return {
        "fcntl": [load_argument(1), *if_equal(_OWNERS_AND_LEASES, deny_call(errno.EPERM)), allow],
        "ioctl": [load_argument(1), *if_equal(_HARMLESS_IOCTLS, allow), deny_call(errno.ENOTTY)],
        # Shared memory stays as long as a part of it is mapped, and only that part is counted.
        "mmap": [load_argument(3), *if_any_bit(_ANONYMOUS, *if_any_bit(_SHARED, deny_call(errno.EPERM))), allow],
        "prlimit64": [load_argument(0), *if_equal((0,), allow), deny_call(errno.EPERM)],  # 0 is the caller itself
        "socket": [deny_call(errno.EAFNOSUPPORT)],
        "socketpair": [
            load_argument(0),
            *if_equal((UNIX,), *deny_bits(_NOT_A_STREAM, index=1)),
            deny_call(errno.EAFNOSUPPORT),
        ],
        # Without a path, it changes an open file.
        "utimensat": [
            load_argument(1),
            *if_equal((0,), load_argument(1, is_upper=True), *if_equal((0,), allow)),
            deny_call(0),
        ],
    }
