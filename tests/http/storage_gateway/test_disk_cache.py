import os
from pathlib import Path

from roost.drivers.image.contract import RenderedImage
from roost.http.storage_gateway.images import DiskCache


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_stored_image_is_read_back(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", 10_000)
    assert await cache.get("a") is None
    await cache.put("a", RenderedImage("image/png", b"1\n2"))
    assert await cache.get("a") == RenderedImage("image/png", b"1\n2")
    assert await DiskCache(tmp_path / "cache", 10_000).get("a") == RenderedImage("image/png", b"1\n2")


async def test_the_cache_stays_within_its_bound_and_keeps_what_is_used(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1_000)
    for number in range(60):
        await cache.put(str(number), RenderedImage("image/png", bytes(50)))
        for path in files(tmp_path):  # everything grows older, but what is asked for next
            about = path.stat()
            os.utime(path, (about.st_atime, about.st_mtime - 10))
        assert await cache.get("0") is not None
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 1_000
    assert await cache.get("1") is None


async def test_oversized_or_damaged_entries_are_not_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1_000)
    await cache.put("large", RenderedImage("image/png", bytes(500)))
    assert files(tmp_path) == []
    await cache.put("a", RenderedImage("image/png", b"good"))
    (kept,) = files(tmp_path)
    kept.write_bytes(kept.read_bytes().replace(b"good", b"evil"))
    assert await cache.get("a") is None


async def test_a_cache_that_cannot_be_used_is_in_nobody_s_way(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    cache = DiskCache(tmp_path / "cache", 1_000)
    await cache.put("a", RenderedImage("image/png", b"x"))
    assert await cache.get("a") is None
