"""Built files: found by their path alone, compressed once."""

import gzip
from pathlib import Path

from roost.http.dashboard.static_files import StaticFiles

TEXT = "a{color:red}" * 200


def test_a_folder_that_is_not_there() -> None:
    files = StaticFiles(Path("/nowhere/static"))
    assert not files.is_built
    assert files.find("/index.html") is None


def test_a_folder_that_is_built_while_the_server_runs(tmp_path: Path) -> None:
    files = StaticFiles(tmp_path / "static")
    assert not files.is_built
    (tmp_path / "new").mkdir()
    (tmp_path / "new/index.html").write_text("<html>")
    (tmp_path / "new").rename(tmp_path / "static")
    assert files.is_built
    assert files.find("/index.html") is not None


def test_paths_name_files_of_the_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("beside")
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<html>")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    files = StaticFiles(folder)
    assert files.is_built
    for path in ("/../secret.txt", "/link.txt", "/assets", "/", "", "index.html", "//index.html", "/nul\0"):
        assert files.find(path) is None, path
    (folder / "late.txt").write_text("after the start")
    assert files.find("/late.txt") is None


def test_a_form_that_the_build_made_is_used(tmp_path: Path) -> None:
    best = gzip.compress(TEXT.encode(), 9)
    (tmp_path / "a.css").write_text(TEXT)
    (tmp_path / "a.css.gz").write_bytes(best)
    (tmp_path / "b.css").write_text(TEXT)
    (tmp_path / "c.png").write_bytes(bytes(1000))
    files = StaticFiles(tmp_path)
    assert files.find("/a.css.gz") is None
    built, made, image = files.find("/a.css"), files.find("/b.css"), files.find("/c.png")
    assert built is not None
    assert made is not None
    assert image is not None
    assert (built.compressed, built.is_hashed) == (best, False)
    assert made.compressed is not None
    assert gzip.decompress(made.compressed).decode() == TEXT
    assert (image.compressed, image.media_type) == (None, "image/png")
    assert built.tag == made.tag != image.tag


def test_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"assets/{name}.js").write_text("x")
    files = StaticFiles(tmp_path)
    first = files.find("/assets/a.js")
    for name in ("a", "b"):
        (tmp_path / f"assets/{name}.js").unlink()
    assert files.find("/assets/a.js") is first
    assert files.find("/assets/b.js") is None  # another build took its place
