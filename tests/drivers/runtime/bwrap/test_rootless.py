"""Runs the tests of isolation once more as a plain user."""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.bind_stage import is_reachable
from roost.drivers.runtime.bwrap.remove import remove_tree
from tests.drivers.runtime.bwrap.containers import AS_ROOT, PYTHON

UID = "64999"
CHECKOUT = Path(__file__).parents[4]
PACKAGES = Path(sysconfig.get_paths()["purelib"])
SUITES = (
    "test_isolation.py",
    "test_limits.py",
    "test_priority.py",
    "test_egress.py",
    "test_probe.py",
    "test_driver.py",
    "test_sandbox.py",
    "test_agent_paths.py",
    "test_disk_meter.py",
)
CONFORMANCE = Path("tests/conformance")
TESTS = (
    "test_container_files.py::test_a_folder_without_permission_is_refused",
    "test_containers.py::test_the_wardens_memory_is_not_readable",
    "test_container_trees.py::test_a_closed_folder_is_scanned_with_an_error",
    "test_container_watch.py::test_a_workspace_that_cannot_be_read_is_not_watched",
)
"""Tests of conformance that need a fake container without root's permissions."""


def python() -> str | None:
    """Return a Python that every user may run and that fits our installed packages."""
    wanted = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    if not Path(PYTHON).exists() or subprocess.run([PYTHON, "-c", wanted], check=False).returncode:
        return None
    return PYTHON


@pytest.mark.container
@pytest.mark.skipif(not AS_ROOT, reason="everything runs as a plain user already")
@pytest.mark.skipif(python() is None, reason="no system Python of our version")
@pytest.mark.skipif(
    not is_reachable(CHECKOUT) or not is_reachable(PACKAGES), reason="the checkout is closed to other users"
)
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is missing")
def test_as_a_plain_user() -> None:
    folder = Path(
        tempfile.mkdtemp(prefix="roost-rootless-")
    )  # not below pytest's folder, which is closed to other users
    try:
        shutil.chown(folder, int(UID), int(UID))
        result = subprocess.run(
            [
                *("setpriv", "--reuid", UID, "--regid", UID, "--clear-groups", "--"),
                *("env", "-i", "PATH=/usr/bin:/bin", f"HOME={folder}", "PYTHONDONTWRITEBYTECODE=1"),
                *(f"PYTHONPATH={PACKAGES}", PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
                *("-o", "addopts=--import-mode=importlib", f"--basetemp={folder}/t", "--rootdir", CHECKOUT),
                *(Path(__file__).with_name(suite) for suite in SUITES),
                *(CONFORMANCE / test for test in TESTS),
            ],
            cwd=CHECKOUT,
            check=False,
            capture_output=True,
            text=True,
            timeout=170,
        )
        assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
        assert " passed" in result.stdout
    finally:
        remove_tree(folder)  # some tests leave trees that are too deep for shutil
