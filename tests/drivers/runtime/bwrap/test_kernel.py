import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import kernel
from tests.drivers.runtime.bwrap.boxes import AS_ROOT, Start


@pytest.mark.container
async def test_low_ports_are_opened_in_the_box_and_not_here(start: Start) -> None:
    lowest = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    here = lowest.read_text()
    closed, opened = await start("closed"), await start("opened", egress="proxy")
    assert await closed.sh(f"cat {lowest}") == here
    assert await opened.sh(f"cat {lowest}") == "0\n"
    assert lowest.read_text() == here


def test_a_process_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        kernel.open_low_ports(2**22 + 1)


def test_errors_are_the_kernels() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)) as problem:
        kernel.bind(Path("/missing/source"), Path("/missing/target"))
    assert problem.value.errno in {errno.ENOENT, errno.EPERM}


@pytest.mark.skipif(not AS_ROOT, reason="only root has mounts to give")
def test_mounts_of_a_thread_are_its_own(tmp_path: Path) -> None:
    def mount() -> bool:
        kernel.leave_mounts()
        kernel.mount_tmpfs(tmp_path)
        (tmp_path / "inside").mkdir()
        kernel.bind(Path("/usr"), tmp_path / "inside")
        shown = (tmp_path / "inside/bin").exists()
        kernel.detach(tmp_path / "inside")
        return shown and not (tmp_path / "inside/bin").exists()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(mount).result()
    assert not list(tmp_path.iterdir())
