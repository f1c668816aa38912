"""The filter of sandboxes without namespaces, run by a small BPF interpreter."""

from collections.abc import Callable

import pytest

from roost.drivers.runtime.bwrap import seccomp
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.runtime.landlock import seccomp_rules
from roost.drivers.runtime.landlock.seccomp_rules import compile_confinement
from tests.drivers.runtime.bwrap.test_seccomp import ALLOW, evaluate_code

COLUMNS = {"x86_64": 0, "aarch64": 1}
Evaluate = Callable[..., str]


@pytest.fixture(params=sorted(COLUMNS))
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    machine = request.param
    added = {**seccomp_rules._DENIED, **seccomp_rules._SIGNALS, **seccomp_rules._WITHOUT_EFFECT}
    numbers = {name: numbers[COLUMNS[machine]] for name, numbers in {**added, **seccomp_rules._WITH_RULES}.items()}
    numbers |= seccomp.ARCHITECTURES[machine].calls

    def run(call: str, *arguments: int, denies_signals: bool = False) -> str:
        code = compile_confinement(denies_signals=denies_signals, machine=machine)
        return evaluate_code(code, machine, numbers[call], *arguments)

    return run


def test_calls_on_other_processes_and_of_containers_are_denied(evaluate: Evaluate) -> None:
    calls = [*seccomp_rules._DENIED, "mount", "bpf", "keyctl", "io_uring_setup", "userfaultfd", "setns"]
    assert {evaluate(call) for call in calls} == {"EPERM"}


def test_signals_are_denied_where_landlock_does_not_confine_them(evaluate: Evaluate) -> None:
    assert {evaluate(call) for call in seccomp_rules._SIGNALS} == {ALLOW}
    assert {evaluate(call, denies_signals=True) for call in seccomp_rules._SIGNALS} == {"EPERM"}


def test_changes_of_metadata_have_no_effect(evaluate: Evaluate) -> None:
    assert {evaluate(call) for call in ("fchmod", "fchmodat", "fchmodat2", "fchownat", "setxattr")} == {"0"}
    assert evaluate("utimensat", 3, 0) == ALLOW
    assert evaluate("utimensat", 3, 1) == evaluate("utimensat", 3, 1 << 32) == "0"


def test_only_pairs_of_stream_sockets_are_made(evaluate: Evaluate) -> None:
    assert {evaluate("socket", family, 1) for family in range(64)} == {"EAFNOSUPPORT"}
    assert {kind for kind in range(8) if evaluate("socketpair", 1, kind | 0x80800) == ALLOW} == {0, 1}
    assert evaluate("socketpair", 2, 1) == "EAFNOSUPPORT"


def test_a_process_changes_its_own_limits_and_descriptors_only(evaluate: Evaluate) -> None:
    assert (evaluate("prlimit64", 0, 7), evaluate("prlimit64", 1, 7)) == (ALLOW, "EPERM")
    assert (evaluate("fcntl", 0, 2), evaluate("fcntl", 0, 8), evaluate("fcntl", 0, 10)) == (ALLOW, "EPERM", "EPERM")
    assert (evaluate("ioctl", 0, 0x5401), evaluate("ioctl", 0, 0x8901)) == (ALLOW, "ENOTTY")


def test_only_memory_of_one_process_is_mapped_without_a_file(evaluate: Evaluate) -> None:
    private, shared, validated, anonymous = 2, 1, 3, 0x20
    assert {evaluate("mmap", 0, 1, 3, kind) for kind in (private, shared, validated)} == {ALLOW}
    assert evaluate("mmap", 0, 1, 3, private | anonymous | 0x20000) == ALLOW
    assert {evaluate("mmap", 0, 1, 3, kind | anonymous) for kind in (shared, validated)} == {"EPERM"}


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(RuntimeFailed, match="no seccomp filter for riscv64"):
        compile_confinement(denies_signals=False, machine="riscv64")
