"""Runs the tests of isolation once more as a plain user."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.agent_paths import remove_tree
from roost.drivers.runtime.bwrap.start import get_controllers, is_reachable
from roost.drivers.runtime.contract import ContainerLimits
from tests.conformance.containers import AS_ROOT, PYTHON

UID = "64999"
CHECKOUT = Path(__file__).parents[4]
PACKAGES = Path(sysconfig.get_paths()["purelib"])
SUITES = (
    "test_isolation.py",
    "test_priority.py",
    "test_probe.py",
    "test_driver.py",
    "test_sandbox.py",
    "test_agent_paths.py",
    "test_disk_meter.py",
)
CONFORMANCE = Path("tests/conformance")
TESTS = (
    "test_container_isolation.py",
    "test_container_limits.py",
    "test_container_egress.py",
    "test_container_files.py::test_a_folder_without_permission_is_refused",
    "test_containers.py::test_the_wardens_memory_is_not_readable",
    "test_container_trees.py::test_a_closed_folder_is_scanned_with_an_error",
    "test_container_watch.py::test_a_workspace_that_cannot_be_read_is_not_watched",
)
"""What a plain user's containers are; the last four need a fake container without root's permissions."""
DELEGATED = (
    CONFORMANCE / "test_container_limits.py::test_a_memory_hog_is_killed_alone",
    CONFORMANCE / "test_container_limits.py::test_processor_time_is_limited",
    "test_priority.py::test_all_agents_share_one_group_below_the_servers_weight",
    "test_priority.py::test_threads_return_to_the_servers_group_after_a_start",
    "test_sandbox.py::test_memory_is_limited",
)
"""Tests that need control groups, which a plain user has only if they are delegated."""


def python() -> str | None:
    """Return a Python that every user may run and that fits our installed packages."""
    wanted = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    if not Path(PYTHON).exists() or subprocess.run([PYTHON, "-c", wanted], check=False).returncode:
        return None
    return PYTHON


rootless = pytest.mark.skipif(not AS_ROOT, reason="everything runs as a plain user already")
fitting = pytest.mark.skipif(python() is None, reason="no system Python of our version")
open_to_all = pytest.mark.skipif(
    not is_reachable(CHECKOUT) or not is_reachable(PACKAGES), reason="the checkout is closed to other users"
)
with_setpriv = pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is missing")
pytestmark = [pytest.mark.container, rootless, fitting, open_to_all, with_setpriv]


def test_as_a_plain_user() -> None:
    output = run_as_plain_user([*SUITES, *(CONFORMANCE / test for test in TESTS)])
    assert " passed" in output


@pytest.mark.skipif(not get_controllers().usable, reason="this machine has no control groups")
def test_limits_and_weights_as_a_plain_user_with_delegated_groups() -> None:
    """As a service manager delegates them: the tests that a plain user without such groups skips."""
    with delegated_groups() as groups:
        output = run_as_plain_user(DELEGATED, groups)
    assert f"{len(DELEGATED)} passed" in output
    assert "skipped" not in output


@contextmanager
def delegated_groups() -> Iterator[Sequence[Path]]:
    """Create a control group for each hierarchy that belongs to the plain user."""
    groups = get_controllers().create(f"roost-delegated-{os.getpid()}", ContainerLimits(8 << 30, 64.0, 4096))
    try:
        for group in groups:
            for path in (group, *(group / name for name in ("cgroup.procs", "tasks", "cgroup.subtree_control"))):
                if path.exists():
                    shutil.chown(path, int(UID), int(UID))
        yield groups
    finally:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()


def run_as_plain_user(tests: Sequence[str | Path], groups: Sequence[Path] = ()) -> str:
    """Run tests, named beside this file, in a process of the plain user in these groups; return what pytest prints."""
    folder = Path(
        tempfile.mkdtemp(prefix="roost-rootless-")
    )  # not below pytest's folder, which is closed to other users
    enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
    try:
        shutil.chown(folder, int(UID), int(UID))
        result = subprocess.run(
            [
                *("sh", "-ec", f'{enter}exec "$@"', "sh"),
                *("setpriv", "--reuid", UID, "--regid", UID, "--clear-groups", "--"),
                *("env", "-i", "PATH=/usr/bin:/bin", f"HOME={folder}", "PYTHONDONTWRITEBYTECODE=1"),
                *(
                    f"PYTHONPATH={PACKAGES}",
                    PYTHON,
                    "-m",
                    "pytest",
                    "-q",
                    "-m",
                    "not docker",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "no:xdist",
                ),
                *("-o", "addopts=--import-mode=importlib", f"--basetemp={folder}/t", "--rootdir", CHECKOUT),
                *(test if isinstance(test, Path) else Path(__file__).with_name(test) for test in tests),
            ],
            cwd=CHECKOUT,
            check=False,
            capture_output=True,
            text=True,
            timeout=170,
        )
        assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
        return result.stdout
    finally:
        remove_tree(folder)  # some tests leave trees that are too deep for shutil
