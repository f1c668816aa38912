from pathlib import Path

from roost.core.machine.disk_space import DiskBallast, DiskSpace, read_disk_space


def test_a_reserve_stays_free() -> None:
    disk = DiskSpace(free=100, total=10_000)
    assert disk.leaves(100)
    assert not disk.leaves(100, 1)
    assert not disk.leaves(101)


def test_a_reserve_is_at_most_a_sixteenth_of_a_small_disk() -> None:
    assert DiskSpace(free=10, total=160).leaves(100)
    assert not DiskSpace(free=9, total=160).leaves(100)


def test_a_file_system_that_does_not_count_is_never_full() -> None:
    assert DiskSpace(free=0, total=0).leaves(100, 100)


def test_the_space_of_a_folder_and_of_an_open_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    disk = read_disk_space(tmp_path)
    with file.open() as opened:
        assert read_disk_space(opened.fileno()).total == disk.total > disk.free > 0
        assert read_disk_space(tmp_path / "missing" / "folder").total == disk.total
    assert not disk.is_read_only


def test_a_ballast_occupies_space_and_is_released_on_a_full_disk_only(tmp_path: Path) -> None:
    file = tmp_path / "ballast"
    ballast = DiskBallast(file, 1024**2)
    for _ in range(2):
        ballast.occupy()
        assert file.stat().st_blocks * 512 == 1024**2
    assert not ballast.release()
    assert file.stat().st_size == 1024**2
