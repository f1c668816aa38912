import os
from pathlib import Path

from roost.core.machine import process_priority
from roost.core.machine.process_priority import ProcessPriority


def run_in_child(check) -> bool:
    """Run a check in a child process, because priorities cannot always be raised again."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_server_is_raised_as_far_as_its_rights_go() -> None:
    def check() -> bool:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        process_priority.raise_own_priority()
        after = os.getpriority(os.PRIO_PROCESS, 0)
        return after == min(before, -10) if os.geteuid() == 0 else after <= before

    assert run_in_child(check)


def test_a_lowered_process_has_all_three_values() -> None:
    def check() -> bool:
        process_priority.set_priority(os.getpid(), ProcessPriority(nice=15, io_level=7, oom_score=600))
        score = int(Path("/proc/self/oom_score_adj").read_text())
        return (os.getpriority(os.PRIO_PROCESS, 0), score) == (15, 600)

    assert run_in_child(check)


def test_a_process_that_is_gone_is_ignored() -> None:
    process_priority.set_priority(2**22 + 1, ProcessPriority(nice=15, io_level=7, oom_score=600))


def test_the_next_server_joins_the_recorded_group(tmp_path: Path) -> None:
    process_priority.join_recorded_group(tmp_path)  # no server ran here
    process_priority.record_own_group(tmp_path, tmp_path)
    process_priority.join_recorded_group(tmp_path)
    assert (tmp_path / "cgroup.procs").read_text() == str(os.getpid())
    process_priority.record_own_group(Path("/missing"), tmp_path)
    process_priority.join_recorded_group(tmp_path)  # it is gone
    process_priority.record_own_group(None, tmp_path)
    (tmp_path / "cgroup.procs").unlink()
    process_priority.join_recorded_group(tmp_path)
    assert not (tmp_path / "cgroup.procs").exists()
