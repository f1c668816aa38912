from pathlib import Path

from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.bwrap.host_etc import prepare_etc


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
    etc, folders = prepare_etc(tmp_path / "tools", make_host(tmp_path / "etc"))
    assert folders == ["ssl/certs"]
    files = {str(path.relative_to(etc)): path.read_bytes() for path in etc.rglob("*") if path.is_file()}
    ours = {path.removeprefix("/etc/"): content for path, content in plan.ETC.items()}
    assert files == {**ours, "timezone": b"UTC", "localtime": b"UTC", "ssl/openssl.cnf": b"conf"}
    assert list((etc / "ssl/certs").iterdir()) == []


def test_all_users_can_read_the_copy(tmp_path: Path) -> None:
    etc, _ = prepare_etc(tmp_path / "tools", make_host(tmp_path / "etc"))
    assert {path.stat().st_mode & 0o777 for path in etc.rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in (etc, *etc.rglob("*")) if path.is_dir()} == {0o755}


def test_a_change_of_the_host_makes_another_copy(tmp_path: Path) -> None:
    host = make_host(tmp_path / "etc")
    before = prepare_etc(tmp_path / "tools", host)
    assert prepare_etc(tmp_path / "tools", host) == before
    fresh = host / "timezone.new"
    fresh.write_text("CET")
    fresh.rename(host / "timezone")
    after, _ = prepare_etc(tmp_path / "tools", host)
    assert (after / "timezone").read_text() == "CET"
    assert (before[0] / "timezone").read_text() == "UTC"
