import errno
import os
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import kernel
from roost.net.addresses import is_public
from roost.warden import transparent_proxy
from tests.conformance.containers import AS_ROOT, Start


@pytest.mark.container
async def test_low_ports_are_allowed_only_in_the_container(start: Start) -> None:
    lowest = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    before = lowest.read_text()
    closed, opened = await start("closed"), await start("opened", egress="proxy")
    assert await closed.sh(f"cat {lowest}") == before
    assert await opened.sh(f"cat {lowest}") == "0\n"
    assert lowest.read_text() == before


@pytest.mark.container
async def test_the_synthetic_block_is_local_only_in_the_container(start: Start) -> None:
    bound = "s = socket.socket(); s.bind((os.environ['AT'], 0)); tell(s.getsockname()[0])"
    at = "{}.{}.255.254".format(*kernel.SYNTHETIC_BLOCK)
    closed, opened = await start("closed", env={"AT": at}), await start("opened", egress="proxy", env={"AT": at})
    assert await opened.run_python(bound) == at
    with pytest.raises(AssertionError, match="Cannot assign requested address"):
        await closed.run_python(bound)
    assert "-- {}.{}.0.0".format(*kernel.SYNTHETIC_BLOCK) not in Path("/proc/net/fib_trie").read_text()


@pytest.mark.container
async def test_an_agent_cannot_add_addresses(start: Start) -> None:
    container = await start("opened", egress="proxy")
    ours = Path(kernel.__file__).read_text().split("if __name__")[0]
    more = f"{ours}\ntry:\n    _add_to_loopback(bytes((29, 77)))\nexcept OSError as error:\n    tell(error.errno)"
    assert await container.run_python(more) == errno.EPERM


def test_the_block_is_public_but_rejected_by_the_proxy() -> None:
    """The block is defined three times, because none of the three packages may import another."""
    block = ip_network("{}.{}.0.0/16".format(*kernel.SYNTHETIC_BLOCK))
    assert str(block) == f"{transparent_proxy.PUBLIC_BLOCK}.0.0/16"
    assert block.is_global
    assert not is_public(block[0])
    assert not is_public(block[-1])


def test_a_missing_process_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        kernel.prepare_network(2**22 + 1)


def test_errors_of_the_kernel_are_raised() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)) as problem:
        kernel.bind_mount(Path("/missing/source"), Path("/missing/target"))
    assert problem.value.errno in {errno.ENOENT, errno.EPERM}


@pytest.mark.skipif(not AS_ROOT, reason="only root can mount")
def test_mounts_of_a_thread_are_private(tmp_path: Path) -> None:
    def mount() -> bool:
        kernel.unshare_mounts()
        kernel.mount_tmpfs(tmp_path)
        (tmp_path / "inside").mkdir()
        kernel.bind_mount(Path("/usr"), tmp_path / "inside")
        shown = (tmp_path / "inside/bin").exists()
        kernel.detach_mount(tmp_path / "inside")
        return shown and not (tmp_path / "inside/bin").exists()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(mount).result()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as other users")
def test_only_the_calling_thread_acts_as_a_user_and_it_is_root_again_afterwards() -> None:
    def read_credentials() -> list[str]:
        lines = Path("/proc/thread-self/status").read_text().splitlines()
        return [line for line in lines if line.startswith(("Uid", "Gid", "Groups", "CapEff", "CapPrm"))]

    before = read_credentials()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(read_credentials).result() == before
        with kernel.acting_as(70001):
            ids, _, groups, _, effective = read_credentials()
            assert ids.split()[1:] == ["70001", "70001", "0", "70001"]
            assert groups.split() == ["Groups:"]
            assert int(effective.split()[1], 16) == 0
            assert pool.submit(read_credentials).result() == before
            with pytest.raises(PermissionError):
                os.listdir("/root")  # noqa: PTH208 - a call that needs root
    assert read_credentials() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as other users")
def test_a_thread_is_root_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="x"), kernel.acting_as(70001):
        raise ValueError("x")
    assert os.listdir("/root") is not None  # noqa: PTH208 - as above
