import io
import tarfile
from pathlib import Path

import pytest

from roost import config
from roost.drivers.engine.contract import EngineInstallFailed, EngineNotInstalled
from roost.drivers.engine.openclaw import compile_cache
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.engine.openclaw.install import NODE_VERSION
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.fake import FakeRuntime


def tar(*members: tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            member.size = 4 if member.isfile() else 0
            archive.addfile(member, io.BytesIO(b"code") if member.isfile() else None)
    return packed.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o4700
    return info


def test_plain_files_are_unpacked_readable_by_all(tmp_path: Path) -> None:
    folders = (member(".", tarfile.DIRTYPE), member("./a", tarfile.DIRTYPE))
    compile_cache.unpack_cache(tar(*folders, member("./a/b/file")), tmp_path)
    assert (tmp_path / "a/b/file").read_bytes() == b"code"
    assert (tmp_path / "a/b/file").stat().st_mode & 0o7777 == 0o644
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
def test_a_path_outside_the_folder_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineInstallFailed, match="outside its folder"):
        compile_cache.unpack_cache(tar(member(name)), tmp_path / "in")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_not_unpacked(tmp_path: Path, kind: bytes) -> None:
    compile_cache.unpack_cache(tar(member("x", kind, "/etc/passwd"), member("file")), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_malformed_tar_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EngineInstallFailed, match="damaged"):
        compile_cache.unpack_cache(b"x" * 2000, tmp_path)


@pytest.mark.engine
@pytest.mark.container
async def test_a_run_in_a_container_creates_a_cache_for_the_agents_uid(tmp_path: Path) -> None:
    engine = OpenClaw(config.load_settings().engines)
    runtime = BwrapRuntime(tmp_path / "data", lambda found: engine.folders(found.version))
    engine.install(engine.default_version, lambda _text, _done: None)
    compile_cache.unpack_cache(
        await compile_cache.build_cache(engine, engine.default_version, runtime), tmp_path / "cache"
    )
    (folder,) = (tmp_path / "cache").iterdir()
    assert folder.name.startswith(f"v{NODE_VERSION}-")
    assert folder.name.endswith("-1000")
    assert len(list(folder.iterdir())) > 1000
    assert await runtime.list() == []


async def test_a_failed_run_only_costs_the_cache(tmp_path: Path) -> None:
    """Without an installed engine, no container can be created."""
    with pytest.raises(EngineNotInstalled):
        await compile_cache.build_cache(OpenClaw(tmp_path), "2026.9.6", FakeRuntime(tmp_path / "data"))
    await OpenClaw(tmp_path).fill_compile_cache("2026.9.6", FakeRuntime(tmp_path / "data"), lambda _text, _done: None)
    assert not (tmp_path / "openclaw-cache").exists()
