import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.agent_paths import remove_tree


def test_a_tree_with_all_kinds_of_files(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b/c").mkdir(parents=True)
    (tree / "a/b/c/file").write_text("x")
    (tree / "a/file").write_text("x")
    os.mkfifo(tree / "a/fifo")
    (tree / "empty").mkdir()
    (tree / b"\xff\xfe".decode(errors="surrogateescape")).write_text("x")
    remove_tree(tree)
    assert not tree.exists()
    remove_tree(tree)


@pytest.mark.parametrize("deep", ["", "a/b"])
def test_links_are_not_followed(tmp_path: Path, deep: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    (tmp_path / "tree" / deep).mkdir(parents=True)
    (tmp_path / "tree" / deep / "folder").symlink_to(outside)
    (tmp_path / "tree" / deep / "file").symlink_to(outside / "file")
    (tmp_path / "tree" / deep / "loop").symlink_to(".")
    remove_tree(tmp_path / "tree")
    assert (outside / "file").read_text() == "kept"
    assert not (tmp_path / "tree").exists()


def test_a_link_in_place_of_the_tree_is_removed_without_its_target(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").symlink_to("outside")
    remove_tree(tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]


def test_deeper_than_any_stack_or_path(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        os.close(os.open("f", os.O_CREAT, dir_fd=folder))
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    remove_tree(top)
    assert not top.exists()


def test_folders_that_are_closed_to_their_owner(tmp_path: Path) -> None:
    inner = tmp_path / "tree/a/b"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0)
    (tmp_path / "tree/a").chmod(0)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_many_sibling_folders(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"tree/{number}/{number}").mkdir(parents=True)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_removals_of_one_tree_at_the_same_time(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"tree/{number}/{number}").mkdir(parents=True)
        for name in range(20):
            (tmp_path / f"tree/{number}/{name}.txt").write_text("x")
    with ThreadPoolExecutor() as threads:
        removals = [threads.submit(remove_tree, tmp_path / "tree") for _ in range(3)]
    for removal in removals:
        removal.result()
    assert not (tmp_path / "tree").exists()
