import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import plan, tools
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerSpec, RuntimeFailed
from roost.warden_client.client import WardenClient


def test_the_copy_runs_and_is_readable_by_all_users(tmp_path: Path) -> None:
    copies = tools.prepare_tools(tmp_path / "tools")
    assert subprocess.run([copies.bwrap, "--version"], check=True, capture_output=True).stdout.startswith(b"bubblewrap")
    assert (copies.warden / "warden.py").is_file()
    for path in copies.bwrap.parents[2].rglob("*"):
        assert path.stat().st_mode & 0o005 == 0o005
        assert not path.stat().st_mode & 0o022


def test_the_warden_is_compiled_for_the_python_that_runs_it(tmp_path: Path) -> None:
    copies = tools.prepare_tools(tmp_path / "tools")
    for module in copies.warden.glob("*.py"):
        program = f"import importlib.util as u; print(u.cache_from_source({str(module)!r}))"
        compiled = subprocess.run(
            [copies.python, "-I", "-c", program], check=True, capture_output=True, text=True
        ).stdout
        assert Path(compiled.strip()).is_file()


def test_tools_are_copied_once(tmp_path: Path) -> None:
    first = tools.prepare_tools(tmp_path / "tools")
    inode = first.bwrap.stat().st_ino
    assert tools.prepare_tools(tmp_path / "tools") == first
    assert first.bwrap.stat().st_ino == inode
    assert len(list((tmp_path / "tools").iterdir())) == 1


def test_another_bwrap_is_another_copy(tmp_path: Path) -> None:
    other = tmp_path / "bwrap"
    other.write_text("#!/bin/sh\n")
    copies = tools.prepare_tools(tmp_path / "tools", other)
    assert copies.bwrap.read_text() == "#!/bin/sh\n"
    assert tools.prepare_tools(tmp_path / "tools").bwrap != copies.bwrap


def test_a_missing_bwrap_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match="install the package bubblewrap"):
        tools.prepare_tools(tmp_path / "tools", tmp_path / "missing")
    assert not (tmp_path / "tools").exists()


def test_the_umask_does_not_matter(tmp_path: Path) -> None:
    former = os.umask(0o077)
    try:
        copies = tools.prepare_tools(tmp_path / "tools")
    finally:
        os.umask(former)
    assert copies.bwrap.stat().st_mode & 0o777 == 0o755
    assert copies.bwrap.parents[2].stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("system", ["/usr/bin/python3", "/missing/python3"])
def test_the_python_is_recent_and_available_in_a_container(system: str) -> None:
    python, prefix = tools.find_interpreter(Path(system))
    command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    version = subprocess.run(command, check=True, capture_output=True).stdout
    assert tuple(map(int, version.split())) >= (3, 11)
    assert python.is_relative_to(prefix or "/usr")


@pytest.mark.container
async def test_our_python_is_used_if_the_system_has_none(tmp_path: Path) -> None:
    runtime = BwrapRuntime(tmp_path / "data", system_python=Path("/missing/python3"))
    try:
        await runtime.start(ContainerSpec("one"))
        assert (await WardenClient(partial(runtime.connect, "one")).exec(["true"])).exit_code == 0
    finally:
        await runtime.delete("one")


def make_host(folder: Path) -> Path:
    for name, text in {
        "timezone": "UTC",
        "shadow": "secret",
        "ssl/openssl.cnf": "conf",
        "ssl/certs/a.pem": "a",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "localtime").symlink_to(folder / "timezone")
    return folder


def test_the_copy_has_our_files_those_of_the_host_and_empty_folders_to_mount(tmp_path: Path) -> None:
    etc, folders = tools.prepare_etc(tmp_path / "tools", make_host(tmp_path / "etc"))
    assert folders == ["ssl/certs"]
    files = {str(path.relative_to(etc)): path.read_bytes() for path in etc.rglob("*") if path.is_file()}
    ours = {path.removeprefix("/etc/"): content for path, content in plan.ETC.items()}
    assert files == {**ours, "timezone": b"UTC", "localtime": b"UTC", "ssl/openssl.cnf": b"conf"}
    assert list((etc / "ssl/certs").iterdir()) == []


def test_all_users_can_read_the_copy(tmp_path: Path) -> None:
    etc, _ = tools.prepare_etc(tmp_path / "tools", make_host(tmp_path / "etc"))
    assert {path.stat().st_mode & 0o777 for path in etc.rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in (etc, *etc.rglob("*")) if path.is_dir()} == {0o755}


def test_a_change_of_the_host_makes_another_copy(tmp_path: Path) -> None:
    host = make_host(tmp_path / "etc")
    before = tools.prepare_etc(tmp_path / "tools", host)
    assert tools.prepare_etc(tmp_path / "tools", host) == before
    fresh = host / "timezone.new"
    fresh.write_text("CET")
    fresh.rename(host / "timezone")
    after, _ = tools.prepare_etc(tmp_path / "tools", host)
    assert (after / "timezone").read_text() == "CET"
    assert (before[0] / "timezone").read_text() == "UTC"
